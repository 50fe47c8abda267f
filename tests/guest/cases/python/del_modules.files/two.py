from one import D
import one
def f(): return one
f.self = f
one.c = D('one.c')
