import sys, io
class Loud(io.StringIO):
    def __del__(self): sys.__stderr__.write('gone %r\n' % self.getvalue())
sys.stdout = Loud()
print('into it')
sys.stderr = open('errors.txt', 'w')
raise ValueError('elsewhere')
