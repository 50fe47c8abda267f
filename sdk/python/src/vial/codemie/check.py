"""check - code against a policy, by its syntax tree: what it says, not what its text looks like.

No part of the isolation: the sandbox is that.  It is there so that code is refused before it runs,
with reasons that its author understands.
"""
from __future__ import annotations

import ast
import builtins
import io
import re
import tokenize
from dataclasses import dataclass
from typing import Dict, Iterator, List, Optional, Set, Tuple

from .policy import SecurityIssueSeverity, SecurityPolicy


@dataclass(frozen=True)
class Violation:
    severity: SecurityIssueSeverity
    description: str


def find_violations(code: str, policy: Optional[SecurityPolicy]) -> List[Violation]:
    """What the policy refuses in it, each thing once, in the order of the code."""
    if policy is None or policy.severity_threshold <= SecurityIssueSeverity.SAFE:
        return []
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as why:
        return [Violation(SecurityIssueSeverity.HIGH, "Invalid Python syntax: %s" % why)]
    found: Dict[Violation, int] = {}
    names = _Names(tree)
    for line, violation in (*_modules(names, policy), *_uses(names, policy),
                            *_patterns(code, policy)):
        if policy.blocks(violation.severity):
            found.setdefault(violation, line)
    return sorted(found, key=lambda violation: found[violation])


Found = Tuple[int, Violation]


def _modules(names: _Names, policy: SecurityPolicy) -> Iterator[Found]:
    rows = {module.name: module for module in policy.restricted_modules}
    for module, line in names.imports:
        parts = module.split(".")
        for count in range(1, len(parts) + 1):
            row = rows.get(".".join(parts[:count]))
            if row is not None:
                yield line, Violation(row.severity, _worded(row.description, row.name))
                break


def _uses(names: _Names, policy: SecurityPolicy) -> Iterator[Found]:
    for used, line in names.uses:
        full = "__builtins__" if used.startswith("__builtins__.") else used
        row = policy.uses.get(full)
        if row is not None:
            severity, text = row
            shown = full.replace("[]", "")
            yield line, Violation(severity, _worded(text, shown))


def _worded(description: str, name: str) -> str:
    return description if name in description else "%s (%s)" % (description, name)


def _patterns(code: str, policy: SecurityPolicy) -> Iterator[Found]:
    if not policy.patterns:
        return
    bare = blank_texts(code)
    for row in policy.patterns:
        match = re.search(row.pattern, bare)
        if match:
            yield bare.count("\n", 0, match.start()) + 1, Violation(row.severity, row.description)


class _Names(ast.NodeVisitor):
    """What code imports, and what it uses of modules and builtins.

    A name stands for a builtin unless the code gives it another meaning anywhere.
    """

    def __init__(self, tree: ast.AST) -> None:
        self.imports: List[Tuple[str, int]] = []
        self.uses: List[Tuple[str, int]] = []
        self._means: Dict[str, str] = {}
        self._bound: Set[str] = set()
        for node in ast.walk(tree):
            self._take(node)
        self.visit(tree)

    def _take(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                self.imports.append((alias.name, node.lineno))
                shown = alias.name if alias.asname else alias.name.split(".")[0]
                self._means[alias.asname or shown] = shown
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            self.imports.append((node.module, node.lineno))
            for alias in node.names:
                full = "%s.%s" % (node.module, alias.name)
                self._means[alias.asname or alias.name] = full
                self._add(full, node.lineno)
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            self._bound.add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            self._bound.add(node.name)
        elif isinstance(node, ast.arg):
            self._bound.add(node.arg)

    def _add(self, full: str, line: int) -> None:
        self.uses.append((full[len("builtins."):] if full.startswith("builtins.") else full, line))

    def _full(self, node: ast.AST) -> Optional[str]:
        """`os.path.join` of such a node."""
        if isinstance(node, ast.Attribute):
            inner = self._full(node.value)
            return "%s.%s" % (inner, node.attr) if inner else None
        if not isinstance(node, ast.Name):
            return None
        if node.id == "__builtins__" or node.id in self._means:
            return self._means.get(node.id, node.id)
        return node.id if hasattr(builtins, node.id) and node.id not in self._bound else None

    def _use(self, node: ast.AST, line: int, suffix: str = "") -> None:
        full = self._full(node)
        if full:
            self._add(full + suffix, line)

    def visit_Name(self, node: ast.Name) -> None:
        self._use(node, node.lineno)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self._use(node, node.lineno)
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self._use(node.value, node.lineno, "[]")
        self.generic_visit(node)


def blank_texts(code: str) -> str:
    """The code without its strings and comments, everything else at its place."""
    lines = code.splitlines(True)
    kinds = {tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", -1)}
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type not in kinds:
            continue
        (first, start), (last, stop) = token.start, token.end
        for row in range(first - 1, last):
            left = start if row == first - 1 else 0
            right = stop if row == last - 1 else len(lines[row].rstrip("\n"))
            lines[row] = lines[row][:left] + " " * (right - left) + lines[row][right:]
    return "".join(lines)
