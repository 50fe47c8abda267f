"""_callbacks - functions of this process that a program in a sandbox may call.

Arguments and values are what JSON has.  An exception travels to the program under the name of its
type; when the program lets it pass, `Failures` finds the object again that was raised here.
"""
from __future__ import annotations

import inspect
from collections import deque
from typing import Any, Callable, Deque, Dict, List, Mapping, Optional, Tuple, Union

from ._exchange import encode
from .events import Call
from .results import ExceptionInfo

Callback = Callable[..., Any]
Callbacks = Union[Mapping[str, Callback], "list[Callback]", "tuple[Callback, ...]"]
KEPT = 100


def by_name(callbacks: Optional[Callbacks]) -> Optional[Dict[str, Callback]]:
    """A mapping; of a list, by the functions' own names."""
    if callbacks is None:
        return None
    if isinstance(callbacks, Mapping):
        made = dict(callbacks)
    else:
        made = {function.__name__: function for function in callbacks}
    for name, function in made.items():
        if not name.isidentifier():
            raise ValueError("a callback's name must be an identifier, not %r" % name)
        if not callable(function):
            raise TypeError("the callback %r is not callable" % name)
    return made


def is_async(function: Callback) -> bool:
    return inspect.iscoroutinefunction(function) \
        or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def call_in_thread(function: Callback, call: Call) -> Tuple[Any, Optional[Exception]]:
    """Its value, or what it raised.

    Futures do not take every exception, and make others of some.  What no coroutine can raise, or
    would end more than the call, is the cause of a RuntimeError.
    """
    try:
        return function(*call.args, **call.kwargs), None
    except BaseException as error:
        if isinstance(error, Exception) and not isinstance(error, StopIteration):
            return None, error
        what = type(error).__name__
        made = RuntimeError("the callback %s raised %s" % (call.name, what))
        made.__cause__ = error
        return None, made


def message_of(error: BaseException) -> str:
    """What the exception was made of, where that is one text: str() of a KeyError is not."""
    is_text = len(error.args) == 1 and isinstance(error.args[0], str)
    text: str = error.args[0] if is_text else str(error)
    return text.encode("utf-8", "backslashreplace").decode()  # JSON has no lone surrogates


def returned(name: str, value: Any) -> bytes:
    """The answer to a call that gave a value."""
    try:
        return encode({"value": value})
    except (TypeError, ValueError, RecursionError) as why:
        raise TypeError("the callback %s returned what JSON cannot say: %s" % (name, why)) from None


def _base_of(error: BaseException) -> str:
    """The nearest class above it that Python has, by which the program may catch it."""
    return next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins")


class Failures:
    """Exceptions of callbacks, by what the program will have called them."""

    def __init__(self) -> None:
        self._kept: Deque[Tuple[str, str, BaseException]] = deque(maxlen=KEPT)

    def raised(self, error: BaseException) -> bytes:
        """The answer to a call that failed."""
        name, message = type(error).__name__, message_of(error)
        self._kept.append((name, message, error))
        return encode({"error": {"type": name, "message": message, "base": _base_of(error)}})

    def find(self, told: Optional[ExceptionInfo]) -> Optional[BaseException]:
        """The one that the program ended with."""
        if told is None:
            return None
        for name, message, error in reversed(self._kept):
            if told.type == name and told.message in (message, repr(message)):
                return error
            if told.type == "CallbackError" and told.message == "%s: %s" % (name, message):
                return error
        return None


def unknown(call: Call) -> bytes:
    message = "there is no callback %s" % call.name
    return encode({"error": {"type": "NameError", "message": message}})


def declared(callbacks: Optional[Dict[str, Callback]]) -> Optional[List[Dict[str, str]]]:
    """What the program is told of them.

    A plain one is that in an event loop, too.  An asynchronous one is awaited there, and gives its
    value where nobody can await it.
    """
    if callbacks is None:
        return None
    return [{"name": name} if is_async(function) else {"name": name, "kind": "sync"}
            for name, function in callbacks.items()]
