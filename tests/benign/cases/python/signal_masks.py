# Blocking, waiting, queued values and the wake-up descriptor.
import os
import signal
import socket

previous = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGUSR2})
print(previous)
os.kill(os.getpid(), signal.SIGUSR1)
print(signal.sigpending() == {signal.SIGUSR1}, signal.sigwait({signal.SIGUSR1}).name)
child = os.fork()
if child == 0:
    os.kill(os.getppid(), signal.SIGUSR2)
    os._exit(0)
info = signal.sigwaitinfo({signal.SIGUSR2})
print(info.si_signo == signal.SIGUSR2, info.si_pid == child)
os.waitpid(child, 0)
print(signal.sigtimedwait({signal.SIGUSR2}, 0.01))
signal.pthread_sigmask(signal.SIG_SETMASK, previous)
left, right = socket.socketpair()
right.setblocking(False)
signal.set_wakeup_fd(right.fileno())
signal.signal(signal.SIGHUP, lambda *_: None)
os.kill(os.getpid(), signal.SIGHUP)
print(left.recv(1) == bytes([signal.SIGHUP]))
signal.set_wakeup_fd(-1)
