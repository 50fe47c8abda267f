import sqlite3
d = sqlite3.connect('x.db'); d.execute('create table t (a)'); d.execute('insert into t values (1)'); d.commit(); print(d.execute('select * from t').fetchall())
