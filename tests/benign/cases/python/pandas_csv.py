# pandas: reading and writing text files, types, dates, chunks, SQL.
import io
import sqlite3

import pandas as pd

frame = pd.read_csv("weather.csv", parse_dates=["day"], na_values=["?"])
print(frame, frame.dtypes, sep="\n")
print(frame.groupby("station").temperature.mean().round(2).to_dict())
frame.to_csv("out.csv", index=False, sep=";", decimal=",", date_format="%d.%m.%Y")
print(open("out.csv", encoding="utf-8").read())
again = pd.read_csv("out.csv", sep=";", decimal=",", parse_dates=["day"], dayfirst=True)
print(again.equals(frame))
print(frame.to_json(orient="records", date_format="iso", force_ascii=False))
print(sum(len(chunk) for chunk in pd.read_csv("weather.csv", chunksize=2)))
with sqlite3.connect(":memory:") as db:
    frame.to_sql("weather", db, index=False)
    print(pd.read_sql("SELECT station, count(*) AS n FROM weather GROUP BY station", db).to_dict("list"))
print(pd.read_csv(io.StringIO("a b\n1 2\n"), sep=r"\s+").to_dict("list"), frame.to_html().count("<td>"))
frame.to_pickle("frame.pkl")
print(pd.read_pickle("frame.pkl").equals(frame))
