import sys, builtins
class D:
    def __init__(self, n): self.n = n
    def __del__(self): print('del', self.n)
x = D('x')
sys.keeper = D('sys')
builtins.keeper = D('builtins')
sys.excepthook = lambda *a: None
f = open('data.txt', 'w'); f.write('data')
