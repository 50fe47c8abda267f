import concurrent.futures as c
with c.ThreadPoolExecutor(2) as p: print(list(p.map(len, ['a', 'bb'])))
pool = c.ThreadPoolExecutor(1); print(pool.submit(pow, 2, 5).result())
