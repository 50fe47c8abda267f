import sys
def tracer(frame, event, arg):
    if frame.f_code.co_filename.endswith('main.py'):
        print(event, frame.f_code.co_name)
    return tracer
def f(): return 1
sys.settrace(tracer)
f()
