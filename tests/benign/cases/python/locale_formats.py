# The C.UTF-8 locale: numbers, dates, sorting, and what is not installed.
import locale
import sys
import time

print(locale.setlocale(locale.LC_ALL, ""), locale.getlocale())
print(locale.getpreferredencoding(), sys.stdout.encoding, sys.getfilesystemencoding())
print(locale.format_string("%.2f", 1234567.891, grouping=True), locale.localeconv()["decimal_point"])
print(time.strftime("%A %d %B %Y %p", time.gmtime(0)))
print(sorted(["b", "A", "a", "B", "č"], key=locale.strxfrm))
try:
    locale.setlocale(locale.LC_ALL, "xx_YY.UTF-8")
except locale.Error as error:
    print(error)
print(locale.strcoll("a", "b") < 0, locale.atof("1.5"))
