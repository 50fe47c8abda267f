"""check - code against a policy, by its syntax tree: what it says, not what its text looks like.

No part of the isolation: the sandbox is that.  It is there so that code is refused before it runs,
with reasons that its author understands.
"""
from __future__ import annotations

import ast
import builtins
import codecs
import contextlib
import io
import re
import tokenize
from dataclasses import dataclass
from typing import Dict, Iterable, Iterator, List, Optional, Sequence, Set, Tuple, Union

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
        names = _Names(ast.parse(code))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as why:
        return [Violation(SecurityIssueSeverity.HIGH, "Invalid Python syntax: %s" % why)]
    found: Dict[Violation, int] = {}
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
    for member, line in names.members:  # `from package import os` is the module, too
        row = rows.get(member)
        if row is not None and not hasattr(builtins, member):
            yield line, Violation(row.severity, _worded(row.description, row.name))
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
        if full not in policy.uses and full.count(".") > 1:
            full = ".".join(full.split(".")[-2:])  # a module that another one has imported
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

    A name stands for a builtin unless it surely means something else where it is used.  So the
    code is gone through in the order in which it runs: what a branch binds is bound in it, and not
    after it.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.imports: List[Tuple[str, int]] = []
        self.members: List[Tuple[str, int]] = []  # what is imported from packages
        self.uses: List[Tuple[str, int]] = []
        self._means: Dict[str, str] = {}
        self._bound: Set[str] = set()      # names that anything at all gives a meaning
        self._unsure: Set[str] = set()     # names that are deleted somewhere
        self._module: Set[str] = set()     # what surely is bound there by now
        self._here = self._module          # the same of the class, or comprehension, around
        self._locals: List[Set[str]] = []  # of the functions around
        self._handled: Set[str] = set()    # exceptions, by the handlers around
        for node in ast.walk(tree):
            self._take(node)
        self.visit(tree)

    def _take(self, node: ast.AST) -> None:
        self._bound |= {node.arg} if isinstance(node, ast.arg) else _names_of(node)
        if isinstance(node, ast.Import):
            for alias in node.names:
                self.imports.append((alias.name, node.lineno))
                shown = alias.name if alias.asname else alias.name.split(".")[0]
                self._means[alias.asname or shown] = shown
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            self.imports.append((node.module, node.lineno))
            for alias in node.names:
                full = "%s.%s" % (node.module, alias.name)
                self.members.append((alias.name, node.lineno))
                self._means[alias.asname or alias.name] = full
                self._add(full, node.lineno)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Del):
            self._unsure.add(node.id)
        elif isinstance(node, ast.ExceptHandler) and node.name:  # deleted at the handler's end
            self._unsure.add(node.name)

    # ---- what names mean ----

    def _is_builtin(self, node: ast.Name) -> bool:
        """Whether it may mean the builtin of that name."""
        return hasattr(builtins, node.id) and not any(
            node.id in names
            for names in (*self._locals, self._module, self._here, self._handled))

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
        # A name that nothing binds is what its author takes it for: a module, not imported yet.
        return node.id if self._is_builtin(node) or node.id not in self._bound else None

    def _use(self, node: ast.AST, line: int, suffix: str = "") -> None:
        full = self._full(node)
        if full:
            self._add(full + suffix, line)

    def visit_Name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Load) and node.id != "__builtins__":
            return  # it is given a meaning, whatever it meant
        self._use(node, node.lineno)
        if node.id in self._means and self._is_builtin(node):
            self._add(node.id, node.lineno)  # where the import was not carried out

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self._use(node, node.lineno)
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self._use(node.value, node.lineno, "[]")
        if isinstance(node.slice, ast.Constant) and node.slice.value == "__builtins__":
            self._add("__builtins__", node.lineno)  # of globals()
        self.generic_visit(node)

    # ---- what is bound ----

    def _bind(self, names: Iterable[str]) -> None:
        self._here.update(set(names) - self._unsure)

    @contextlib.contextmanager
    def _branch(self) -> Iterator[None]:
        """What may not run, or not to its end."""
        before = set(self._here)
        yield
        self._here &= before

    @contextlib.contextmanager
    def _scope(self, names: Optional[Set[str]] = None) -> Iterator[None]:
        """A namespace of its own; that of a function has these names.

        It may be used when a handler around is over, and its name gone.
        """
        outer = self._here, self._handled
        self._here, self._handled = set(), set()
        self._locals.append(names or set())
        yield
        self._locals.pop()
        self._here, self._handled = outer

    def _visit_all(self, nodes: Iterable[Optional[ast.AST]]) -> None:
        for node in nodes:
            if node is not None:
                self.visit(node)

    def _visit_import(self, node: Union[ast.Import, ast.ImportFrom]) -> None:
        self._bind(_names_of(node))

    visit_Import = visit_ImportFrom = _visit_import

    def visit_Assign(self, node: ast.Assign) -> None:
        self._visit_all([node.value, *node.targets])
        for target in node.targets:
            self._bind(_target_names(target))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self._visit_all([node.annotation, node.value, node.target])
        if node.value is not None:
            self._bind(_target_names(node.target))

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.visit(node.value)
        self._bind([node.target.id])

    def visit_FunctionDef(self, node: _Function) -> None:
        arguments = node.args
        body: List[ast.AST] = [node.body] if isinstance(node, ast.Lambda) else [*node.body]
        # Defaults and decorators are outside.
        self._visit_all(part for part in ast.iter_child_nodes(node) if part not in body)
        with self._scope(_names_in(body) | {
                argument.arg for argument in (*arguments.posonlyargs, *arguments.args,
                                              *arguments.kwonlyargs, arguments.vararg,
                                              arguments.kwarg) if argument is not None}):
            self._visit_all(body)
        if not isinstance(node, ast.Lambda):
            self._bind([node.name])

    visit_AsyncFunctionDef = visit_Lambda = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._visit_all([*node.decorator_list, *node.bases, *node.keywords])
        with self._scope():
            self._visit_all(node.body)
        self._bind([node.name])

    def _visit_comprehension(self, node: _Comprehension) -> None:
        self.visit(node.generators[0].iter)  # outside
        targets = [_target_names(part.target) for part in node.generators]
        with self._scope(set().union(*targets)):
            for number, part in enumerate(node.generators):
                self._visit_all([part.iter if number else None, part.target, *part.ifs])
            self._visit_all(part for part in ast.iter_child_nodes(node)
                            if part not in node.generators)

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _visit_comprehension

    # ---- what may not run ----

    def visit_If(self, node: Union[ast.If, ast.While]) -> None:
        self.visit(node.test)
        for body in (node.body, node.orelse):
            with self._branch():
                self._visit_all(body)

    visit_While = visit_If

    def visit_For(self, node: Union[ast.For, ast.AsyncFor]) -> None:
        self._visit_all([node.iter, node.target])
        with self._branch():
            self._bind(_target_names(node.target))
            self._visit_all(node.body)
        with self._branch():
            self._visit_all(node.orelse)

    visit_AsyncFor = visit_For

    def visit_With(self, node: Union[ast.With, ast.AsyncWith]) -> None:
        """Its manager may end it at any time, but for a single one after it was entered."""
        with self._branch():
            for item in node.items:
                self._visit_all([item.context_expr, item.optional_vars])
                self._bind(_target_names(item.optional_vars))
            self._visit_all(node.body)
        first = node.items[0].optional_vars
        if len(node.items) == 1 and isinstance(first, ast.Name):
            self._bind([first.id])

    visit_AsyncWith = visit_With

    def visit_Try(self, node: ast.Try) -> None:
        with self._branch():
            self._visit_all([*node.body, *node.orelse])
        self._visit_all([*node.handlers, *node.finalbody])

    visit_TryStar = visit_Try

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        self._visit_all([node.type])
        outer = self._handled
        deleted = set().union(*(_deleted_in(part) for part in node.body))
        self._handled = (outer | {node.name or ""}) - deleted
        with self._branch():
            self._visit_all(node.body)
        self._handled = outer

    def visit_match_case(self, node: ast.AST) -> None:
        parts = list(ast.iter_child_nodes(node))
        with self._branch():
            self._bind(_names_in(parts[:1]))  # its pattern
            self._visit_all(parts)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        self.visit(node.values[0])
        with self._branch():
            self._visit_all(node.values[1:])

    def visit_Compare(self, node: ast.Compare) -> None:
        self._visit_all([node.left, node.comparators[0]])
        with self._branch():
            self._visit_all(node.comparators[1:])

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self.visit(node.test)
        for part in (node.body, node.orelse):
            with self._branch():
                self.visit(part)


_BLOCKS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_UNPACKED = (ast.Tuple, ast.List, ast.Starred)
_Function = Union[ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda]
_Comprehension = Union[ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp]


def _names_of(node: ast.AST) -> Set[str]:
    """What one node gives a meaning, apart from what is in it."""
    if isinstance(node, _BLOCKS):
        return {node.name}
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return {alias.asname or alias.name.split(".")[0] for alias in node.names}
    if isinstance(node, ast.Name):
        return set() if isinstance(node.ctx, ast.Load) else {node.id}
    # Handlers and patterns have theirs as text.
    names = [getattr(node, "name", None), getattr(node, "rest", None)]
    return {name for name in names if isinstance(name, str) and not isinstance(node, ast.alias)}


def _target_names(target: Optional[ast.AST]) -> Set[str]:
    """What an assignment to it binds."""
    if isinstance(target, ast.Name):
        return {target.id}
    parts = ast.iter_child_nodes(target) if isinstance(target, _UNPACKED) else ()
    return set().union(*map(_target_names, parts))


def _names_in(body: Sequence[ast.AST]) -> Set[str]:
    """What is local to a function: what it binds anywhere, and does not call global."""
    bound: Set[str] = set()
    foreign: Set[str] = set()
    left = list(body)
    while left:
        node = left.pop()
        bound |= _names_of(node)
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            foreign.update(node.names)
        if isinstance(node, _COMPREHENSIONS):
            bound.update(_walruses(node))
        elif not isinstance(node, (*_BLOCKS, ast.Lambda)):
            left += ast.iter_child_nodes(node)
    return bound - foreign


def _walruses(node: ast.AST) -> Iterator[str]:
    """What expressions in a comprehension bind around it."""
    for part in ast.iter_child_nodes(node):
        if isinstance(part, ast.NamedExpr):
            yield part.target.id
        if not isinstance(part, ast.Lambda):
            yield from _walruses(part)


def _deleted_in(node: ast.AST) -> Set[str]:
    """What is deleted somewhere in it, by a statement or at the end of a handler."""
    return {name for part in ast.walk(node) for name in _names_of(part)
            if isinstance(part, ast.ExceptHandler)
            or isinstance(part, ast.Name) and isinstance(part.ctx, ast.Del)}


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
