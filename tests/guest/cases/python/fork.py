import os, sys, atexit
atexit.register(lambda: print('exit', os.getpid() == me))
me = os.getpid()
print('before', flush=True)
pid = os.fork()
if pid == 0:
    print('child')
    sys.exit(7)
print('parent', os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) if hasattr(os, 'waitstatus_to_exitcode') else 7)
