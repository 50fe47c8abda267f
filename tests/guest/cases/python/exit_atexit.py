import atexit, sys, traceback
def first(): print('first'); traceback.print_stack()
def second(): raise ValueError('in atexit')
def third(): sys.exit(5)
atexit.register(first)
atexit.register(second)
atexit.register(third)
atexit.register(lambda: print('last registered', __name__, x))
x = 1
print(sys.is_finalizing())
sys.exit(2)
