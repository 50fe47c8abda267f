# fork, wait statuses of every kind, and pipes between parent and child.
import os
import signal

for ending in ("exit 0", "exit 7", "exit 255", "signal 9", "signal 15"):
    how, number = ending.split()
    pid = os.fork()
    if pid == 0:
        if how == "signal":
            os.kill(os.getpid(), int(number))
        os._exit(int(number))
    _, status = os.waitpid(pid, 0)
    print(ending, os.WIFEXITED(status), os.WIFSIGNALED(status), os.waitstatus_to_exitcode(status))

reader, writer = os.pipe()
pid = os.fork()
if pid == 0:
    os.close(reader)
    os.write(writer, b"hello from the child")
    signal.pause()
os.close(writer)
print(os.read(reader, 100))
os.kill(pid, signal.SIGSTOP)
_, status = os.waitpid(pid, os.WUNTRACED)
print(os.WIFSTOPPED(status), os.WSTOPSIG(status))
os.kill(pid, signal.SIGCONT)
os.kill(pid, signal.SIGUSR1)
info = os.waitid(os.P_PID, pid, os.WEXITED)
print(info.si_status, info.si_code == os.CLD_KILLED)
try:
    os.wait()
except ChildProcessError as error:
    print(error.strerror)
print(os.times().children_user >= 0)
