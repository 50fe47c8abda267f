import sys
if sys.version_info < (3, 11):
    raise SystemExit(0)
def f():
    raise ExceptionGroup("two", [ValueError(1), ExceptionGroup("inner", [TypeError("x")])])
f()
