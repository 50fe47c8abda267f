"""exceptions - ToolException: LangChain's own where it is installed."""
from __future__ import annotations

import importlib.util


class _ToolException(Exception):
    """A tool could not do what it was asked to; the text is for the model."""


_ToolException.__name__ = _ToolException.__qualname__ = "ToolException"


def _find() -> type[Exception]:
    if importlib.util.find_spec("langchain_core") is not None:
        try:
            from langchain_core.tools import ToolException as theirs
            if isinstance(theirs, type) and issubclass(theirs, Exception):
                return theirs
        except ImportError:
            pass
    return _ToolException


ToolException = _find()
