import time
print(time.tzname, time.timezone, time.strftime('%H %Z', time.localtime(0)))
