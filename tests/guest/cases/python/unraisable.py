import sys
sys.unraisablehook = lambda u: print('unraisable', u.exc_type.__name__, u.err_msg)
class D:
    def __del__(self): raise KeyError('k')
D()
d = D()
