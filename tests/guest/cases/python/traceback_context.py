class Odd(Exception):
    def __str__(self):
        raise RuntimeError("bad str")
try:
    {}["k"]
except KeyError:
    raise Odd()
