"""vial.claw: every example of its document, and what its users rely on."""
import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from vial.claw import AutoDebuggerIntegration, CodeSandbox, ExecutionResult, ResourceLimits


@pytest.fixture(scope="module")
def made(daemon):
    import os

    import vial
    os.environ.setdefault("VIAL_BINARY", "vial")
    return CodeSandbox(client=vial.Sandbox(daemon))


def test_the_document(made):
    result = made.execute("print('Hello, World!')", "python")
    assert (result.success, result.exit_code, result.stdout, result.stderr, result.timeout,
            result.error_message) == (True, 0, "Hello, World!\n", "", False, None)
    assert result.language == "python (Python 3.11)" and result.container_id
    assert result.memory_used and result.cpu_percent is not None and result.resource_usage
    assert result.execution_time == round(result.execution_time, 3) > 0
    result = made.execute("import json\nprint(json.dumps({'sum': sum([1, 2, 3])}))", "python")
    assert json.loads(result.stdout) == {"sum": 6}
    files = {"config.json": '{"setting": "value"}', "utils.py": "def helper(): return 42"}
    code = "import json\nfrom utils import helper\nprint(json.load(open('/sandbox/config.json')), helper())"
    assert made.execute(code, "python", files=files).stdout == "{'setting': 'value'} 42\n"


def test_errors(made):
    result = made.execute("raise ValueError('Test error')", "python")
    assert AutoDebuggerIntegration.analyze_error(result) == \
        {"is_error": True, "error_type": "python_exception", "exception": "ValueError: Test error"}
    result = made.execute("import time\nprint('started', flush=True)\ntime.sleep(10)", "python",
                          limits=ResourceLimits(timeout_seconds=3))
    assert (result.timeout, result.exit_code, result.stdout, result.error_message) == \
        (True, 124, "started\n", "Execution timed out after 3s")
    report = AutoDebuggerIntegration.create_debug_report(result)
    assert (report["status"], report["error_type"]) == ("failure", "timeout")
    result = made.execute("x = bytearray(10**9)", "python", limits=ResourceLimits("64m"))
    assert (result.success, result.exit_code) == (False, 137)


def test_languages(made):
    names = [item["language"] for item in made.list_supported_languages()]
    assert names == ["bash", "go", "javascript", "js", "python", "python3", "ruby", "sh"]
    assert made.execute("print(1)", " Python3 ").stdout == "1\n"
    assert made.execute("echo err >&2; exit 3", "sh").exit_code == 3
    result = made.execute("1", "cobol")
    assert result.exit_code == -1 and result.error_message == \
        "Unsupported language: cobol. Supported: " + ", ".join(names)
    assert made.execute("1", None).error_message.startswith("Unsupported language: None. ")


def test_files_stay_inside(made, tmp_path):
    for name in ("/tmp/vial-claw-x", "../x", "a/../../x"):
        result = made.execute("1", "python", files={name: "x"})
        assert result.exit_code == -1 and result.error_message.startswith("Error preparing files:")
    for files in ({1: "x"}, ["a"]):
        assert made.execute("1", "python", files=files).error_message.startswith("Error preparing files:")
    assert made.execute("print(1)", "python").cpu_percent <= 100
    code = "for p in ('/etc/t', '/sandbox/o', '/tmp/t'):\n    try:\n        open(p, 'w'); print('W')\n    except OSError: print('RO')"
    assert made.execute(code, "python").stdout == "RO\nRO\nW\n"
    result = made.execute("open('/sandbox/out.txt', 'w').write('x')", "python", read_only=False)
    assert result.success and result.output_files == {"out.txt": "x"}


def test_input_tests_and_variables(made):
    assert "EOFError" in made.execute("input()", "python").stderr
    assert made.execute_with_input("print(input().upper())", "python", "abc\n").stdout == "ABC\n"
    assert made.execute_tests("def add(a, b): return a + b", "assert add(1, 2) == 3", "python").success
    code = "import os\nprint(os.environ['A'], os.environ['PYTHONUNBUFFERED'])"
    assert made.execute(code, "python", env_vars={"A": "é"}).stdout == "é 1\n"
    assert made.execute("print(1)", "python", network_enabled=True).success


def test_history(daemon):
    sandbox = CodeSandbox()
    for number in range(3):
        last = sandbox.execute("print(%d)" % number, "python")
    history = sandbox.get_execution_history()
    assert len(history) == 3 and len(sandbox.get_execution_history(limit=2)) == 2
    assert set(history[0]) == {"timestamp", "language", "success", "exit_code", "execution_time",
                               "container_id"}
    assert sandbox.get_resource_usage(last.container_id)["memory_usage"]
    assert sandbox.get_resource_usage("unknown") is None
    sandbox.cleanup_all_containers()


def test_threads(made):
    with ThreadPoolExecutor(4) as pool:
        got = list(pool.map(lambda n: made.execute("print(%d)" % n, "python").stdout, range(8)))
    assert got == ["%d\n" % n for n in range(8)]


def test_limits():
    limits = ResourceLimits()
    assert (limits.memory_limit, limits.memory_swap, limits.cpu_quota, limits.cpu_period,
            limits.cpu_shares, limits.pids_limit, limits.timeout_seconds) == \
        ("512m", "512m", 100000, 100000, 1024, 100, 30)
    assert ResourceLimits(timeout_seconds=60).timeout_seconds == 30


def test_analysis_of_results():
    def analyze(**more):
        given = {"success": False, "exit_code": 1, "stdout": "", "stderr": "", "execution_time": 0.5,
                 "timeout": False, **more}
        return AutoDebuggerIntegration.analyze_error(ExecutionResult(**given))["error_type"]
    assert analyze() == "execution_failure"
    assert analyze(exit_code=0, error_message="lost") == "sandbox_error"
    assert analyze(success=True, exit_code=0) == "unknown"
    assert analyze(timeout=True, stderr="Traceback") == "timeout"


@pytest.mark.parametrize(("stderr", "exception"), [
    ("Traceback (most recent call last):\n  File\nAssertionError\n", "AssertionError"),
    ("Traceback (most recent call last):\n  File\nKeyError: 'a'\n\nDuring handling of the above exception, another "
     "exception occurred:\n\nTraceback (most recent call last):\n  File\nMemoryError\n", "MemoryError"),
    ("Traceback (most recent call last):\n  File\nValueError: a: b\nand more\n", "ValueError: a: b"),
    ("Traceback", None)])
def test_the_exception_of_a_traceback(stderr, exception):
    result = ExecutionResult(False, 1, "", stderr, 0.5, False)
    assert AutoDebuggerIntegration.analyze_error(result).get("exception") == exception


def test_no_backend(monkeypatch):
    import vial
    monkeypatch.delenv("VIAL_SOCKET")
    monkeypatch.setenv("VIAL_BINARY", "/nonexistent/vial")
    monkeypatch.setattr("vial._discover.local_socket", lambda: None)
    with pytest.raises(RuntimeError, match="No sandbox server"):
        CodeSandbox(client=vial.Sandbox())


def test_what_is_given_wrongly():
    sandbox = CodeSandbox()
    for code in (None, 5, b"print(1)"):
        result = sandbox.execute(code, "python")
        assert result.exit_code == -1 and result.error_message.startswith("Error preparing files:")
    result = sandbox.execute("print(1)", "python", files={"number": 0})
    assert result.exit_code == -1 and result.error_message.startswith("Error preparing files:")
    for seconds in (0, -1):
        result = sandbox.execute("print(1)", "python", limits=ResourceLimits(timeout_seconds=seconds))
        assert result.timeout and result.exit_code == 124 and not result.stdout
        assert result.error_message == "Execution timed out after %ss" % seconds


@pytest.mark.parametrize("given", [
    {"env_vars": [("A", "b")]}, {"env_vars": "A=b"}, {"env_vars": {"A=": "\0"}}, {"limits": {"timeout_seconds": 2}},
    {"limits": ResourceLimits(cpu_quota="x")},
    {"limits": ResourceLimits(pids_limit=None)}, {"limits": ResourceLimits(memory_limit="much")}])
def test_settings_that_are_wrong_are_in_the_result(made, given):
    result = made.execute("print(1)", "python", **given)
    assert (result.success, result.exit_code, result.stdout) == (False, -1, "")
    assert result.error_message.startswith("Error running container: ")


@pytest.mark.parametrize("name", ["code.py", "./code.py", "code.py/x"])
def test_no_file_takes_the_place_of_the_code(made, name):
    result = made.execute("print(1)", "python", files={name: "print(2)"})
    assert result.exit_code == -1 and result.error_message.startswith("Error preparing files: code.py is ")
    assert made.execute("echo 1", "bash", files={"code.py": "2"}).stdout == "1\n"


def test_the_callers_variables_win(made):
    code = "import os\nprint(os.environ['PYTHONUNBUFFERED'], os.environ['PYTHONDONTWRITEBYTECODE'])"
    assert made.execute(code, "python", env_vars={"PYTHONUNBUFFERED": "0"}).stdout == "0 1\n"


def test_what_docker_takes_too():
    sandbox = CodeSandbox()
    code = "import os\nprint(open('a/b').read(), os.environ['N'])"
    result = sandbox.execute(code, "python", files={"./a/./b": "text"}, env_vars={"N": 5},
                             limits=ResourceLimits(pids_limit=-1))
    assert result.stdout == "text 5\n"
