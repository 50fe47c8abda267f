# pandas: date ranges, resampling, rolling windows, time zones, periods.
import numpy as np
import pandas as pd

index = pd.date_range("2024-03-29", periods=96, freq="H", tz="Europe/Prague")
series = pd.Series(np.arange(96.0), index=index)
print(series.resample("D").agg(["sum", "count"]))
print(series.rolling(24).mean().dropna().iloc[[0, -1]].tolist(), series.ewm(span=10).mean().iloc[-1].round(8))
print(series.tz_convert("UTC").index[:2].tolist())
print(series.between_time("02:00", "03:00").size, series.shift(1).isna().sum())
days = pd.bdate_range("2024-02-26", "2024-03-05")
print(days.strftime("%a %d").tolist(), pd.Period("2024-02", "M").end_time, pd.Timedelta("1 days 2:30:00"))
print(pd.to_datetime(["2024-01-05", "bad"], errors="coerce").tolist(), pd.Timestamp(0, unit="s", tz="UTC"))
print(series.groupby(series.index.day).max().to_dict())
print(pd.date_range("2024-01-31", periods=4, freq="M").astype(str).tolist())
