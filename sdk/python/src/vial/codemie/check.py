"""check - code against a policy, by its syntax tree: what it says, not what its text looks like.

No part of the isolation: the sandbox is that.  It is there so that code is refused before it runs,
with reasons that its author understands.
"""
from __future__ import annotations

import ast
import builtins
import codecs
import io
import re
import tokenize
from dataclasses import dataclass
from typing import Dict, Iterator, List, Optional, Sequence, Set, Tuple, Union

from .policy import SecurityIssueSeverity, SecurityPolicy


@dataclass(frozen=True)
class Violation:
    severity: SecurityIssueSeverity
    description: str


def find_violations(code: str, policy: Optional[SecurityPolicy]) -> List[Violation]:
    """What the policy refuses in it, each thing once, in the order of the code."""
    if policy is None or policy.severity_threshold <= SecurityIssueSeverity.SAFE:
        return []
    coding = _coding(code)
    if coding:  # an interpreter that reads it differently would see another program
        return [Violation(SecurityIssueSeverity.HIGH,
                          "Source encoding %s: only UTF-8 is read" % coding)]
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


def _coding(code: str) -> Optional[str]:
    """The encoding that the code names for itself, as whoever runs its file finds it, if that is
    not UTF-8."""
    lines = code.replace("\r\n", "\n").replace("\r", "\n").encode("utf-8", "surrogatepass")
    try:
        name, _ = tokenize.detect_encoding(io.BytesIO(lines).readline)
    except SyntaxError:
        return "unknown"
    return None if codecs.lookup(name).name in ("utf-8", "utf-8-sig", "ascii") else name


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
    bare, quoted = blank_texts(code), blank_texts(code, strings=False)
    for row in policy.patterns:
        # Who asks for a quotation mark means what is said in strings.
        match = re.search(row.pattern, quoted if re.search("[\"']", row.pattern) else bare)
        if match:
            yield bare.count("\n", 0, match.start()) + 1, Violation(row.severity, row.description)


class _Names(ast.NodeVisitor):
    """What code imports, and what it uses of modules and builtins.

    A name stands for a builtin unless it surely means something else where it is used.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.imports: List[Tuple[str, int]] = []
        self.uses: List[Tuple[str, int]] = []
        self._means: Dict[str, str] = {}
        self._deleted: Set[str] = set()
        self._locals: List[Set[str]] = []  # of the functions around
        for node in ast.walk(tree):
            self._take(node)
        self._bound = self._bound_by(tree)
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
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Del):
            self._deleted.add(node.id)

    def _bound_by(self, tree: ast.Module) -> Dict[str, int]:
        """What the module itself gives a meaning, whatever its conditions say, and where."""
        bound: Dict[str, int] = {}
        for node in tree.body:
            if isinstance(node, (*_BLOCKS, ast.Import, ast.ImportFrom, ast.Assign)):
                for name in _names_of(node) - self._deleted:
                    bound.setdefault(name, node.end_lineno or node.lineno)
        return bound

    def _is_builtin(self, node: ast.Name) -> bool:
        """Whether it may mean the builtin of that name."""
        return hasattr(builtins, node.id) and not any(node.id in names for names in self._locals) \
            and self._bound.get(node.id, node.lineno) >= node.lineno

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
        return node.id if self._is_builtin(node) else None

    def _use(self, node: ast.AST, line: int, suffix: str = "") -> None:
        full = self._full(node)
        if full:
            self._add(full + suffix, line)

    def visit_FunctionDef(self, node: _Function) -> None:
        arguments = node.args
        body: List[ast.AST] = [node.body] if isinstance(node, ast.Lambda) else [*node.body]
        for part in ast.iter_child_nodes(node):
            if part not in body:  # defaults and decorators are outside
                self.visit(part)
        self._locals.append(_names_in(body) | {
            argument.arg for argument in (*arguments.posonlyargs, *arguments.args,
                                          *arguments.kwonlyargs, arguments.vararg, arguments.kwarg)
            if argument is not None})
        for part in body:
            self.visit(part)
        self._locals.pop()

    visit_AsyncFunctionDef = visit_Lambda = visit_FunctionDef

    def visit_Name(self, node: ast.Name) -> None:
        self._use(node, node.lineno)
        if node.id in self._means and self._is_builtin(node):
            self._add(node.id, node.lineno)  # where the import was not carried out

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self._use(node, node.lineno)
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self._use(node.value, node.lineno, "[]")
        self.generic_visit(node)


_BLOCKS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_INNER = (*_BLOCKS, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_Function = Union[ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda]


def _names_of(node: ast.AST) -> Set[str]:
    """What one statement gives a meaning."""
    if isinstance(node, _BLOCKS):
        return {node.name}
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return {alias.asname or alias.name.split(".")[0] for alias in node.names}
    return _names_in([node])


def _names_in(body: Sequence[ast.AST]) -> Set[str]:
    """What is local to a function: what it binds anywhere, and does not call global."""
    bound: Set[str] = set()
    foreign: Set[str] = set()
    left = list(body)
    while left:
        node = left.pop()
        if isinstance(node, (*_BLOCKS, ast.Import, ast.ImportFrom)):
            bound |= _names_of(node)
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            bound.add(node.id)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            foreign.update(node.names)
        if not isinstance(node, _INNER):
            left += ast.iter_child_nodes(node)
    return bound - foreign


def blank_texts(code: str, strings: bool = True) -> str:
    """The code without its strings and comments, everything else at its place."""
    lines = io.StringIO(code).readlines()  # the tokenizer's lines; splitlines() knows others
    kinds = {tokenize.COMMENT}
    if strings:
        kinds |= {tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", -1)}
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type not in kinds:
            continue
        (first, start), (last, stop) = token.start, token.end
        for row in range(first - 1, last):
            left = start if row == first - 1 else 0
            right = stop if row == last - 1 else len(lines[row].rstrip("\n"))
            lines[row] = lines[row][:left] + " " * (right - left) + lines[row][right:]
    return "".join(lines)
