"""validation - code is looked at before it runs, and refused for what it names."""
from __future__ import annotations

import ast
from typing import Collection, Iterator, Optional

from .models import SandboxSecurityError

FORBIDDEN_MODULES = frozenset(
    ("os", "sys", "subprocess", "socket", "requests", "shutil", "tempfile", "pickle"))
FORBIDDEN_FUNCTIONS = frozenset(
    ("eval", "exec", "compile", "__import__", "open", "input", "globals", "locals", "vars", "dir"))
PROTECTED = frozenset(("__builtins__", "__globals__", "__dict__"))


def validate_code(code: str, allowed: Optional[Collection[str]] = None) -> None:
    """Raise SandboxSecurityError for the first thing that is forbidden.

    `allowed` are modules that may be imported all the same.
    """
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError) as why:
        raise SandboxSecurityError("Syntax error: %s" % why) from why
    except (RecursionError, MemoryError) as why:
        raise SandboxSecurityError("Syntax error: nested too deeply") from why
    for node in sorted(ast.walk(tree), key=_place):
        for complaint in _complaints(node, allowed or ()):
            raise SandboxSecurityError(complaint)


def _place(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def _complaints(node: ast.AST, allowed: Collection[str]) -> Iterator[str]:
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
        yield from _imports(names, allowed)
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        yield from _imports([node.module], allowed)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) \
            and node.func.id in FORBIDDEN_FUNCTIONS:
        yield "Forbidden function: %s" % node.func.id
    elif isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)) \
            and node.id in PROTECTED:
        yield "Cannot modify: %s" % node.id
    elif isinstance(node, ast.Name) and node.id == "__builtins__":
        yield "Direct __builtins__ access forbidden"


def _imports(names: list[str], allowed: Collection[str]) -> Iterator[str]:
    for name in names:
        base = name.split(".")[0]
        if base in FORBIDDEN_MODULES and base not in allowed and name not in allowed:
            yield "Forbidden import: %s" % name
