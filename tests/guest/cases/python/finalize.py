import weakref, atexit
class A: pass
a = A()
weakref.finalize(a, print, 'finalized')
b = A()
weakref.finalize(b, print, 'too early'); del b
atexit.register(print, 'atexit')
