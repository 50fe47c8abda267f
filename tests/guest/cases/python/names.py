import sys
print(sorted(globals()))
print(__name__, __file__, __spec__, __doc__, __package__, type(__loader__).__name__, __builtins__)
print(__loader__.path, __loader__.name, __annotations__ if '__annotations__' in globals() else None)
print(sorted(vars(sys.modules['__main__'])) == sorted(globals()))
print(__cached__ if '__cached__' in globals() else 'no')
import main
print(main.__name__, main.__file__)
