# Not known to the collector, and of a kind that is not known to be harmless.
import array
import datetime
import mmap
import os

numbers = array.array("i", range(10))
today = datetime.date(2020, 1, 1)
pages = mmap.mmap(-1, 4096)
pages[:2] = b"hi"
entries = os.scandir(".")
print(pages[:2], sum(numbers), today)
