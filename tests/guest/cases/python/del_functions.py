import sys
class D:
    def __init__(self, n): self.n = n
    def __del__(self): print('del', self.n, sys is not None, print is not None, helper is None or helper())
def helper(): return 'helped'
x = D('x')
def f(y=D('default')): pass
