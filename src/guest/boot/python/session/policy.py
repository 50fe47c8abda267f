"""policy - what a program may import and do, refused in a friendly way (docs/POLICY.md).

No part of the isolation: a program can get around anything that happens in its own process.  The
syntax tree is looked at before anything runs, imports when they happen, and files and processes
when Python is about to open or start one.
"""
import ast
import builtins
import importlib
import os
import re
import sys

LEVELS = ("SAFE", "LOW", "MEDIUM", "HIGH")

# ---- profiles: what is refused, and how it is said ---------------------------------------------

IMPORT = "Import '%s' not allowed"

MODULES = {
    "HIGH": {
        "sys": "Interpreter internals", "shutil": "File operations", "socket": "Network sockets",
        "urllib": "Network requests", "httpx": "Network requests",
        "threading": "Threads", "multiprocessing": "Processes", "pip": "Package installation",
    },
    "MEDIUM": {
        "pathlib": "File system paths", "glob": "File system search",
        "tempfile": "Temporary files", "inspect": "Introspection",
        "importlib": "Dynamic imports",
    },
    "LOW": {
        "os": "Operating system interface", "subprocess": "Process execution",
        "requests": "Network requests",
    },
}

# Calls and uses of what modules have, by its full name.
USES = {
    "HIGH": {
        "os.system": "System command execution",
        "os.remove": "File system modification", "os.rmdir": "File system modification",
        "os.unlink": "File system modification", "os.mkdir": "File system modification",
        "os.makedirs": "File system modification",
        "os.environ": "Environment access", "socket.socket": "Network sockets",
        "eval": "eval() not allowed", "exec": "exec() not allowed",
        "compile": "compile() not allowed", "__import__": "Dynamic import not allowed",
        "__builtins__": "Access to __builtins__ not allowed",
    },
    "LOW": {
        "subprocess.run": "Process execution", "subprocess.call": "Process execution",
        "subprocess.Popen": "Process execution", "subprocess.check_output": "Process execution",
        "requests.get": "Network requests", "requests.post": "Network requests",
        "requests.put": "Network requests", "requests.delete": "Network requests",
    },
}
SUBSCRIPTED = {"os.environ"}  # refused only as os.environ[...]

FORBIDDEN_CALLS = frozenset(
    "eval exec compile __import__ open input globals locals vars dir".split())

# What leads from any object to all of the interpreter; not to be had without introspection.
INTROSPECTION = "Introspection not allowed"
BUILTINS_THAT_LOOK = frozenset("""getattr setattr delattr hasattr vars dir globals locals eval exec compile open
    input breakpoint help exit quit object memoryview""".split())
ATTRIBUTES_THAT_LOOK = frozenset("""gi_frame gi_code gi_yieldfrom cr_frame cr_code cr_await ag_frame ag_code
    f_back f_builtins f_code f_globals f_locals tb_frame tb_next mro read_pickle to_pickle format_map
    """.split())
OWN_NAMES = frozenset(("self", "cls"))
KNOWN_DUNDERS = frozenset("__name__ __doc__ __file__ __annotations__ __all__".split())
CODING = re.compile(r"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")

PROFILES = {
    "default": {
        "block": """os sys subprocess socket requests shutil tempfile pickle
            posix _posixsubprocess _socket _pickle ctypes _ctypes cffi multiprocessing
            _multiprocessing pty""".split(),
        "files": False, "processes": False,
    },
    "blocklist": {
        "block": """ctypes cffi multiprocessing resource sys signal importlib.machinery subprocess
            socketserver ssl pty fcntl""".split(),
        "text": "Module '%s' is blocked in this sandbox",
    },
    "severity": {
        "modules": [{"name": name, "description": text, "severity": level}
                    for level, rows in MODULES.items() for name, text in rows.items()],
        "uses": [{"name": name, "description": text, "severity": level}
                 for level, rows in USES.items() for name, text in rows.items()],
        "threshold": "LOW",
    },
    "strict": {
        "allow": """abc array ast base64 bisect calendar cmath collections colorsys copy csv dataclasses
            datetime decimal difflib enum fractions functools graphlib hashlib heapq hmac html itertools
            json keyword locale math matplotlib numbers numpy operator pandas pprint random re secrets
            statistics string struct textwrap time typing unicodedata uuid zlib zoneinfo
            """.split(),
        "uses": [{"name": name, "description": "Deserialisation", "severity": "HIGH"}
                 for name in ("numpy.load", "pandas.read_pickle", "operator.attrgetter",
                              "operator.methodcaller")],
        "files": False, "processes": False, "introspection": False,
    },
    "validation": {
        "block": "os sys subprocess socket requests shutil tempfile pickle".split(),
        "forbid": True,
    },
}


# What no C function imports in its caller's name.
NEVER_INDIRECT = frozenset(PROFILES["default"]["block"]) | frozenset(
    "builtins gc importlib inspect _imp io _io marshal runpy signal threading _thread".split())


class PolicyError(Exception):
    """The code was refused; nothing of it ran."""


PolicyError.__module__ = "builtins"  # where programs find it


def level_of(name):
    """0 .. 3, from a name in any case, or a number."""
    if isinstance(name, int) and not isinstance(name, bool) and 0 <= name < len(LEVELS):
        return name
    if isinstance(name, str) and name.upper() in LEVELS:
        return LEVELS.index(name.upper())
    raise ValueError("Invalid security_threshold: %s. Must be one of: %s" % (name, ", ".join(LEVELS)))


def covers(names, module):
    """Whether one of the names is the module's, or that of a package that it is in."""
    parts = module.split(".")
    return any(".".join(parts[:count]) in names for count in range(1, len(parts) + 1))


# ---- the syntax tree ---------------------------------------------------------------------------

class Names(ast.NodeVisitor):
    """What the code imports, and what it uses of modules and builtins, wherever that is.

    A name stands for a module when the code imports it as one, or when the session has one of
    this name; for a builtin, when neither the code nor the session has bound it to something else.
    """

    def __init__(self, tree, namespace):
        self.imports = []  # (module, line)
        self.uses = []     # (full name, line, is_subscript)
        self.stored = set()
        self._stands_for = {name: value.__name__ for name, value in namespace.items()
                            if type(value) is type(sys)}
        self._bound = _bound_names(tree) | (namespace.keys() & vars(builtins).keys())
        self._imported = {}
        for node in ast.walk(tree):
            self._take_import(node)
        self.visit(tree)

    def _take_import(self, node):
        if isinstance(node, ast.Import):
            for alias in node.names:
                self.imports.append((alias.name, node.lineno))
                shown = alias.name if alias.asname else alias.name.split(".")[0]
                self._imported[alias.asname or shown] = shown
        elif isinstance(node, ast.ImportFrom) and not node.level:
            self.imports.append((node.module, node.lineno))
            for alias in node.names:
                full = "%s.%s" % (node.module, alias.name)
                if alias.name == "*":
                    continue
                self._imported[alias.asname or alias.name] = full
                self.uses.append((full, node.lineno, False))

    def _full_name(self, node):
        """`os.path.join` of such a node, None of any other."""
        if isinstance(node, ast.Attribute):
            inner = self._full_name(node.value)
            return inner and "%s.%s" % (inner, node.attr)
        if not isinstance(node, ast.Name):
            return None
        name = node.id
        if name == "__builtins__":
            return name
        if name in self._imported:
            return self._imported[name]
        if name in self._bound:
            return None
        return self._stands_for.get(name, name if name in vars(builtins) else None)

    def visit_Name(self, node):
        if isinstance(node.ctx, ast.Load):
            self._use(node)
        else:
            self.stored.add((node.id, node.lineno))

    def visit_Attribute(self, node):
        self._use(node)
        self.generic_visit(node)

    def visit_Subscript(self, node):
        self._use(node.value, is_subscript=True)
        self.generic_visit(node)

    def _use(self, node, is_subscript=False):
        full = self._full_name(node)
        if full:
            full = full[len("builtins."):] if full.startswith("builtins.") else full
            self.uses.append((full, node.lineno, is_subscript))


def _bound_names(tree):
    """Names that the code gives a meaning of its own, in any scope, other than by importing."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
    return names - {"__builtins__"}


def blank_texts(code):
    """The code without its strings and comments, at the same places."""
    import io
    import tokenize
    lines = code.splitlines(True)
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type in (tokenize.STRING, tokenize.COMMENT) or \
                token.type == getattr(tokenize, "FSTRING_MIDDLE", None):
            (first, start), (last, stop) = token.start, token.end
            for row in range(first - 1, last):
                left = start if row == first - 1 else 0
                right = stop if row == last - 1 else len(lines[row].rstrip("\n"))
                lines[row] = lines[row][:left] + " " * (right - left) + lines[row][right:]
    return "".join(lines)


def coding_of(code):
    """The encoding that the code names for itself, if that is not UTF-8."""
    for line in re.split("\r\n?|\n", code, maxsplit=2)[:2]:  # splitlines() knows other ends
        match = CODING.match(line)
        if match:
            name = match[1].lower().replace("_", "-")
            return None if name in ("utf-8", "utf8", "ascii", "us-ascii") else match[1]
    return None


def _attributes(tree):
    """(name, of whom) of each attribute that the code reaches for, by whatever syntax."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield node.attr, node.value
        elif hasattr(ast, "MatchClass") and isinstance(node, ast.MatchClass):
            yield from ((name, node.cls) for name in node.kwd_attrs)


def _formats(value):
    """Whether text that reaches for attributes could be what is formatted."""
    return not (isinstance(value, ast.Constant) and isinstance(value.value, str)
                and not re.search(r"{[^{}:!]*[.\[]", value.value))


def looks_inside(tree, names):
    """The names by which code gets at what it was not given, each once, in order."""
    found = {}
    for name, value in _attributes(tree):
        is_own = isinstance(value, ast.Name) and value.id in OWN_NAMES or \
            isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "super"
        if name in ATTRIBUTES_THAT_LOOK or name.startswith("_") and \
                not (is_own and name not in ("__class__", "__dict__", "__reduce__", "__reduce_ex__")) or \
                name == "format" and _formats(value):
            found.setdefault(name)
    for full, _, _ in names.uses:
        if full in BUILTINS_THAT_LOOK:
            found.setdefault(full)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id.startswith("__") and node.id not in KNOWN_DUNDERS:
            found.setdefault(node.id)
    return list(found)


# ---- a policy ----------------------------------------------------------------------------------

# Members, and what they are made of.
MEMBERS = {"profile": str, "text": str, "allow": list, "block": list, "modules": list, "uses": list,
           "patterns": list, "threshold": (str, int), "files": bool, "processes": bool,
           "introspection": bool, "forbid": bool}


def read(wanted):
    """The members of a policy, with those of its profile.  Raises ValueError: what is not understood
    would not be carried out."""
    if isinstance(wanted, str):
        wanted = {"profile": wanted}
    if not isinstance(wanted, dict):
        raise ValueError("a policy is an object, or the name of a profile")
    for name, value in wanted.items():
        if name not in MEMBERS:
            raise ValueError("a policy has no %r: there are %s" % (name, ", ".join(MEMBERS)))
        if value is not None and not isinstance(value, MEMBERS[name]) or \
                name in ("allow", "block") and not all(isinstance(item, str) for item in value or ()):
            raise ValueError("a policy's %r cannot be %.100r" % (name, value))
    profile = wanted.get("profile")
    if profile is not None and profile not in PROFILES:
        raise ValueError("there is no profile %r: there are %s" % (profile, ", ".join(PROFILES)))
    given = {name: value for name, value in wanted.items() if value is not None}
    return dict(PROFILES[profile] if profile is not None else {}, **given)


class Policy:
    def __init__(self, wanted):
        wanted = read(wanted)
        self.text = wanted.get("text", IMPORT)
        self.allowed = frozenset(wanted["allow"]) if wanted.get("allow") is not None else None
        self.forbids = bool(wanted.get("forbid"))
        self.files = bool(wanted.get("files", True))
        self.processes = bool(wanted.get("processes", True))
        self.introspection = bool(wanted.get("introspection", True))
        self.threshold = level_of(wanted.get("threshold", "LOW"))
        self.modules = self._rows(wanted.get("modules", ()), "name")
        self.uses = self._rows(wanted.get("uses", ()), "name")
        self.patterns = {re.compile(pattern): row for pattern, row
                         in self._rows(wanted.get("patterns", ()), "pattern").items()}
        # An allow-list is the last word: what it has is not blocked by a profile.
        self.blocked = frozenset(() if self.allowed is not None else wanted.get("block", ()))

    def _rows(self, rows, key):
        """Those at or above the threshold: name to (severity, description)."""
        for row in rows:
            missing = [name for name in (key, "severity", "description")
                       if not isinstance(row, dict) or name not in row]
            if missing:
                raise ValueError("each entry of a policy's modules, uses and patterns has %s, severity and "
                                 "description: %.100r has no %s" % (key, row, missing[0]))
        levels = [(row, level_of(row["severity"])) for row in rows]
        return {row[key]: (LEVELS[level], row["description"]) for row, level in levels
                if self.threshold > 0 and level >= self.threshold}

    def is_static(self):
        return bool(self.forbids or self.modules or self.uses or self.patterns
                    or not self.introspection)

    def refused(self, module):
        """The name under which a module is refused, or None."""
        if self.allowed is not None and not covers(self.allowed, module):
            return module.split(".")[0]
        if covers(self.blocked, module) or covers(self.modules, module):
            parts = module.split(".")
            return next(name for name in (".".join(parts[:count + 1]) for count in range(len(parts)))
                        if name in self.blocked or name in self.modules)
        return None

    def guards_imports(self):
        return bool(self.allowed is not None or self.blocked or self.modules)

    # ---- before the code runs ----

    def check(self, code, name, namespace):
        coding = coding_of(code)
        if coding:  # a scanner and an interpreter that read it differently would see two programs
            raise self._refusal([("HIGH", "Source encoding %s: only UTF-8 is read" % coding)])
        try:
            tree = compile(code, name, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
        except (SyntaxError, ValueError) as why:
            if self.forbids:
                raise PolicyError("Syntax error: %s" % why) from None
            raise self._refusal([("HIGH", "Invalid Python syntax: %s" % why)]) from None
        names = Names(tree, namespace)
        if self.forbids:
            self._forbid(names)
        found = self._findings(code, names)
        if not self.introspection:
            found += [("HIGH", "%s: %s" % (what, INTROSPECTION))
                      for what in looks_inside(tree, names) + self._reached(names)]
        if found:
            raise self._refusal(found)

    @staticmethod
    def _refusal(found):
        lines = "".join("\n  \u2022 [%s] %s" % finding for finding in found)
        return PolicyError("Code failed security validation (%d violation(s) detected):%s\n\n"
                           "Please review your code and remove any restricted operations."
                           % (len(found), lines))

    def _findings(self, code, names):
        """(severity, description) of each thing once, in the order of the code."""
        found = {}
        for module, line in names.imports:
            refused = self.refused(module)
            if refused in self.modules:
                severity, text = self.modules[refused]
                found.setdefault((severity, "%s: %s" % (refused, text)), line)
        for full, line, is_subscript in names.uses:
            if full.startswith("__builtins__."):
                full = "__builtins__"
            if full in self.uses and (full not in SUBSCRIPTED or is_subscript):
                severity, text = self.uses[full]
                found.setdefault((severity, text if full in text else "%s: %s" % (full, text)), line)
        if self.patterns:
            bare = blank_texts(code)
            for pattern, row in self.patterns.items():
                match = pattern.search(bare)
                if match:
                    found.setdefault(row, bare.count("\n", 0, match.start()) + 1)
        return sorted(found, key=found.get)

    def _reached(self, names):
        """Modules that the code would reach through others: `statistics.sys`."""
        found = {}
        for module, _ in names.imports:
            if not self.refused(module):
                try:
                    importlib.import_module(module)
                except Exception:
                    pass  # the program will see why
        for full, _, _ in names.uses:
            parts = full.split(".")
            inner = sys.modules.get(parts[0])
            for part in parts[1:]:
                inner = getattr(inner, part, None) if type(inner) is type(sys) else None
                if type(inner) is type(sys) and self.refused(inner.__name__):
                    found.setdefault(full)
        return list(found)

    def _forbid(self, names):
        """Raise what the first forbidden thing is."""
        found = [(line, "Forbidden import: %s" % self.refused(module))
                 for module, line in names.imports if self.refused(module)]
        found += [(line, "Cannot modify: __builtins__")
                  for name, line in names.stored if name == "__builtins__"]
        for full, line, _ in names.uses:
            if full in FORBIDDEN_CALLS:
                found.append((line, "Forbidden function: %s" % full))
            elif full.split(".")[0] == "__builtins__":
                found.append((line, "Direct __builtins__ access forbidden"))
        if found:
            raise PolicyError(min(found)[1])


# ---- while the code runs -----------------------------------------------------------------------

# Events of Python's audit hooks (PEP 578) whose first argument is a path.
PATHS = frozenset("""open os.listdir os.scandir os.mkdir os.rename os.remove os.rmdir os.chmod os.chown
    os.link os.symlink os.truncate os.utime os.chdir os.listxattr os.getxattr os.setxattr
    os.removexattr os.chflags glob.glob shutil.rmtree sqlite3.connect""".split())
PROCESSES = frozenset("""subprocess.Popen os.system os.exec os.fork os.forkpty os.posix_spawn os.spawn
    os.startfile pty.spawn""".split())
# What makes a file, and no event.
MAKERS = ("mkfifo", "mknod")
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
EACCES, EPERM = 13, 1


def _is_under(path, folders):
    return any(path == folder or path.startswith(folder.rstrip("/") + "/") for folder in folders)


class Guard:
    """Carries out a session's policy: one at a time, or none."""

    def __init__(self, namespace):
        self.namespace = namespace
        self.policy = None
        self._broken = None  # why another, which was asked for, is not in its place
        self._import = builtins.__import__
        self._import_module = importlib.import_module
        self._import_again = importlib.__import__  # the same in Python, and another object
        self._reload = importlib.reload
        self._has_hook = False
        here = os.getcwd()
        # The runtime's own files: what is there now.  The program's come later, or lie elsewhere.
        self._libraries = tuple({os.path.abspath(path) for path in sys.path
                                 if path and os.path.abspath(path) != here}
                                | {os.path.dirname(os.__file__)})
        self._readable = self._libraries + (
            sys.prefix, sys.base_prefix, sys.exec_prefix, "/usr/lib", "/usr/share", "/lib", "/lib64",
            "/etc/localtime", "/dev/null", "/dev/urandom")

    def set(self, wanted):
        """From now on.  Under one that cannot be carried out nothing runs but what runs already, which
        has the last one."""
        self._broken = None
        try:
            self.policy = Policy(wanted) if wanted is not None else None
        except Exception as why:
            self._broken = str(why) if isinstance(why, ValueError) else "%s: %s" % (type(why).__name__, why)
            return
        guards = self.policy is not None and self.policy.guards_imports()
        builtins.__import__ = self._guarded_import if guards else self._import
        importlib.import_module = self._guarded_import_module if guards else self._import_module
        importlib.__import__ = self._guarded_import if guards else self._import_again
        importlib.reload = self._guarded_reload if guards else self._reload
        if self.policy is not None and not self._has_hook \
                and not (self.policy.files and self.policy.processes):
            sys.addaudithook(self._audit)  # for ever
            self._guard_makers()
            self._has_hook = True

    def check(self, code, name):
        if self._broken is not None:
            raise PolicyError("The policy is not valid: %s" % self._broken)
        if self.policy is not None and self.policy.is_static():
            self.policy.check(code, name, self.namespace)

    # ---- imports ----

    def _is_library(self, frame):
        """Whether it is a library that imports: what libraries need is not the program's doing."""
        name = frame.f_code.co_filename
        return name.startswith("<frozen ") or _is_under(name, self._libraries)

    def _refuse(self, module):
        policy = self.policy
        refused = policy.refused(module) if policy is not None else None
        if refused:
            raise ImportError(policy.text.replace("%s", refused), name=module)

    @staticmethod
    def _is_indirect(frame, name, names, more, fromlist):
        """Whether it is a C function that imports, as PyImport_Import() does: it has no frame of its own."""
        return type(fromlist) is list and not fromlist and names is more \
            and "__import__" not in frame.f_code.co_names and not covers(NEVER_INDIRECT, name)

    def _guarded_import(self, name, globals=None, locals=None, fromlist=(), level=0):
        frame = sys._getframe(1)
        if type(name) is not str or level or self._is_library(frame):
            return self._import(name, globals, locals, fromlist, level)
        if not self._is_indirect(frame, name, globals, locals, fromlist):
            self._refuse(name)
        module = self._import(name, globals, locals, fromlist, level)
        for item in fromlist or ():
            inner = getattr(module, item, None)
            if type(inner) is type(sys):  # `from random import _os` imports os
                self._refuse(inner.__name__)
        return module

    def _guarded_import_module(self, name, package=None):
        """Import a module."""
        if type(name) is str and not name.startswith(".") \
                and not self._is_library(sys._getframe(1)):
            self._refuse(name)
        return self._import_module(name, package)

    def _guarded_reload(self, module):
        """Reload a module."""
        if type(module) is type(sys) and not self._is_library(sys._getframe(1)):
            self._refuse(module.__name__)
        return self._reload(module)

    # ---- files and processes ----

    def _guard_makers(self):
        for name in MAKERS:
            guarded = self._guarded_maker(getattr(os, name))
            for module in (os, sys.modules["posix"]):
                setattr(module, name, guarded)

    def _guarded_maker(self, make):
        def guarded(path, *args, **more):
            self._audit("open", (path, "w", 0))
            return make(path, *args, **more)
        for member in ("__name__", "__qualname__", "__doc__", "__module__"):
            setattr(guarded, member, getattr(make, member, None))
        return guarded

    def _audit(self, event, args):
        policy = self.policy
        if policy is None:
            return
        if event in PATHS:
            if not policy.files:
                self._check_path(event, args)
        elif event in PROCESSES and not policy.processes:
            raise PermissionError(EPERM, os.strerror(EPERM))

    def _check_path(self, event, args):
        path = args[0]
        if isinstance(path, int) or path in (None, ":memory:", b":memory:"):
            return  # a descriptor, which is open already; or no file at all
        text = os.path.abspath(os.fsdecode(path))
        writes = event not in ("open", "os.listdir", "os.scandir", "os.listxattr", "os.getxattr") or \
            (event == "open" and _writes(*args[1:]))
        if writes and text != "/dev/null" or not _is_under(text, self._readable):
            raise PermissionError(EACCES, os.strerror(EACCES), path)


def _writes(mode=None, flags=0, *_):
    if isinstance(mode, str):
        return not set("wax+").isdisjoint(mode)
    return bool(flags & WRITES)
