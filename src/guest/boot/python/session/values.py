"""values - what JSON can say of a value, and what can be said of it otherwise."""
import collections
import reprlib

from .channel import encode

SCALARS = frozenset({type(None), bool, int, float, str})
LISTS = frozenset({list, tuple})
DICTS = frozenset({dict, collections.OrderedDict, collections.defaultdict, collections.Counter})
KEYS = frozenset({str})
SEQUENCES = frozenset({str, bytes, bytearray})
CONTAINERS = LISTS | DICTS | {set, frozenset, collections.deque}
TEXT_BESIDE = 4096  # JSON of at most so many bytes has its repr beside it

_brief = reprlib.Repr()
_brief.maxlevel = 3
_brief.maxlist = _brief.maxtuple = _brief.maxdict = _brief.maxset = _brief.maxfrozenset = 100
_brief.maxstring = _brief.maxother = _brief.maxlong = 4000


class Inexact(Exception):
    """JSON cannot say this.  `is_large`: there is too much of it."""

    def __init__(self, text, is_large=False):
        super().__init__(text)
        self.is_large = is_large


def _is_number(value):
    """numpy's scalars are numbers, although of types of their own."""
    kind = type(value)
    return kind.__module__ == "numpy" and getattr(value, "shape", None) == () \
        and hasattr(value, "dtype") and value.dtype.kind in "biuf"


class _Leave:
    """A mark: all that is in this container has been seen."""

    def __init__(self, container):
        self.container = container


def _require_plain(value, limit):
    """Its types, all the way down.  What is in it twice counts as often as it would be written."""
    waiting, around, count = [value], set(), 1
    while waiting:
        item = waiting.pop()
        kind = type(item)
        if kind in LISTS:
            inner = item
        elif kind in DICTS:
            if not KEYS.issuperset(map(type, item)):
                raise Inexact("keys must be str")
            inner = item.values()
        elif kind is _Leave:
            around.discard(id(item.container))
            continue
        elif kind in SCALARS or _is_number(item):
            continue
        else:
            raise Inexact("%s is nothing that JSON has" % kind.__name__)
        count += len(inner)
        if count * 2 > limit:
            raise Inexact("more than %d bytes of JSON" % limit, is_large=True)
        if SCALARS.issuperset(map(type, inner)):
            continue
        if id(item) in around:
            raise Inexact("%s contains itself" % kind.__name__)
        around.add(id(item))
        waiting.append(_Leave(item))
        waiting.extend(inner)


def _to_plain(value):
    return value.item()


_encode = type(encode.__self__)(ensure_ascii=False, separators=(",", ":"), allow_nan=False,
                                default=_to_plain).encode


def to_json(value, limit):
    """The JSON text, exact but for tuples and numpy's scalars, which become lists and numbers."""
    if type(value) is str and len(value) > limit:
        raise Inexact("more than %d bytes of JSON" % limit, is_large=True)
    _require_plain(value, limit)
    try:
        text = _encode(value)
        size = len(text) if text.isascii() else len(text.encode())
    except (ValueError, RecursionError) as why:  # NaN, a lone surrogate, very long or deep
        raise Inexact(str(why)) from None
    if size > limit:
        raise Inexact("more than %d bytes of JSON" % limit, is_large=True)
    return text


def to_text(value, limit, is_large=False):
    """repr(), or why there is none; and whether it was cut.  Of what is large only a part is
    looked at."""
    kind = type(value)
    is_large = is_large or (kind in SEQUENCES | CONTAINERS and len(value) > limit)
    try:
        if is_large and kind in CONTAINERS:
            text = _brief.repr(value)
        else:
            text = repr(value[:limit]) if is_large and kind in SEQUENCES else repr(value)
    except KeyboardInterrupt:
        raise
    except BaseException as why:
        if kind is int:  # too many digits for Python
            text = hex(value)
        else:
            text = "<%s: repr() raised %s>" % (kind.__name__, type(why).__name__)
    text, was_cut = cut(text, limit)
    return text, was_cut or is_large


def cut(text, limit):
    """At most `limit` bytes as a JSON string, and no lone surrogates.  Says whether it was cut."""
    text = clean(text[:limit + 1])
    was_cut = len(encode(text).encode()) > limit
    if was_cut:
        # The worst character is 6 bytes of JSON; as much of the rest as fits is not worth the search.
        text = text[:limit] if len(encode(text[:limit]).encode()) <= limit else text[:limit // 6]
    return text, was_cut


def clean(text):
    """`text` as Unicode has it: exactly str, no lone surrogates."""
    try:
        text.encode()
        return str.__str__(text)
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode()
