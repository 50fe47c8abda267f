# Calendars, arithmetic, parsing and time zones from the system's own database.
import calendar
import os
import time
from datetime import date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

moment = datetime(2024, 3, 10, 6, 30, tzinfo=timezone.utc)
for name in ("Europe/Prague", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "UTC"):
    local = moment.astimezone(ZoneInfo(name))
    print(local.isoformat(), local.tzname(), local.dst())
print(datetime(2024, 11, 3, 1, 30, fold=1, tzinfo=ZoneInfo("America/New_York")).utcoffset())
print(date(2024, 2, 29) + timedelta(days=365), date(2024, 1, 1).isocalendar(), date(2000, 1, 1).strftime("%A %j %U"))
print(datetime.strptime("07 Mar 2021 23:05:09.25", "%d %b %Y %H:%M:%S.%f"), datetime.fromisoformat("2020-01-02T03:04:05+02:00"))
print(timedelta(hours=-1), timedelta(days=1.5).total_seconds(), datetime.max)
print(calendar.month(2024, 2), calendar.isleap(1900), calendar.timegm((1970, 1, 2, 0, 0, 0)))
os.environ["TZ"] = "Europe/Prague"
time.tzset()
print(time.tzname, time.strftime("%H:%M %Z", time.localtime(0)), time.mktime((2000, 7, 1, 12, 0, 0, 0, 0, -1)))
os.environ["TZ"] = "XYZ-3:30"
time.tzset()
print(time.strftime("%c %z", time.localtime(86400)))
try:
    ZoneInfo("Mars/Olympus")
except ZoneInfoNotFoundError as error:
    print(error)
