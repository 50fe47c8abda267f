# Normalisation, categories, case, width, bidirectional marks, graphemes.
import textwrap
import unicodedata

for form in ("NFC", "NFD", "NFKC", "NFKD"):
    print(form, [hex(ord(c)) for c in unicodedata.normalize(form, "é①ﬁ")])
for char in "Aß中٣🧪\u200d\u0301":
    print(unicodedata.name(char), unicodedata.category(char), unicodedata.bidirectional(char),
          unicodedata.east_asian_width(char), unicodedata.numeric(char, None))
print("ß".upper(), "İ".lower().encode(), "ΣΑΣ".lower(), "ǆ".title(), "STRASSE".casefold() == "straße".casefold())
print(unicodedata.lookup("GREEK SMALL LETTER ALPHA"), "\N{SNOWMAN}", int("٣٤"), "²".isdigit(), "½".isnumeric())
print("žluťoučký kůň".translate(str.maketrans("žťůň", "ztun")), "abc".center(11, "·"))
print(textwrap.fill("Příliš žluťoučký kůň úpěl ďábelské ódy. " * 3, 40))
print(sorted(["čaj", "cukr", "Čech", "zebra", "žába"], key=str.casefold), "e\u0301" == "é")
