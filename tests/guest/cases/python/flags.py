import sys, gc, warnings, signal, os, site
print(sys.flags)
print(gc.isenabled(), gc.get_threshold(), gc.get_debug(), sys.getrecursionlimit(), sys.getswitchinterval())
print([f for f in warnings.filters], warnings.showwarning)
print(sys.excepthook, sys.unraisablehook, sys.displayhook, sys.breakpointhook)
print(sys.gettrace(), sys.getprofile(), sys.warnoptions, sys._xoptions, sys.dont_write_bytecode)
print([(s, signal.getsignal(s)) for s in sorted(signal.valid_signals())], signal.pthread_sigmask(signal.SIG_BLOCK, []))
print(site.ENABLE_USER_SITE, exit, quit, copyright, credits, license, help)
print(os.getcwd(), os.umask(0o22), sorted(n for n in vars(sys) if n not in ('last_type',)))
