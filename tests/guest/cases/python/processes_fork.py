import multiprocessing as m
def f(x): return x * x
if __name__ == '__main__':
    m.set_start_method('fork')
    with m.Pool(2) as p: print(p.map(f, range(5)))
    q = m.Queue(); p = m.Process(target=q.put, args=(1,)); p.start(); print(q.get()); p.join(); print(p.exitcode)
