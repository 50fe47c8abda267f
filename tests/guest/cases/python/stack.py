import inspect, sys, traceback
def f():
    traceback.print_stack()
    print([(i.filename, i.lineno, i.function) for i in inspect.stack()])
    frame, depth = sys._getframe(), 0
    while frame:
        frame, depth = frame.f_back, depth + 1
    print(depth)
f()
print(sys._getframe().f_back, sys._current_frames().__len__(), sys.exc_info())
