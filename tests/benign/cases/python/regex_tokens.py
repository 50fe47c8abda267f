# Regular expressions: a tokenizer, named groups, substitution, lookaround, unicode.
import re

TOKEN = re.compile(r"""
    (?P<number>\d+(\.\d+)?) | (?P<name>[^\W\d]\w*) | (?P<operator>[-+*/=()])
  | (?P<space>\s+) | (?P<other>.)""", re.VERBOSE)


def tokens(text):
    for match in TOKEN.finditer(text):
        if match.lastgroup != "space":
            yield match.lastgroup, match.group()


print(list(tokens("délka = 3.14*(x1 - 42) ?")))
print(re.sub(r"(\w+)@(\w+)\.com", r"\2 at \1", "me@site.com you@home.com"))
print(re.sub(r"\d+", lambda m: str(int(m[0]) * 2), "3 apples and 12 pears"))
print(re.findall(r"(?<=\$)\d+(?=\.)", "$12.50 $7.00 9.99"), re.split(r"[,;]\s*", "a, b;c"))
print(re.match(r"(a+)+$", "a" * 20 + "b"), bool(re.fullmatch(r"\w+", "ŽÁR", re.ASCII)))
print(re.findall(r"(?i)straße|STRASSE", "Straße strasse"), re.escape("a.b*c"))
print(re.search(r"(?P<year>\d{4})-(?P<month>\d\d)", "on 2024-03-01").groupdict())
try:
    re.compile("(unclosed")
except re.error as error:
    print(error)
