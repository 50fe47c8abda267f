import sys
def profiler(frame, event, arg):
    if frame.f_code.co_filename.endswith('main.py'):
        print(event, frame.f_code.co_name)
sys.setprofile(profiler)
len('x')
