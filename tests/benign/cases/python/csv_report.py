# CSV with quotes, other dialects and dictionaries.
import csv
import io
import sys
from collections import defaultdict

totals = defaultdict(float)
with open("sales.csv", newline="", encoding="utf-8-sig") as file:
    for row in csv.DictReader(file):
        totals[row["region"]] += float(row["amount"])
        if "\n" in row["note"] or '"' in row["note"]:
            print(repr(row["note"]))
writer = csv.writer(sys.stdout, delimiter=";", lineterminator="\n")
writer.writerow(["region", "total"])
for region in sorted(totals):
    writer.writerow([region, f"{totals[region]:.2f}"])
print(csv.Sniffer().sniff("a\tb\tc\n1\t2\t3\n").delimiter == "\t")
memory = io.StringIO()
csv.writer(memory, quoting=csv.QUOTE_NONNUMERIC).writerows([["x", 1, 2.5], ['say "hi"', None, "a,b"]])
print(repr(memory.getvalue()))
