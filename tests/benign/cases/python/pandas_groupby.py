# pandas: frames, grouping, pivoting, reshaping, printing.
import numpy as np
import pandas as pd

frame = pd.DataFrame({
    "city": ["Prague", "Brno", "Prague", "Plzeň", "Brno", "Prague"] * 4,
    "kind": ["a", "b"] * 12,
    "sales": np.arange(24) * 1.5,
    "count": pd.Series([3, None, 5, 7, 2, 1] * 4, dtype="Int64"),
})
print(frame.head(7))
print(frame.groupby("city")["sales"].agg(["sum", "mean", "max"]))
print(frame.groupby(["city", "kind"]).size().unstack(fill_value=0))
print(frame.pivot_table(index="city", columns="kind", values="sales", aggfunc="median"))
print(frame["count"].isna().sum(), frame["count"].sum(), frame.dtypes.to_dict())
print(frame.melt(id_vars="city", value_vars=["sales"]).groupby("city").value.sum().to_dict())
print(frame.describe().round(3))
print(frame.query("sales > 20 and kind == 'a'").sort_values("sales", ascending=False).city.tolist())
print(frame.groupby("kind").apply(lambda part: part.sales.max() - part.sales.min()).to_dict())
print(frame.city.str.upper().value_counts().to_dict(), frame.city.str.len().unique())
