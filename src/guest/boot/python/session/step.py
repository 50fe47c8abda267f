"""step - compiling and running one step's code in the session's namespace.

A step in "script" mode is compiled as a file is.  A "cell" may await at the top and has the value
of its last expression.  A "function" is the body of a function whose names are all global: the
compiler is asked which names would be local, and told that they are not.
"""
import __future__
import ast
import linecache
import os
import re
import sys
import types
from _thread import _count as count_threads
from importlib import import_module  # also of what the program may not import
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR
from os import _exit as exit_now

from .interrupt import enter

KEPT_SOURCES = 500  # of steps whose functions may still be called
TOP_LEVEL_AWAIT = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
FUTURES = sum({getattr(__future__, name).compiler_flag for name in __future__.all_feature_names})
WRAPPER = "<module>"  # what tracebacks call it
FELL_OFF = "the end of the step, without return"
MAYBE_EXPRESSION = re.compile(r"[^\s=;][^\n=;]*\Z").match  # one line without an assignment


class Compiled:
    """The value is that of the last of `codes`."""

    def __init__(self, *codes, is_function=False, names=()):
        self.codes = codes
        self.is_function = is_function
        self.names = names  # that a function binds

    def has_functions(self):
        return any(isinstance(const, types.CodeType)
                   for code in self.codes for const in code.co_consts)


def compile_script(code, name):
    return Compiled(compile(code, name, "exec", dont_inherit=True))


def compile_cell(code, name):
    flags = TOP_LEVEL_AWAIT
    if MAYBE_EXPRESSION(code):
        try:  # half the work of the way through a tree
            return Compiled(compile(code, name, "eval", flags, dont_inherit=True))
        except SyntaxError:
            pass
    tree = compile(code, name, "exec", flags | ast.PyCF_ONLY_AST, dont_inherit=True)
    if not tree.body or not isinstance(tree.body[-1], ast.Expr):
        return Compiled(compile(tree, name, "exec", flags, dont_inherit=True))
    last = ast.Expression(tree.body.pop().value)
    codes = []
    if tree.body:
        codes.append(compile(tree, name, "exec", flags, dont_inherit=True))
        flags |= codes[0].co_flags & FUTURES
    codes.append(compile(last, name, "eval", flags, dont_inherit=True))
    return Compiled(*codes)


def compile_function(code, name):
    tree = compile(code, name, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
    tree = ModuleScope().visit(tree)
    futures = [node for node in tree.body if _is_future(node)]
    body = [node for node in tree.body if not _is_future(node)]
    body.append(ast.Return(ast.Constant(FELL_OFF)))
    kind, inner = ast.FunctionDef, None
    try:
        inner = _compile_wrapped(kind, futures, body, name)
    except SyntaxError:  # an await, or really one
        kind = ast.AsyncFunctionDef
    inner = inner or _compile_wrapped(kind, futures, body, name)
    if inner.co_flags & (CO_GENERATOR | CO_ASYNC_GENERATOR):
        raise SyntaxError("'yield' outside function", (name, None, None, None))
    names = inner.co_varnames + inner.co_cellvars
    if names:
        inner = _compile_wrapped(kind, futures, [ast.Global(list(names))] + body, name)
    return Compiled(inner, is_function=True, names=frozenset(names))


def _is_future(node):
    return isinstance(node, ast.ImportFrom) and node.module == "__future__" and not node.level


def _compile_wrapped(kind, futures, body, name):
    empty = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    wrapper = kind(name="_", args=empty, body=body, decorator_list=[], type_params=[])
    module = ast.fix_missing_locations(ast.Module(futures + [wrapper], type_ignores=[]))
    outer = compile(module, name, "exec", dont_inherit=True)
    inner = next(const for const in outer.co_consts if isinstance(const, types.CodeType))
    renamed = {"co_qualname": WRAPPER} if hasattr(inner, "co_qualname") else {}
    return inner.replace(co_name=WRAPPER, **renamed)


class ModuleScope(ast.NodeTransformer):
    """What is right at the top of a module and wrong in a function, said as functions can."""

    def visit_FunctionDef(self, node):
        return node

    visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = visit_FunctionDef

    def visit_Global(self, node):
        return ast.copy_location(ast.Pass(), node)

    def visit_AnnAssign(self, node):
        if not isinstance(node.target, ast.Name):
            return node
        bare = ast.Pass() if node.value is None else ast.Assign([node.target], node.value)
        return ast.copy_location(bare, node)

    def visit_ImportFrom(self, node):
        if node.names[0].name != "*":
            return node
        source = "exec('from %s%s import *', globals())" % ("." * node.level, node.module or "")
        return ast.copy_location(ast.parse(source).body[0], node)


COMPILERS = {"script": compile_script, "cell": compile_cell, "function": compile_function}


def compile_step(code, name, mode):
    if mode not in COMPILERS:
        raise ValueError("there is no mode %r" % (mode,))
    return COMPILERS[mode](code, name)


class Sources:
    """The steps' sources, for tracebacks, in linecache: no longer than they can be needed."""

    def __init__(self):
        self._kept = {}  # in the order of their steps

    def add(self, name, code):
        # As Python counts lines, each with its end: where there is none, carets are a column off.
        lines = code.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        linecache.cache[name] = (len(code), None, [line + "\n" for line in lines], name)

    def settle(self, name, compiled):
        """The step is over."""
        self._kept.pop(name, None)
        if compiled is None or not compiled.has_functions():
            linecache.cache.pop(name, None)
            return
        self._kept[name] = True
        if len(self._kept) > KEPT_SOURCES:
            oldest = next(iter(self._kept))
            del self._kept[oldest]
            linecache.cache.pop(oldest, None)


class Runner:
    """Runs compiled steps, one after the other, in one namespace and one event loop."""

    def __init__(self, namespace, interrupts):
        self.namespace = namespace
        self.interrupts = interrupts
        self._loop = None

    def run(self, compiled):
        """The step's value.  Called as the program: it raises what the program raises."""
        if compiled.is_function:
            return self._run_function(compiled)
        if any(code.co_flags & CO_COROUTINE for code in compiled.codes):
            return self._complete(self._run_codes(compiled.codes))
        value = None
        for code in compiled.codes:
            value = enter(self.interrupts, eval, (code, self.namespace))
        return value

    async def _run_codes(self, codes):
        """All of them in the event loop, also those that do not await."""
        value = None
        for code in codes:
            value = enter(self.interrupts, eval, (code, self.namespace))
            if code.co_flags & CO_COROUTINE:
                value = await value
        return value

    def _run_function(self, compiled):
        before = self.namespace.get("result")
        code, = compiled.codes
        value = enter(self.interrupts, types.FunctionType(code, self.namespace), ())
        if code.co_flags & CO_COROUTINE:
            value = self._complete(value)
        if type(value) is not str or value != FELL_OFF:
            return value
        main = self.namespace.get("__main__") if "__main__" in compiled.names else None
        if isinstance(main, types.FunctionType) and main.__code__.co_flags & CO_COROUTINE:
            return self._complete(main())
        result = self.namespace.get("result")
        return result if "result" in compiled.names or result is not before else None

    # ---- awaiting ----

    def settle(self):
        """Before the session is copied: an event loop that has nothing to do is let go, for it has
        descriptors that cannot be.  Threads of libraries end as at any fork."""
        if self._loop is not None and not self._loop.is_closed():
            asyncio = import_module("asyncio")
            if not asyncio.all_tasks(self._loop):
                self._loop.close()
        if len(os.listdir("/proc/self/task")) > 1 and count_threads() == 0:
            pid = os.fork()
            if pid == 0:
                exit_now(0)
            os.waitpid(pid, 0)

    def _event_loop(self, asyncio):
        if self._loop is None or self._loop.is_closed():
            self._loop = asyncio.new_event_loop()
            asyncio.set_event_loop(self._loop)
        return self._loop

    def _complete(self, coroutine):
        """Await it in the session's event loop.  Tasks that are left wait for the next await."""
        # A package whose import was cut off half way cannot be imported any more.
        asyncio = self.interrupts.hold(import_module, "asyncio")
        loop = self._event_loop(asyncio)
        task = loop.create_task(_watch(coroutine))
        self.interrupts.cancel = lambda: loop.call_soon_threadsafe(task.cancel)
        try:
            value, why = enter(self.interrupts, loop.run_until_complete, (task,))
        except BaseException as error:  # it had not begun, or another task ends this step
            value, why = None, error
            self._cancel(asyncio, loop, task)
            coroutine.close()
        finally:
            self.interrupts.cancel = None
        if why is None:
            return value
        if isinstance(why, asyncio.CancelledError) and self.interrupts.happened:
            self.interrupts.kept = False  # it was the same
            raise KeyboardInterrupt().with_traceback(why.__traceback__) from None
        raise why

    @staticmethod
    def _cancel(asyncio, loop, task):
        if not task.done() and not loop.is_closed():
            task.cancel()
            try:
                loop.run_until_complete(task)
            except asyncio.CancelledError:
                pass


async def _watch(coroutine):
    """Its value and None, or None and what it raised, also what would tear the loop apart."""
    try:
        return await coroutine, None
    except BaseException as why:
        return None, why


def make_main():
    """An empty __main__.  Its names are the session's."""
    module = types.ModuleType("__main__")
    module.__builtins__ = sys.modules["builtins"]
    sys.modules["__main__"] = module
    return module
