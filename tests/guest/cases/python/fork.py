import os, sys, atexit
atexit.register(lambda: print('exit', os.getpid() == me))
me = os.getpid()
print('before', flush=True)
pid = os.fork()
if pid == 0:
    print('child')
    sys.exit(7)
print('parent', os.WEXITSTATUS(os.waitpid(pid, 0)[1]))
