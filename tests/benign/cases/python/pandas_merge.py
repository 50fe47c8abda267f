# pandas: joins, concatenation, missing values, categories.
import pandas as pd

people = pd.DataFrame({"id": [1, 2, 3, 4], "name": ["Ada", "Bob", "Cy", "Dee"]})
orders = pd.DataFrame({"person": [1, 1, 3, 9], "item": ["pen", "ink", "pad", "cup"], "price": [2.5, 4, 3, 8]})
for how in ("inner", "left", "outer"):
    print(people.merge(orders, left_on="id", right_on="person", how=how, indicator=True))
print(pd.concat([people, people.tail(1)], ignore_index=True).drop_duplicates().shape)
wide = people.set_index("id").join(orders.groupby("person").price.agg(["sum", "count"]))
print(wide.fillna(0).astype({"count": int}))
size = pd.Categorical(["small", "big", "small"], categories=["small", "big"], ordered=True)
print(pd.Series(size).sort_values().tolist(), size.codes, pd.get_dummies(size).sum().to_dict())
print(pd.cut([1, 7, 5, 4, 6, 3], bins=3, labels=["low", "mid", "high"]).tolist())
print(pd.Series([1, None, 3, None, 5]).interpolate().tolist(), pd.Series([1, 2, 4]).pct_change().tolist())
try:
    people.merge(orders, on="missing")
except KeyError as error:
    print("KeyError", error)
