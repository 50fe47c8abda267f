"""vial.codemie: every example of its document, and what its users rely on."""
import os
import sys
import threading

import pytest

from vial.codemie import (
    CodeExecutorConfig,
    CodeExecutorTool,
    DirectoryFileRepository,
    FileObject,
    SandboxSessionManager,
    SecurityIssueSeverity,
    ToolException,
    get_codemie_security_policy,
    get_restricted_module_names,
)
from vial.codemie import yaml_subset as yaml
from vial.codemie.check import find_violations
from vial.codemie.copies import will_do


@pytest.fixture(autouse=True)
def manager():
    yield
    SandboxSessionManager().close_all()
    SandboxSessionManager._instance = None


def tool(threshold="LOW", user="user123", files=None, **more):
    config = CodeExecutorConfig(security_threshold=threshold, **more)
    return CodeExecutorTool(DirectoryFileRepository(), user, files, config=config)


def test_output():
    assert tool().execute(code="print('Hello, World!')") == "Hello, World!"
    assert tool().execute("x = 1") == "Code executed successfully with no output."
    assert tool().invoke({"code": "print(42)"}) == tool().invoke("print(42)") == "42"
    got = tool().execute("import warnings\nprint('out')\nwarnings.warn('w')")
    assert got.startswith("out\nSTDERR:\n") and "UserWarning: w" in got


def test_failures():
    with pytest.raises(ToolException, match=r"^Code execution failed\.\n\nbefore\nSTDERR:\n[\s\S]*NameError"):
        tool().execute("print('before')\nprint(undefined_name)")
    with pytest.raises(ToolException, match=r"^Code execution timed out after 1\.0 seconds\. This may"):
        tool(execution_timeout=1.0).execute("while True: pass")
    with pytest.raises(ToolException, match=r"^Code execution failed\.\n\nbefore\nMemory limit of 128Mi exceeded\.\nSTDERR:\n[\s\S]*MemoryError\s*$"):
        tool().execute("print('before')\nx = bytearray(10**9)")
    with pytest.raises(ToolException, match=r"^Error executing code: InvalidRequest: "):
        tool(memory_limit="much").execute("1")


def test_a_user_has_a_directory():
    one = tool("SAFE")
    assert one.execute("import os\nprint(os.getcwd())") == "/home/codemie/user123"
    one.execute("open('keep.txt', 'w').write('kept')\nimport os; os.makedirs('d'); open('d/x', 'w')")
    assert one.execute("print(open('keep.txt').read())") == "kept"
    with pytest.raises(ToolException, match="No such file"):
        tool("SAFE", "other").execute("print(open('/home/codemie/user123/keep.txt').read())")
    one.execute("import os; os.remove('keep.txt')")
    assert one.execute("import os; print(os.path.exists('keep.txt'))") == "False"
    with pytest.raises(ToolException, match="NameError"):
        one.execute("kept_var = 1") and one.execute("print(kept_var)")
    for user, safe in (("", "/home/codemie"), ("user/../admin", "/home/codemie/user_.._admin"),
                       ("..", "/home/codemie/__"), ("user\\admin", "/home/codemie/user_admin")):
        assert tool(user=user)._get_user_workdir() == safe


def test_ids_that_are_longer_than_a_name():
    users = ["u" * 254 + end for end in ("", "a", "aa" * 30, "ab" * 30)]
    folders = [tool("SAFE", user).execute("import os\nprint(os.getcwd())") for user in users]
    names = [os.path.basename(folder) for folder in folders]
    assert names[:2] == users[:2] and len(set(names)) == 4
    assert all(len(name) == 255 and name.startswith("u" * 200) for name in names[2:])


@pytest.mark.parametrize(("code", "shown"), [
    ("import posixpath\nprint(posixpath.abspath('x'))", "/home/codemie/user123/x"),
    ("import sqlite3\nprint(sqlite3.connect('q').execute('pragma database_list').fetchone()[2])", "/home/codemie/user123/q"),
    ("import sqlite3\nprint(sqlite3.connect('q').execute('pragma database_' + 'list').fetchone()[2])", "/home/codemie/user123/q"),
    ("import logging\nprint(logging.FileHandler('l').baseFilename)", "/home/codemie/user123/l"),
    ("import logging\nopen('w', 'w').write(str(logging.FileHandler('l')))", "Code executed successfully with no output."),
    ("import warnings\nwarnings.warn('w')", "STDERR:\n/run/vial/main.py:2: UserWarning: w\n  warnings.warn('w')\n")])
def test_the_directory_is_the_users_however_it_is_asked_for(code, shown):
    one = tool()
    assert one.execute(code) == shown
    assert not any(b"/sandbox" in content for content in left(one).values())


def left(one):
    """What is in the user's directory."""
    root = SandboxSessionManager().directory(one._get_user_workdir(), one.user_id)
    return {os.path.relpath(os.path.join(folder, name), root): open(os.path.join(folder, name), "rb").read()
            for folder, _, names in os.walk(root) for name in names if "__pycache__" not in folder}


@pytest.mark.parametrize("code", [
    "print('x')", "1 / 0", "def f(:", "raise SystemExit(3)", "print(__name__)", "import m\nprint(m.z)",
    "open('a.txt', 'a').write('more')", "open('d/e.txt', 'w').write('y')", "open('.hidden', 'w').write('h')",
    "open('new', 'wb').write(bytes(300))\nwhile True: pass", "x = bytearray(1 << 30)", "print(len(bytes(60 << 20)))",
    "print(open('nowhere').read())", "f = open('big', 'wb')\nfor _ in range(200): f.write(bytes(1 << 20))\nprint(f.tell())",
    "import sqlite3\nd = sqlite3.connect('q.db')\nd.execute('create table t (x)')\nd.commit()\nprint('ok')",
    "try:\n    print(input())\nexcept EOFError:\n    print('no input')"])
def test_a_copy_is_as_good_as_the_directory(code, monkeypatch):
    seen = []
    for in_a_copy in (True, False):
        monkeypatch.setattr("vial.codemie.manager.will_do", lambda *_, it=in_a_copy: it)
        one = tool(None, execution_timeout=2 if "while True" in code else 60, files=[
            FileObject("a.txt", "text/plain", "u", content="a"), FileObject("d/b", "x", "u", content="b"),
            FileObject("m.py", "x", "u", content="z = 9")])
        try:
            said = one.execute(code)
        except ToolException as why:
            said = str(why)
        files = {name: content if name not in ("q.db", "big") else len(content) for name, content in left(one).items()}
        seen.append((said, files))
        SandboxSessionManager().close_all()
    assert seen[0] == seen[1]


@pytest.mark.parametrize(("code", "is_copy"), [
    ("print(1)", True), ("import pandas as pd\nprint(pd.__version__)", True), ("import re; re.compile('osmosis')", True),
    ("import os", False), ("import json, os.path", False), ("x = __file__", False), ("import random; random._os", False),
    ("plt.show()", False), ("np.memmap('x').filename", False), ("import genericpath", False), ("import logging, warnings", True),
    ("open('/sandbox/x')", False), ("open('/home/u/x')", False)])
def test_which_programs_run_in_a_copy(code, is_copy, tmp_path):
    assert will_do(code, "/home/u", str(tmp_path)) == is_copy


def test_which_directories_are_copied(tmp_path):
    def fits():
        return will_do("1", "/home/u", str(tmp_path))
    (tmp_path / "d").mkdir()
    assert not fits()
    (tmp_path / "d" / "x.txt").write_text("1")
    assert fits()
    for name, make in (("link", lambda p: p.symlink_to("x")), ("pipe", os.mkfifo), ("a*", lambda p: p.write_text("1")),
                       ("run.sh", lambda p: (p.write_text("1"), p.chmod(0o755))),
                       ("large", lambda p: p.write_bytes(bytes(2 << 20)))):
        make(tmp_path / name)
        assert not fits(), name
        assert will_do("import pandas", "/home/u", str(tmp_path)) == (name == "large")
        (tmp_path / name).unlink()
    assert fits()


def test_what_a_copy_loses_is_lost_elsewhere(url, monkeypatch):
    monkeypatch.setenv("VIAL_URL", url)
    one = tool(None, files=[FileObject("in.txt", "x", "u", content="1")])
    one.execute("import os\nos.rename('in.txt', 'out.txt')")
    assert left(one) == {"out.txt": b"1"}


def test_the_usual_memory_is_the_programs_own(sandbox):
    """However much is loaded before it starts."""
    if "python-data" not in [item["name"] for item in sandbox.environments()]:
        pytest.skip("the environment python-data is not built")
    for environment in ("python", "python-data"):
        result = sandbox.run("print(len(bytearray(96 << 20)) >> 20)", environment=environment, limits={"memory": "128Mi"})
        assert result.stdout == "96\n", (environment, result.stderr)
        result = sandbox.run("bytearray(128 << 20)", environment=environment, limits={"memory": "128Mi"})
        assert result.oom and result.exception.type == "MemoryError"


def test_uploads():
    every = bytes(range(256))
    names = ["[Video] Template.pptx", "Data (2024).csv", "file with spaces.txt", "sub/dir.bin"]
    files = [FileObject(name, "application/octet-stream", "user", content=every) for name in names]
    code = "for n in %r: print(open(n, 'rb').read() == bytes(range(256)))" % names
    assert tool(files=files).execute(code) == "\n".join(["True"] * 4)
    with pytest.raises(ToolException, match=r"^Cannot upload files: file_repository not available$"):
        CodeExecutorTool(None, "u", files).execute("1")
    for name in ("/etc/x", "../x"):
        with pytest.raises(ToolException, match="Invalid file path for sandbox upload"):
            tool(files=[FileObject(name, "x", "u", content="1")]).execute("1")
    with pytest.raises(ToolException, match=r"^Failed to upload 1 file\(s\):\nFailed to upload gone"):
        tool(files=[FileObject("gone", "x", "u")]).execute("1")


def test_a_file_without_content_is_left_out(caplog):
    class Empty:
        def read_file(self, *args, **kwargs):
            return None
    made = CodeExecutorTool(Empty(), "none", [FileObject("a.txt", "text/plain", "u"),
                                              FileObject("b.txt", "text/plain", "u", content="b")])
    assert made.execute("print(open('b.txt').read())") == "b"
    assert "Skipped a file without content: a.txt" in caplog.text


def test_links_do_not_lead_out(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("host")
    one = tool("SAFE", files=[FileObject("in.txt", "text/plain", "u", content="new")])
    one.execute("import os\nos.remove('in.txt'); os.symlink(%r, 'in.txt'); os.symlink(%r, 'out')\nos.mkfifo('pipe')"
                % (str(secret), str(secret)))
    assert one.execute("print(open('in.txt').read())", ["out", "pipe"]) == "new"
    assert secret.read_text() == "host"


def test_links_inside_are_followed():
    one = tool("SAFE")
    code = "import os\nos.makedirs('d', exist_ok=True)\nopen('d/a.txt', 'w').write('one')\n" \
        "for name, to in (('l', 'd/a.txt'), ('e', 'd'), ('f', os.getcwd() + '/l'), ('up', '../x'), " \
        "('o', 'o')):\n    os.path.lexists(name) or os.symlink(to, name)"
    lines = one.execute(code, ["l", "e/a.txt", "f", "up", "o"]).split("\n")[1:]
    assert [line.split("'")[1] for line in lines] == ["l", "a.txt", "f"]


def test_plots_fit_in_the_usual_memory(sandbox):
    if "python-data" not in [item["name"] for item in sandbox.environments()]:
        pytest.skip("the environment python-data is not built")
    code = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.savefig('p.png')\nprint('drawn')"
    text, line = tool().execute(code, "p.png").split("\n")
    assert text == "drawn" and line.startswith("File 'p.png': sandbox:")


def test_exports():
    one = tool()
    got = one.execute("open('output.csv', 'w').write('x,y')\nprint('File created')", ["output.csv", "gone"])
    first, second = got.split("\n")
    assert first == "File created" and second.startswith("File 'output.csv': sandbox:/v1/files/")
    told = FileObject.from_encoded_url(second.rsplit("/", 1)[1])
    assert told.mime_type == "text/csv" and told.owner == "user123"
    assert told.name.endswith("_output.csv") and len(told.name) == 36 + 1 + 10
    assert one.file_repository.read_file(told.name, "user123").content == b"x,y"
    for path in ("../../etc/passwd", "..", "subdir/..", "."):
        with pytest.raises(ToolException, match="must resolve inside the working directory"):
            one.execute("print(1)", [path])
    with pytest.raises(ToolException, match="must be relative to the working directory: '/etc/passwd'"):
        one.execute("print(1)", ["/etc/passwd"])
    assert "File 'output.csv'" in one.execute("print(1)", ["subdir/../output.csv"])


@pytest.mark.parametrize("code", [
    "import os", "import json, os", "import os;x=1", "import \\\n  os", 'x="#"; import os',
    "s='\\'\\'\\''\nimport os\nt='\\'\\'\\''", "__import__('os')", "from os import path", "e = eval\ne('1')",
    "import builtins\nbuiltins.exec('1')", "import urllib.request", "getattr(__builtins__, 'eval')",
    "x = = 1", "def f(eval): pass\neval('1')", "if 0: eval = None\neval('1')",
    "class A:\n    def exec(self): pass\nexec('1')", "def f(eval=eval('1')): pass",
    "eval('1')\ndef eval(x): pass", "eval = 1\ndel eval\neval('1')", "[0 for eval in '']\neval('1')",
    "if 0:\n    from re import compile\ncompile('1', '', 'eval')",
    "x = 1 or (eval := 2)\neval('1')", "x = (eval := 1) if 0 else 2\neval('1')", "1 < 0 < (eval := 1)\neval('1')",
    "[eval('1') or (eval := 1) for _ in [1]]", "for eval in []: pass\neval('1')", "eval: int\neval('1')",
    "x = [0]\nx[0 and (eval := 0)] = 1\neval('1')", "for _ in eval('1'): eval = 1",
    "eval = 1\ntry: 1 / 0\nexcept Exception as eval: pass\neval('1')", "try: eval = 1 / 0\nexcept Exception: pass\neval('1')",
    "try: 1 / 0\nexcept Exception as eval:\n    def f(): return eval('1')\nf()",
    "try: 1 / 0\nexcept Exception as eval:\n    g = (eval('1') for _ in [1])\nlist(g)",
    "try: 1 / 0\nexcept Exception as eval:\n    try: 1 / 0\n    except Exception as eval: pass\n    eval('1')",
    "try: 1 / 0\nexcept Exception as eval:\n    del eval\n    eval('1')",
    "from contextlib import suppress\nwith suppress(Exception), open('no') as eval: pass\neval('1')",
    "from contextlib import suppress\nwith suppress(Exception):\n    1 / 0\n    eval = 1\neval('1')",
    "class A:\n    eval = 1\n    def f(self): return eval('1')", "class A:\n    eval = str\n    x = [eval('1') for _ in [1]]",
    "class A:\n    eval = 1\neval('1')", "lambda: (eval := 1)\neval('1')", "def f():\n    [lambda: (eval := 1) for _ in []]\n    eval('1')",
    "match 1:\n    case 2 as eval: pass\neval('1')", "while 0: eval = 1\neval('1')", "__builtins__ = {}",
    "# coding: utf-7\n#+AAo-import os", "\f\n# coding: utf-7\n#+AAo-import os", "\r# coding: utf-7\r#+AAo-import os",
    "# coding: nothing"])
def test_what_the_policy_refuses(code):
    with pytest.raises(ToolException, match=r"^Code failed security validation \(\d+ violation\(s\) detected\):\n  • \["):
        tool().execute(code)


@pytest.mark.parametrize("code", [
    "print('import os')", '"""import os"""', "# import os", "import re\nre.compile('x')",
    "class D:\n    def eval(self, x): return x\nD().eval('1')", "def compile(x): return x\ncompile(1)",
    "from re import compile\ncompile('x')", "def f(eval): return eval(1)\nf(str)",
    "def f():\n    exec = print\n    exec(1)\nf()", "import re\ncompile = re.compile\ncompile('x')", "compile: int = 1\nprint(compile)",
    "for exec in [1]: print(exec)", "for i, (exec, *eval) in [(1, (2, 3))]: print(exec, eval)",
    "open('x', 'w').close()\nwith open('x') as exec: exec.read()\nexec.closed", "try: 1 / 0\nexcept Exception as exec: print(exec)",
    "print([exec for exec in [1]], {exec: eval for exec, eval in [(1, 2)]}, list(exec for exec in [1] if exec))",
    "if (exec := 1) and exec > 0: print(exec)\nprint(exec)", "print([exec for x in [1] if (exec := x)])", "exec = 1\nexec += 1\nprint(exec)",
    "import re\nclass A:\n    compile = re.compile\n    exec: int = 1\n    x = compile('x'), exec\nprint(A.exec)",
    "def f():\n    try: 1 / 0\n    except Exception as exec: print(exec)\n    [0 for x in [1] if (eval := x)]\n    return eval\nf()",
    "exec = eval = None\nwhile exec: exec = 0", "try:\n    from re import compile\n    compile('x')\nexcept ImportError: pass", "# -*- coding: utf8 -*-\n", "\n\n# coding: utf-7"])
def test_what_it_does_not(code):
    tool().execute(code)


@pytest.mark.parametrize(("code", "worst"), [
    ("os.system('true')", "HIGH"), ("os.remove ('x')", "HIGH"), ("os.environ['A']", "HIGH"), ("socket.socket()", "HIGH"),
    ("subprocess.run(['true'])", "LOW"), ("requests.get('x')", "LOW"), ("globals()['__builtins__']", "HIGH"),
    ("import pandas as pd\npd.io.common.os.system('true')", "HIGH"), ("import numpy\nnumpy.os.environ['A']", "HIGH"),
    ("from pandas.io.common import os", "LOW"), ("from pandas.io.common import os as o\no.unlink('x')", "HIGH"),
    ("from json import decoder, sys", "HIGH")])
def test_what_is_refused_without_an_import_of_it(code, worst):
    found = find_violations(code, get_codemie_security_policy(SecurityIssueSeverity.LOW))
    assert max(found, key=lambda one: one.severity).severity.name == worst


@pytest.mark.parametrize("code", [
    "requests = {}\nrequests.get('a')", "def f(): return requests.get('a')\nrequests = {}\nf()",
    "def f(os): os.remove(1)", "for requests in [{}]: requests.get(1)", "class A:\n    def f(self): return self.requests.get(1)",
    "from . import os", "from re import compile\ncompile('x')", "x = {'__builtins__': 1}"])
def test_what_only_has_the_name_of_a_module(code):
    assert find_violations(code, get_codemie_security_policy(SecurityIssueSeverity.LOW)) == []


@pytest.mark.skipif(sys.version_info < (3, 10), reason="there are no patterns")
def test_patterns_give_names_a_meaning():
    assert tool().execute("match [1, 2, 3]:\n    case [exec, *eval]: print(exec, eval)") == "1 [2, 3]"
    assert tool().execute("match {'a': 1}:\n    case {**compile}: print(compile)") == "{'a': 1}"


def test_severities(tmp_path):
    assert tool("HIGH").execute("import os\nprint(os.path.basename('/a/b'))") == "b"
    for code in ("import os\nos.system('true')", "import os\nos.environ['A'] = '1'", "import sys"):
        with pytest.raises(ToolException, match=r"\[HIGH\]"):
            tool("HIGH").execute(code)
    assert tool("SAFE").execute("import os, sys; print(eval('1'))") == "1"
    assert tool(None).execute("import os; print(1)") == "1"
    path = tmp_path / "policy.yaml"
    path.write_text('version: "1.0"\nrestricted_modules:\n  - name: json\n    description: No JSON\n'
                    "    severity: MEDIUM\npatterns:\n  - pattern: 'forbidden_\\w+'\n"
                    "    description: Forbidden\n    severity: HIGH\n")
    one = tool("LOW", yaml_policy_path=str(path))
    for code, text in (("import json", r"\[MEDIUM\] No JSON \(json\)"), ("forbidden_x = 1", r"\[HIGH\] Forbidden")):
        with pytest.raises(ToolException, match=text):
            one.execute(code)
    assert one.execute("import os\nprint('forbidden_word')") == "forbidden_word"
    with pytest.raises(FileNotFoundError):
        tool("LOW", yaml_policy_path="/nonexistent.yaml")


def test_yaml_without_pyyaml():
    text = "---\na: 1  # one\nb:\n- x: 'it''s'\n  y: \"\\\\b\"\n-\n  z: true\nc:\n  d: null\n  e: []\nf: a#b\n"
    assert yaml.load_subset(text) == {"a": 1, "b": [{"x": "it's", "y": "\\b"}, {"z": True}],
                                      "c": {"d": None, "e": []}, "f": "a#b"}
    for wrong in ("a: [1]", "a: 1\n b", "\ta: 1"):
        with pytest.raises(ValueError, match="Failed to parse"):
            yaml.load_subset(wrong)


def test_configuration(monkeypatch):
    config = CodeExecutorConfig.from_env()
    assert (config.memory_limit, config.cpu_request, config.verbose, config.max_pod_pool_size,
            config.docker_image) == ("128Mi", "500m", True, 5, "epamairun/codemie-python:2.2.9")
    monkeypatch.setenv("CODE_EXECUTOR_EXECUTION_TIMEOUT", "120")
    monkeypatch.setenv("CODE_EXECUTOR_VERBOSE", "off")
    monkeypatch.setenv("CODE_EXECUTOR_SECURITY_THRESHOLD", "MeDiUm")
    config = CodeExecutorConfig.from_env()
    assert (config.execution_timeout, config.verbose, config.security_threshold) == \
        (120.0, False, SecurityIssueSeverity.MEDIUM)
    for name, value in (("EXECUTION_TIMEOUT", "0"), ("MAX_POD_POOL_SIZE", "-1"), ("RUN_AS_USER", "0"),
                        ("EXECUTION_TIMEOUT", "inf"), ("SESSION_TIMEOUT", "nan"),
                        ("SECURITY_THRESHOLD", "INVALID")):
        with monkeypatch.context() as patch, pytest.raises(ValueError):
            patch.setenv("CODE_EXECUTOR_" + name, value)
            CodeExecutorConfig.from_env()


def test_the_schema():
    files = [FileObject("[Video] T.pptx", "x", "u", content=b""), FileObject("data.csv", "x", "u")]
    schema = tool(files=files).args_schema
    text = schema["properties"]["code"]["description"]
    assert "AVAILABLE FILES IN WORKING DIRECTORY: '[Video] T.pptx', 'data.csv'" in text
    assert "BLOCKED modules" in text and "EXACT" in text and "pandas" in text
    assert schema["required"] == ["code"] and "export_files" in schema["properties"]
    assert "AVAILABLE FILES" not in tool().args_schema["properties"]["code"]["description"]
    assert "os" in get_restricted_module_names(SecurityIssueSeverity.LOW)
    assert "os" not in get_restricted_module_names(SecurityIssueSeverity.HIGH)


def test_executors():
    config = CodeExecutorConfig(max_pod_pool_size=2, default_timeout=0.2)
    manager = SandboxSessionManager(config)
    assert SandboxSessionManager() is manager
    assert manager._get_or_create_lock("a") is manager._get_or_create_lock("a")
    with manager.lease(), manager.lease():
        assert manager.pool_size == 2
        with pytest.raises(ToolException, match=r"^Code executor is at capacity \(2/2 Jobs\)\. Please retry\.$"):
            CodeExecutorTool(None, config=config).execute("1")
    names = set(manager._sessions)
    for session in manager._sessions.values():
        session.close()
    assert CodeExecutorTool(None, config=config).execute("print(1)") == "1"
    assert not names & set(manager._sessions)
    for name in manager._session_timestamps:
        manager._session_timestamps[name] -= 301
        aged = name
    assert CodeExecutorTool(None, config=config).execute("print(1)") == "1"
    assert aged not in manager._sessions


def test_ids_that_are_written_alike_are_not_one_user():
    tool(user="a/b").execute("open('s', 'w').write('1')")
    with pytest.raises(ToolException, match="FileNotFoundError"):
        tool(user="a_b").execute("open('s')")


def test_executors_are_closed_in_the_middle():
    manager = SandboxSessionManager()
    with manager.lease(CodeExecutorConfig()):
        manager.close_all()
    assert tool().execute("print(1)") == "1"


def test_patterns_may_speak_of_strings(tmp_path):
    path = tmp_path / "policy.yaml"
    path.write_text("patterns:\n  - pattern: '\"/etc/'\n    description: etc\n    severity: HIGH\n"
                    "  - pattern: danger\n    description: d\n    severity: HIGH\n")
    policy = get_codemie_security_policy(SecurityIssueSeverity.LOW, path)
    assert [v.description for v in find_violations('open("/etc/x")', policy)] == ["etc"]
    assert not find_violations('# "/etc/\nprint("\u2028 danger")', policy)
    assert find_violations('x = "\u2028"; danger()', policy)


def test_many_users_on_few_executors():
    got = {}

    def work(user):
        one = CodeExecutorTool(None, user, config=CodeExecutorConfig(max_pod_pool_size=3))
        got[user] = one.execute("import time\ntime.sleep(0.2)\nprint(%r)" % user)
    threads = [threading.Thread(target=work, args=("u%d" % n,)) for n in range(9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == {"u%d" % n: "u%d" % n for n in range(9)}
    assert SandboxSessionManager().pool_size <= 3


def test_large_uploads():
    files = [FileObject("f%d" % n, "x", "u", content=os.urandom(2 << 20)) for n in range(5)]
    assert tool("SAFE", files=files).execute("import os; print(os.path.getsize('f4'))") == "2097152"


def test_a_server_elsewhere(url, monkeypatch):
    monkeypatch.setenv("VIAL_URL", url)
    one = tool("SAFE", files=[FileObject("in", "x", "u", content="1")])
    one.execute("open('out', 'w').write(open('in').read() + '2')")
    assert one.execute("print(open('out').read())", ["out"]).startswith("12\nFile 'out'")


def test_figures(sandbox):
    if "python-data" not in [item["name"] for item in sandbox.environments()]:
        pytest.skip("the environment python-data is not built")
    one = tool(memory_limit="512Mi")
    code = "import matplotlib.pyplot as plt\nfor n in (1, 2):\n    plt.plot([n, 2])\n    plt.show()\nprint('drawn')"
    text, *lines = one.execute(code).split("\n")
    assert text == "drawn" and [line.split("'")[1] for line in lines] == \
        ["image_0000.png", "image_0001.png"]
    told = FileObject.from_encoded_url(lines[0].rsplit("/", 1)[1])
    assert told.mime_type == "image/png"
    assert one.file_repository.read_file(told.name, "user123").content[:4] == b"\x89PNG"
    assert "File 'image_" in tool().execute("import pandas as pd\nimport matplotlib.pyplot as plt\n"
                                            "pd.DataFrame({'a': [1, 2]}).plot()\nplt.show()")


def test_settings_are_of_their_types():
    made = CodeExecutorConfig(execution_timeout=1, max_pod_pool_size="2")
    assert repr(made.execution_timeout) == "1.0" and made.max_pod_pool_size == 2
    with pytest.raises(ToolException, match=r"timed out after 1\.0 seconds"):
        CodeExecutorTool(config=made).execute("while True: pass")
    slash = CodeExecutorConfig(workdir_base="/srv/", security_threshold="SAFE")
    assert CodeExecutorTool(user_id="u", config=slash).execute("import os; print(os.getcwd())") == "/srv/u"


def test_a_policy_with_a_broken_pattern(tmp_path):
    path = tmp_path / "policy.yaml"
    path.write_text("version: '1.0'\npatterns:\n  - pattern: '('\n    severity: HIGH\n")
    with pytest.raises(ValueError, match="Invalid pattern"):
        CodeExecutorTool(config=CodeExecutorConfig(yaml_policy_path=str(path)))
