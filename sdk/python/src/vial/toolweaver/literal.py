"""literal - Python's own values where JSON has none, as the text that repr() makes of them.

Text that came from a sandbox is read here without eval() or ast, which a hostile text can crash:
tokens, a fixed table of types, and a bound on depth and size.
"""
from __future__ import annotations

import ast
import collections
import datetime
import decimal
import fractions
import math
import re
import uuid
from typing import Any, Callable, Dict, List, Tuple, Type

SIZE_MAX = 1 << 20  # characters that are read
DEPTH_MAX = 100
DIGITS_MAX = 4300

# Made by a call of their name, which repr() writes.
MAKERS: Dict[str, Callable[..., Any]] = {
    "set": set, "frozenset": frozenset, "bytearray": bytearray, "range": range,
    "datetime.datetime": datetime.datetime, "datetime.date": datetime.date,
    "datetime.time": datetime.time, "datetime.timedelta": datetime.timedelta,
    "datetime.timezone": datetime.timezone, "Decimal": decimal.Decimal,
    "Fraction": fractions.Fraction, "UUID": uuid.UUID, "OrderedDict": collections.OrderedDict,
    "Counter": collections.Counter, "deque": collections.deque,
}
# What is in them is written out: a range of 10**12, or a size, would be made large here.
CONTENTS: Dict[str, Tuple[Type[Any], ...]] = {
    "set": (list, set), "frozenset": (list, set), "deque": (list,), "OrderedDict": (list, dict),
    "Counter": (dict,), "bytearray": (bytes,),
}
NAMES: Dict[str, Any] = {
    "None": None, "True": True, "False": False, "inf": math.inf, "nan": math.nan,
    "Ellipsis": ..., "datetime.timezone.utc": datetime.timezone.utc,
}
# What makes the same names known to a program.
IMPORTS = """
import datetime
from collections import Counter, OrderedDict, defaultdict, deque
from decimal import Decimal
from fractions import Fraction
from math import inf, nan
from uuid import UUID
"""

_NUMBER = r"(?:\d+(?:\.\d+)?(?:e[-+]?\d+)?|inf|nan)"
_TOKEN = re.compile(
    r"""\s*(?:(?P<text>b?'(?:[^'\\]|\\.)*'|b?"(?:[^"\\]|\\.)*")"""
    r"|(?P<complex>\(-?%(n)s[-+]%(n)sj\))|(?P<number>-?%(n)sj?(?![\w.]))"
    r"|(?P<name>[A-Za-z_][\w.]*)|(?P<mark>[()\[\]{},:=]))" % {"n": _NUMBER}, re.DOTALL)
_ENDS = {"(": ")", "[": "]", "{": "}"}


def read(text: str) -> Any:
    """The value whose repr() the text is.  ValueError: it is not known how to make it."""
    if len(text) > SIZE_MAX:
        raise ValueError("too long")
    try:
        reader = _Reader(_tokens(text))
        value = reader.value(0)
        reader.take("")
        return value
    except (ArithmeticError, TypeError, SyntaxError, IndexError) as why:
        raise ValueError(str(why)) from None


def _tokens(text: str) -> List[Tuple[str, str]]:
    found, place, text = [], 0, text.rstrip()
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise ValueError("not a literal")
        kind = match.lastgroup or ""
        found.append((kind, match.group(kind)))
        place = match.end()
    return [*found, ("", "")]


class _Reader:
    def __init__(self, tokens: List[Tuple[str, str]]) -> None:
        self._tokens = tokens
        self._place = 0

    def take(self, mark: str) -> None:
        if self._tokens[self._place][1] != mark:
            raise ValueError("expected %r" % mark)
        self._place += 1

    def _is_next(self, mark: str) -> bool:
        return self._tokens[self._place][1] == mark

    def value(self, depth: int) -> Any:
        if depth > DEPTH_MAX:
            raise ValueError("too deep")
        kind, text = self._tokens[self._place]
        self._place += 1
        if kind == "text":
            return ast.literal_eval(text)
        if kind in ("number", "complex"):
            return _number(text)
        if kind == "name" and not self._is_next("("):
            if text not in NAMES:
                raise ValueError("not known: %s" % text)
            return NAMES[text]
        if kind == "name":
            return self._made(text, depth + 1)
        if text == "{":
            return self._braces(depth + 1)
        if text not in _ENDS:
            raise ValueError("not a literal")
        items, had_comma = self._items(_ENDS[text], depth + 1)
        if text == "[":
            return items
        return tuple(items) if had_comma or not items else items[0]

    def _items(self, end: str, depth: int) -> Tuple[List[Any], bool]:
        items, had_comma = [], False
        while not self._is_next(end):
            items.append(self.value(depth))
            if self._is_next(end):
                break
            self.take(",")
            had_comma = True
        self.take(end)
        return items, had_comma

    def _braces(self, depth: int) -> Any:
        if self._is_next("}"):
            self.take("}")
            return {}
        first = self.value(depth)
        if not self._is_next(":"):
            if not self._is_next("}"):
                self.take(",")
            return {first, *self._items("}", depth)[0]}
        made, key = {}, first
        while True:
            self.take(":")
            made[key] = self.value(depth)
            if not self._is_next("}"):
                self.take(",")
            if self._is_next("}"):
                self.take("}")
                return made
            key = self.value(depth)

    def _made(self, name: str, depth: int) -> Any:
        if name not in MAKERS:
            raise ValueError("not known: %s" % name)
        self.take("(")
        args, named = [], {}
        while not self._is_next(")"):
            kind, word = self._tokens[self._place]
            if kind == "name" and self._tokens[self._place + 1][1] == "=":
                self._place += 2
                named[word] = self.value(depth)
            else:
                args.append(self.value(depth))
            if not self._is_next(")"):
                self.take(",")
        self.take(")")
        of = CONTENTS.get(name)
        if of is not None and any(not isinstance(arg, of) for arg in args[:1]):
            raise ValueError("not a literal")
        return MAKERS[name](*args, **named)


def _number(text: str) -> Any:
    if len(text) > DIGITS_MAX:
        raise ValueError("too many digits")
    if text.endswith(("j", "j)")):
        return complex(text)
    return float(text) if re.search(r"[.en]", text) else int(text)


# ---- the other way ----

SCALARS: Tuple[Type[Any], ...] = (
    type(None), bool, int, float, complex, str, bytes, bytearray, range, type(...),
    datetime.datetime, datetime.date, datetime.time, datetime.timedelta, datetime.timezone,
    decimal.Decimal, fractions.Fraction, uuid.UUID)
FACTORIES = (bool, int, float, str, bytes, list, tuple, set, dict)  # the same there


def is_plain(value: Any, depth: int = 0) -> bool:
    """JSON says exactly this."""
    kind = type(value)
    if kind is float:
        return math.isfinite(value)
    if kind is str:
        return _is_unicode(value)
    if depth > DEPTH_MAX or kind not in (type(None), bool, int, list, dict):
        return False
    if kind is dict:
        return all(type(key) is str and _is_unicode(key) and is_plain(item, depth + 1)
                   for key, item in value.items())
    return kind is not list or all(is_plain(item, depth + 1) for item in value)


def _is_unicode(text: str) -> bool:
    """Whether it has no lone surrogates."""
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False


def write(value: Any, name_of: Callable[[Callable[..., Any]], str], depth: int = 0) -> str:
    """An expression that makes the value where IMPORTS are.  TypeError: there is none.

    `name_of` gives the name under which a function can be called there.
    """
    kind = type(value)
    if depth > DEPTH_MAX:
        raise TypeError("a value for the sandbox is nested too deeply, or contains itself")

    def inner(items: Any) -> str:
        return "".join(write(item, name_of, depth + 1) + ", " for item in items)

    if kind in SCALARS:
        return repr(value)
    if kind is list:
        return "[%s]" % inner(value)
    if isinstance(value, tuple):  # a named one is a tuple there
        return "(%s)" % inner(value)
    if kind in (set, frozenset):
        return "%s([%s])" % (kind.__name__, inner(value))
    if kind is collections.deque:
        return "deque([%s], %r)" % (inner(value), value.maxlen)
    if kind in (dict, collections.OrderedDict, collections.defaultdict, collections.Counter):
        return _write_dict(value, lambda item: write(item, name_of, depth + 1))
    if callable(value):
        return name_of(value)
    raise TypeError("%s cannot be given to the sandbox" % kind.__name__)


def _write_dict(value: Dict[Any, Any], written: Callable[[Any], str]) -> str:
    """Of one of their kinds."""
    made = "{%s}" % "".join("%s: %s, " % (written(key), written(item))
                            for key, item in value.items())
    if isinstance(value, collections.defaultdict):
        factory = value.default_factory
        known = factory.__name__ if factory in FACTORIES else written(factory)
        made = "%s, %s" % (known, made)
    return made if type(value) is dict else "%s(%s)" % (type(value).__name__, made)
