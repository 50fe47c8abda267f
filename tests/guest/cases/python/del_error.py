class D:
    def __del__(self): raise ValueError('in del')
d = D()
