import multiprocessing as m, sys
def f(x): return (x, __name__, sys.argv, sys.path[0] != '')
if __name__ == '__main__':
    m.set_start_method('spawn')
    with m.Pool(1) as p: print(p.map(f, [1]))
