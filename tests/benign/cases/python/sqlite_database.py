# sqlite3: a file with a journal, transactions, joins, functions, full text, a second process.
import os
import sqlite3
import subprocess
import sys

db = sqlite3.connect("shop.db")
db.execute("PRAGMA journal_mode=WAL")
db.execute("PRAGMA foreign_keys=ON")
db.executescript("""
    CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT UNIQUE);
    CREATE TABLE item (customer INTEGER REFERENCES customer, what TEXT, price REAL);
    CREATE INDEX item_what ON item (what);
""")
with db:
    db.executemany("INSERT INTO customer (name) VALUES (?)", [("Ada",), ("Žofie",), ("李",)])
    db.executemany("INSERT INTO item VALUES (?, ?, ?)",
                   [(n % 3 + 1, f"thing {n}", n * 1.25) for n in range(200)])
query = """SELECT name, count(*), round(sum(price), 2) FROM customer JOIN item
           ON customer.id = item.customer GROUP BY name ORDER BY name"""
print(db.execute(query).fetchall())
try:
    with db:
        db.execute("DELETE FROM item")
        db.execute("INSERT INTO customer (name) VALUES ('Ada')")
except sqlite3.IntegrityError as error:
    print(error)
print(db.execute("SELECT count(*) FROM item").fetchone())
db.create_function("reverse", 1, lambda text: text[::-1])
print(db.execute("SELECT reverse(name) FROM customer WHERE id = 1").fetchone())
db.execute("CREATE VIRTUAL TABLE note USING fts5(body)")
db.executemany("INSERT INTO note VALUES (?)", [("the quick fox",), ("a slow fox",), ("dogs",)])
print(db.execute("SELECT body FROM note WHERE note MATCH 'fox' ORDER BY rowid").fetchall())
db.commit()
code = "import sqlite3; print(sqlite3.connect('shop.db').execute('SELECT max(price) FROM item').fetchone())"
print(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip())
db.close()
print(os.path.getsize("shop.db") > 8192, sqlite3.connect("shop.db").execute("PRAGMA integrity_check").fetchone())
