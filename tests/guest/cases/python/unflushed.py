import typing, logging, functools
f = open('plain.txt', 'w'); f.write('plain')
class C:
    def m(self): return f
x: typing.List[C] = []
y = typing.Dict[str, C]
g = open('kept.txt', 'w'); g.write('kept')
@functools.lru_cache(None)
def cached(): return g
cached()
class H(logging.Handler):
    def emit(self, record): h.write(record.getMessage())
h = open('logged.txt', 'w')
logging.getLogger().addHandler(H())
logging.warning('logged')
cyclic = [open('cyclic.txt', 'w')]; cyclic.append(cyclic); cyclic[0].write('cyclic'); del cyclic
import json
json.held = open('held.txt', 'w'); json.held.write('held')
import signal
signal.signal(signal.SIGUSR1, lambda *a: C)
