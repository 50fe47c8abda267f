"""failure - exceptions as data, and as the traceback that a fresh interpreter would have shown."""
import linecache
import sys
import traceback

from .interrupt import is_ours
from .values import clean, cut

MESSAGE_MAX = 1 << 16
TRACEBACK_MAX = 1 << 18
SOURCE_MAX = 1000
FRAMES_MAX = 100
CAUSES_MAX = 10


def _related(exception):
    """Its causes, all that a traceback shows."""
    found, waiting = [], [exception]
    while waiting:
        one = waiting.pop()
        if one is None or any(one is other for other in found):
            continue
        found.append(one)
        waiting += [one.__cause__, one.__context__]
        waiting += getattr(one, "exceptions", ()) if hasattr(one, "derive") else ()
    return found


def strip(exception):
    """Take our frames out of its traceback, and out of its causes'."""
    for one in _related(exception):
        frames = []
        entry = one.__traceback__
        while entry is not None:
            if not is_ours(entry.tb_frame.f_code):
                frames.append(entry)
            entry = entry.tb_next
        for entry, following in zip(frames, frames[1:] + [None]):
            if entry.tb_next is not following: # each time it looks for a loop in all that follows
                entry.tb_next = following
        one.__traceback__ = frames[0] if frames else None


def _text_of(function, otherwise):
    """What functions of the program say; they may fail."""
    try:
        return clean(function())
    except KeyboardInterrupt:
        raise
    except BaseException as why:
        return otherwise % type(why).__name__


def _frames(exception):
    entries = []
    entry = exception.__traceback__
    while entry is not None:
        entries.append((entry.tb_frame, entry.tb_lineno))
        entry = entry.tb_next
    if len(entries) > FRAMES_MAX:
        entries[FRAMES_MAX // 2:-FRAMES_MAX // 2] = []
    return [{"file": clean(frame.f_code.co_filename), "line": line,
             "name": clean(frame.f_code.co_name),
             "source": cut(linecache.getline(frame.f_code.co_filename, line,
                                             frame.f_globals).strip(), SOURCE_MAX)[0]}
            for frame, line in entries]


def _line(exception, frames, name):
    """Where in this step."""
    if isinstance(exception, SyntaxError) and exception.filename == name:
        return exception.lineno
    lines = [frame["line"] for frame in frames if frame["file"] == name]
    return lines[-1] if lines else None


def _cut_middle(text):
    if len(text) <= TRACEBACK_MAX:
        return text
    half = TRACEBACK_MAX // 2
    return "%s\n  ...\n%s" % (text[:half], text[-half:])


def _describe_one(exception, name):
    kind = type(exception)
    frames = _frames(exception)
    message = _text_of(lambda: str(exception), "<str() raised %s>")
    return {"type": clean(kind.__name__), "module": clean(str(kind.__module__)),
            "message": cut(message, MESSAGE_MAX)[0],
            "line": _line(exception, frames, name), "frames": frames}


def _cause_of(exception):
    if exception.__cause__ is not None:
        return exception.__cause__
    return None if exception.__suppress_context__ else exception.__context__


def _format(exception):
    lines = traceback.format_exception(type(exception), exception, exception.__traceback__)
    return "".join(lines)


def describe(exception, name):
    """The `exception` of a result, for the step of this name.  Runs code of the program."""
    strip(exception)
    told = _describe_one(exception, name)
    told["traceback"] = _cut_middle(_text_of(lambda: _format(exception),
                                             "<the traceback cannot be shown: %s>\n"))
    seen, outer, one = {id(exception)}, told, _cause_of(exception)
    while one is not None and id(one) not in seen and len(seen) <= CAUSES_MAX:
        outer["cause"] = _describe_one(one, name)
        outer = outer["cause"]
        seen.add(id(one))
        one = _cause_of(one)
    return told


def brief(exception):
    """As much as can be said without running code of the program."""
    name = clean(type(exception).__name__)
    return {"type": name, "module": clean(str(type(exception).__module__)), "message": "",
            "traceback": name + "\n", "line": None, "frames": []}


def show(exception):
    sys.stderr.write(_format(exception))
