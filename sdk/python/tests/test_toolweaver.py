"""vial.toolweaver: every example of its document, and what its users rely on."""
import asyncio
import collections
import concurrent.futures
import datetime
import decimal
import fractions
import sys
import uuid

import pytest

import vial
from vial import Opaque
from vial.toolweaver import (
    ProgrammaticToolExecutor,
    ResourceLimits,
    SandboxEnvironment,
    SandboxError,
    SandboxSecurityError,
    ToolCatalog,
    ToolDefinition,
    ToolParameter,
    create_sandbox,
    execute_programmatic_code,
    literal,
)


def execute(code, globals_dict=None, **init):
    async def main():
        async with SandboxEnvironment(**init) as sandbox:
            return await sandbox.execute_code(code, globals_dict)
    return asyncio.run(main())


def test_values():
    assert execute("result = sum([i**2 for i in range(100)])\nreturn result",
                   limits=ResourceLimits(max_memory_mb=256, timeout_seconds=10)) == 328350
    assert execute("total = sum(data)\nreturn multiply(total, 2)",
                   {"data": [1, 2, 3, 4, 5], "multiply": lambda x, y: x * y}) == 30
    assert execute("result = 1 + 2") == 3
    assert execute("y = 1") is None
    assert execute("async def __main__():\n    return 'done'") == "done"


@pytest.mark.parametrize("value", [
    (1, 2), (), {1, 2}, set(), frozenset({"a"}), b"\x00'\"", bytearray(b"x"), 1 + 2j, float("-inf"),
    {"a": (1, {2})}, {1: "one", (1, 2): None}, [1, ...], datetime.datetime(2024, 1, 2, 3, 4, 5),
    datetime.datetime(2024, 1, 2, tzinfo=datetime.timezone.utc), datetime.timedelta(days=-1),
    decimal.Decimal("1.10"), fractions.Fraction(1, 3), uuid.UUID(int=1), range(1, 9, 2),
    collections.OrderedDict(a=1), collections.deque([1, 2]), "a\udc80", {"\ud800": 1}, "\u00e9\n'\"", 2 ** 80, None, True])
def test_values_that_json_does_not_have(value):
    code = "import collections, datetime, decimal, fractions, uuid\nreturn value"
    got = execute(code, {"value": value})
    assert got == value
    assert type(got) is (dict if isinstance(value, dict) else type(value))


@pytest.mark.parametrize("value", [
    (1, (2, [3])), [(1, 2)], {"a": (1, [2, ("(",)])}, ["(1,)", "("], ((1,), 2.5, None, True, ()), [[1], [2]]])
def test_tuples_inside(value):
    assert repr(execute("return %r" % (value,))) == repr(value)


def test_collections_arrive_as_what_they_are():
    given = {"c": collections.Counter("aab"), "o": collections.OrderedDict(a=1), "d": collections.defaultdict(list, a=[1]),
             "n": collections.defaultdict(None), "f": collections.defaultdict(lambda: 7), "q": collections.deque([1, 2], 2)}
    assert execute("q.append(3)\nd['b'].append(2)\nreturn [type(v).__name__ for v in (c, o, d, n, f, q)] + "
                   "[c['x'], c.most_common(1), dict(d), n.default_factory, f['y'], list(q)]", given) == [
        "Counter", "OrderedDict", "defaultdict", "defaultdict", "defaultdict", "deque",
        0, [("a", 2)], {"a": [1], "b": [2]}, None, 7, [2, 3]]


def test_text_that_is_no_value_stays_text():
    for text in ("set(range(10**12))", "bytearray(10**12)", "(" * 5000, "__import__('os')", "1 + 1",
                 "-" * 5000 + "1", "1" * 5000, "[1", "f(1)", "{[]: 1}", "datetime.date(0, 0, 0)"):
        with pytest.raises(ValueError):
            literal.read(text)
    assert isinstance(execute("return object()"), Opaque)


def test_functions_inside_of_data():
    tools = {"add": lambda x, y: x + y, "more": [lambda x: x * 10]}

    async def main():
        async with SandboxEnvironment() as sandbox:
            code = "return tools['add'](1, 2) + tools['more'][0](4)"
            assert await sandbox.execute_code(code, {"tools": tools}) == 43
            assert await sandbox.execute_code("return tools['add'](3, 4)") == 7
            with pytest.raises(TypeError, match="object cannot be given to the sandbox"):
                await sandbox.execute_code("pass", {"x": [object()]})
    asyncio.run(main())


def test_functions_inside_of_data_are_not_mixed_up():
    async def main():
        async with SandboxEnvironment() as sandbox:
            for names in ({"f": lambda: 0}, {"t": {"a": lambda: "A"}}, {"f": 5}, {"u": {"b": lambda: "B"}}):
                await sandbox.execute_code("return 0", names)
            assert await sandbox.execute_code("return t['a'](), u['b']()") == ("A", "B")
    asyncio.run(main())


def test_functions_inside_of_data_go_when_it_is_given_anew():
    async def main():
        async with SandboxEnvironment() as sandbox:
            for number in range(1100):
                got = await sandbox.execute_code("return t['f']()", {"t": {"f": lambda number=number: number}})
            assert got == 1099
    asyncio.run(main())


def test_names_of_any_kind_for_data_of_any_kind():
    async def main():
        async with SandboxEnvironment() as sandbox:
            code = "return globals()['a name'], eval, globals()['f n']()"
            assert await sandbox.execute_code(code, {"a name": {1}, "eval": {2}, "f n": lambda: 3}) == ({1}, {2}, 3)
            await sandbox.execute_code("eval = exec = globals = __import__ = set = None\n_names = 7")
            assert await sandbox.execute_code("return x, _names", {"x": {4}}) == ({4}, 7)
    asyncio.run(main())


def test_data_that_does_not_arrive_is_an_error():
    async def main():
        async with SandboxEnvironment() as sandbox:
            await sandbox.execute_code("import builtins\nbuiltins.exec = lambda *_: 1 / 0")
            with pytest.raises(ZeroDivisionError):
                await sandbox.execute_code("return x", {"x": {1}})
    asyncio.run(main())


def test_asynchronous_code_and_functions():
    async def double(x):
        await asyncio.sleep(0.01)
        return 2 * x
    code = "return await asyncio.gather(double(1), double(2))"
    assert execute(code, {"double": double}) == [2, 4]
    assert execute("def f(x: Optional[List[int]]) -> Dict[str, Any]: return {}\nreturn f(None)",
                   allowed_imports=["json"]) == {}


def test_plain_functions_are_plain_where_code_awaits():
    names = {"data": [1, 2, 3, 4, 5], "multiply": lambda x, y: x * y}
    code = "import asyncio\nawait asyncio.sleep(0)\ntotal = sum(data)\nreturn multiply(total, 2)"
    assert execute(code, names) == 30
    code = "async def __main__():\n    await asyncio.sleep(0)\n    return multiply(sum(data), 2)"
    assert execute(code, names) == 30


@pytest.mark.parametrize("code", [
    "import os", "import os.path", "from os import path", "import json, os", "__import__('os')",
    "import importlib\nimportlib.import_module('os')", "exec('import os')"])
def test_imports_that_are_refused(code):
    with pytest.raises(ImportError, match=r"^Import 'os' not allowed$"):
        execute(code, allowed_imports=["json", "importlib"])


def test_imports_of_what_is_allowed():
    code = "import datetime\nreturn datetime.datetime(2001, 1, 1).strftime('%Y')"
    assert execute(code, allowed_imports=["json", "math", "datetime"]) == "2001"


@pytest.mark.parametrize("error", [StopIteration, GeneratorExit, SystemExit, KeyboardInterrupt, asyncio.CancelledError])
def test_functions_that_raise_what_is_not_an_error(error):
    def fail():
        raise error
    with pytest.raises(RuntimeError, match="the callback fail raised " + error.__name__) as caught:
        execute("fail()", {"fail": fail})
    assert type(caught.value.__cause__) is error

    async def fail_later():
        raise asyncio.CancelledError("later")
    code = "try:\n    await fail_later()\nexcept Exception as e:\n    return type(e).__name__"
    assert execute(code, {"fail_later": fail_later}) in ("CancelledError", "CallbackError")


@pytest.mark.parametrize("error", [
    MemoryError("mm"), TimeoutError("late"), asyncio.TimeoutError(), KeyError(), concurrent.futures.CancelledError()])
def test_what_a_function_raises_is_that_very_object(error):
    def fail():
        raise error
    with pytest.raises(type(error)) as caught:
        execute("fail()", {"fail": fail})
    assert caught.value is error


def test_imports_by_default():
    assert execute("import re, random, statistics, collections, decimal\nreturn statistics.mean([1,3])") == 2
    for name in ("os", "sys", "subprocess", "socket", "requests", "shutil", "tempfile", "pickle"):
        with pytest.raises(ImportError, match="Import '%s' not allowed" % name):
            execute("import " + name)
    assert execute("import os.path\nreturn os.path.basename('/a/b')", allowed_imports=["os"]) == "b"


def test_limits():
    with pytest.raises(TimeoutError, match=r"^Execution timeout after 1s$"):
        execute("while True:\n    pass", limits=ResourceLimits(timeout_seconds=1))
    with pytest.raises(MemoryError):
        execute("big_list = [0] * (500 * 1024 * 1024 // 8)", limits=ResourceLimits(max_memory_mb=100))


@pytest.mark.parametrize("code", [
    "with open('/etc/passwd', 'r') as f:\n    return f.read()",
    "import io\nreturn io.open('/etc/passwd').read()"])
def test_no_files(code):
    with pytest.raises(PermissionError):
        execute(code)


def test_files_of_its_own():
    code = "open('x', 'w').write('1')\nreturn open('x').read()"
    assert execute(code, filesystem_access=True) == "1"
    with pytest.raises(OSError):
        execute("return open('/etc/shadow').read()", filesystem_access=True)


def test_no_network_and_no_processes():
    code = "import socket\ntry:\n    socket.create_connection(('1.1.1.1', 53), timeout=1)\n    return 1\nexcept OSError:\n    return 0"
    assert execute(code, allowed_imports=["socket"]) == 0
    code = "import subprocess\ntry:\n    subprocess.run(['true'])\n    return 1\nexcept OSError:\n    return 0"
    assert execute(code, allowed_imports=["subprocess"]) == 0


def test_exceptions():
    with pytest.raises(ZeroDivisionError):
        execute("1 / 0")
    with pytest.raises(SyntaxError):
        execute("x = = 1")
    with pytest.raises(SandboxError, match="strange") as caught:
        execute("class Odd(Exception): pass\nraise Odd('strange')")
    assert caught.value.type_name == "Odd" and "Traceback" in caught.value.traceback
    with pytest.raises(SandboxError) as caught:
        execute("raise SystemExit(3)")
    assert caught.value.type_name == "SystemExit"


def test_state_logs_and_reset():
    async def main():
        async with SandboxEnvironment() as sandbox, SandboxEnvironment() as other:
            await sandbox.execute_code("counter = 1\nprint('one')")
            with pytest.raises(ValueError, match="bad"):
                await sandbox.execute_code("raise ValueError('bad')")
            logs = sandbox.get_logs()
            assert logs["stdout"] == "one\n" and "ValueError: bad" in logs["stderr"]
            assert await sandbox.execute_code("return counter") == 1
            with pytest.raises(NameError):
                await other.execute_code("return counter")
            sandbox.reset()
            assert sandbox.get_logs() == {"stdout": "", "stderr": ""}
            with pytest.raises(NameError):
                await sandbox.execute_code("return counter")
            await sandbox.reset()
            assert await sandbox.execute_code("return asyncio.__name__") == "asyncio"
    asyncio.run(main())


@pytest.mark.parametrize("leave", [
    "exit(3)", "quit(3)", "raise SystemExit(3)", "import sys\nsys.exit(3)", "await asyncio.sleep(0)\nexit(3)",
    "import argparse\nargparse.ArgumentParser().exit(3)"])
def test_state_stays_when_code_exits(leave):
    async def main():
        async with SandboxEnvironment(allowed_imports=["sys", "argparse"]) as sandbox:
            await sandbox.execute_code("n = 1")
            with pytest.raises(SandboxError) as caught:
                await sandbox.execute_code("n += 1\n" + leave)
            assert (caught.value.type_name, caught.value.message) == ("SystemExit", "3")
            for well in ("exit()", "exit(0)", "raise SystemExit"):
                assert await sandbox.execute_code(well) is None
            code = "try:\n    exit(5)\nexcept Exception:\n    pass\nexcept SystemExit as e:\n    return e.code + n"
            assert await sandbox.execute_code(code) == 7
    asyncio.run(main())


def test_execute():
    async def main():
        async with create_sandbox(use_docker=True) as sandbox:
            for refused in (("-" * 200000 + "1",), ("return 1", {"a": object()}), ("return 1", {"a": [object()]}),
                            ("return 1", {"f": {object(): 1}})):
                bad = await sandbox.execute(*refused)
                assert not bad.success and bad.error and bad.error_type in ("SecurityError", "TypeError")
            good = await sandbox.execute("print(1)\nresult = x", {"x": 5})
            assert (good.success, good.output, good.stdout, good.error) == (True, 5, "1\n", None)
            bad = await sandbox.execute("print('before')\nraise ValueError('no')")
            assert (bad.success, bad.stdout, bad.error, bad.error_type) == \
                (False, "before\n", "no", "ValueError")
            assert "\nTraceback" in bad.stderr
            refused = await sandbox.execute("import os")
            assert (refused.error, refused.error_type, refused.duration) == \
                ("Forbidden import: os", "SecurityError", 0)
    asyncio.run(main())


@pytest.mark.parametrize(("code", "text"), [
    ("eval('1')", "Forbidden function: eval"), ("import os", "Forbidden import: os"),
    ("from os import system", "Forbidden import: os"), ("if True", "Syntax error: "),
    ("__builtins__.eval('1')", "Direct __builtins__ access forbidden"),
    ("__builtins__ = {}", "Cannot modify: __builtins__")])
def test_validation(code, text):
    with pytest.raises(SandboxSecurityError, match=text):
        SandboxEnvironment().validate_code(code)
    SandboxEnvironment().validate_code("import asyncio\nre.compile('x')")


def test_limits_by_default():
    limits = ResourceLimits()
    assert (limits.max_memory_mb, limits.max_cpu_percent, limits.timeout_seconds,
            limits.max_tool_calls, limits.max_concurrent, limits.max_total_cost_usd) == \
        (512, 50.0, 30, 100, 5, 10.0)
    assert ResourceLimits(max_duration=5.0).seconds == 5.0


def tools():
    catalog = ToolCatalog()

    async def members(team):
        return [{"id": 1, "name": "Ann"}, {"id": 2, "name": "Bo"}]
    catalog.add_tool(ToolDefinition("get_members", members,
                                    parameters=[ToolParameter("team", required=True)]))
    catalog.add_tool(ToolDefinition("get_cost", lambda id: id * 10))

    def bad():
        raise ValueError("broken")
    catalog.add_tool(ToolDefinition("bad", bad))
    return catalog


def test_tools():
    async def main():
        executor = ProgrammaticToolExecutor(tools(), max_tool_calls=4)
        code = "team = await get_members(team=t)\ncosts = await asyncio.gather(*[get_cost(id=m['id']) for m in team])\nprint(json.dumps(costs))\nreturn sum(costs)"
        got = await executor.execute(code, {"t": "x"})
        assert (got["output"], got["result"], got["error"]) == ("[10, 20]\n", 30, None)
        assert got["execution_id"].startswith("ptc_") and got["execution_time"] > 0
        record = got["tool_calls"][0]
        assert set(record) == {"tool", "type", "parameters", "timestamp", "caller", "result_size",
                               "completed_at", "duration", "error"}
        assert record["caller"] == {"type": "code_execution", "execution_id": got["execution_id"],
                                    "tool_id": "tool_call_1"}
        got = await executor.execute("await get_members()")
        assert "ValueError" in got["error"] and "Missing required parameters" in got["error"]
        got = await executor.execute("for n in range(9): await get_cost(id=n)")
        assert "Exceeded max tool calls (4). Consider" in got["error"]
        assert (await executor.execute("await bad()"))["error"] == "ValueError: broken"
        got = await executor.execute("await get_cost(1)")
        assert got["error"] == "TypeError: get_cost() takes 0 positional arguments but 1 was given"
        assert (await executor.execute("import os"))["error"] == "Security violation: Forbidden import: os"
        assert "SyntaxError" in (await executor.execute("x = = 1"))["error"]
        await executor.sandbox.aclose()
        assert (await execute_programmatic_code("print(1)", {}))["output"] == "1\n"
    asyncio.run(main())


def test_tools_as_modules():
    async def main():
        async def add_numbers(a, b=0):
            return {"result": a + b}

        def fails():
            raise ValueError("broken")
        catalog = ToolCatalog(source="test", version="1.0")
        catalog.add_tool(ToolDefinition(name="add_numbers", function=add_numbers, description="Add two numbers", parameters=[
            ToolParameter(name="a", type="integer", required=True), ToolParameter(name="b", type="integer")]))
        catalog.add_tool(ToolDefinition(name="fails", function=fails, domain="jira"))
        executor = ProgrammaticToolExecutor(catalog, max_tool_calls=5)
        got = await executor.execute("""
            from tools.general.add_numbers import add_numbers, AddNumbersInput
            made = await add_numbers(AddNumbersInput(a=2, b=3))
            print(made.result, made.success, made.error)
        """)
        assert (got["error"], got["output"]) == (None, "{'result': 5} True None\n")
        assert [(c["tool"], c["parameters"], c["caller"]["type"]) for c in got["tool_calls"]] == \
            [("add_numbers", {"a": 2, "b": 3}, "stub_import")]
        got = await executor.execute("from tools.general import add_numbers, AddNumbersInput\nfrom tools import jira\n"
                                     "one = await add_numbers(AddNumbersInput(a=1))\nbad = await jira.fails(jira.FailsInput())\n"
                                     "return [one.result, bad.success, bad.error]")
        assert (got["error"], got["result"]) == (None, [{"result": 1}, False, "broken"])
        got = await executor.execute("from tools.general import AddNumbersInput\nAddNumbersInput(b=1)")
        assert got["error"] == "ValueError: AddNumbersInput: Missing required parameters: ['a']"
        assert executor.get_tools_directory_tree() == \
            "tools/\n  general/\n    add_numbers.py\n  jira/\n    fails.py"
        assert executor.search_tools("TWO") == ["add_numbers"] and executor.stubs_generated
        executor.sandbox.reset()  # they are there afterwards
        assert (await executor.execute("from tools.jira import fails\nreturn fails.__name__"))["result"] == "fails"
        await executor.sandbox.aclose()
        plain = ProgrammaticToolExecutor({"add": lambda a, b: a + b})
        got = await plain.execute("from tools.general import add, AddInput\nreturn (await add(AddInput(a=2, b=3))).result")
        assert (got["error"], got["result"]) == (None, 5)
        await plain.sandbox.aclose()
        bare = ProgrammaticToolExecutor(catalog, enable_stubs=False)
        assert (await bare.execute("import tools"))["error"].startswith("ModuleNotFoundError")
        assert bare.get_tools_directory_tree() is None
        await bare.sandbox.aclose()
    asyncio.run(main())


def test_functions_stay_until_reset():
    async def main():
        async with SandboxEnvironment() as sandbox:
            await sandbox.execute_code("pass", {"f": lambda: 1, "g": lambda: 2})
            assert await sandbox.execute_code("return f()", {"g": 5}) == 1
            assert await sandbox.execute_code("return g") == 5
            sandbox.reset()
            with pytest.raises(NameError):
                await sandbox.execute_code("return f()")
    asyncio.run(main())


def test_large_values(daemon):
    async def main():
        async with SandboxEnvironment() as sandbox:
            assert len(await sandbox.execute_code("return 'x' * 5_000_000")) == 5_000_000
            with pytest.raises(ValueError, match="too large to be returned"):
                await sandbox.execute_code("return 'x' * 20_000_000")
            assert await sandbox.execute_code("return 1") == 1
    asyncio.run(main())


def test_builtin_exceptions_of_more_than_a_text():
    with pytest.raises(UnicodeDecodeError, match="can't decode byte 0xff in position 0"):
        execute(r"b'\xff'.decode()")
    with pytest.raises(FileNotFoundError) as caught:
        execute("raise FileNotFoundError(2, 'No such thing', 'name')")
    assert caught.value.errno == 2 and caught.value.filename == "name"


@pytest.mark.parametrize(("code", "text"), [
    ("KeyError", ""), ("KeyError('')", "''"), ("KeyError(('a', 1))", "('a', 1)")])
def test_keys_that_were_not_there(code, text):
    with pytest.raises(KeyError) as caught:
        execute("raise " + code)
    assert str(caught.value) == text
    with pytest.raises(KeyError) as caught:
        execute("raise KeyError(object())")
    assert str(caught.value).startswith("<object object at ")


@pytest.mark.skipif(sys.version_info < (3, 11), reason="there are no groups")
def test_groups_of_exceptions():
    with pytest.raises(ExceptionGroup) as caught:
        execute("class Odd(Exception): pass\ntry:\n    1 / 0\nexcept Exception as e:\n    zero = e\n"
                "raise ExceptionGroup('g', [zero, ValueError('two\\nlines'), ExceptionGroup('in', [KeyError('k'), Odd('x')])])")
    zero, value, inner = caught.value.exceptions
    assert str(caught.value) == "g (3 sub-exceptions)" and type(zero) is ZeroDivisionError
    assert type(value) is ValueError and str(value) == "two\nlines"
    assert inner.message == "in" and inner.exceptions[0].args == ("k",)
    assert inner.exceptions[1].type_name == "Odd"


def test_groups_that_lie_about_themselves():
    told = vial.ExceptionInfo("ExceptionGroup", "g (2 sub-exceptions)", "no members", module="builtins")
    assert type(told.to_exception()).__name__ in ("ExceptionGroup", "RemoteError")
    deep = "".join("%s| ExceptionGroup: x (1 sub-exception)\n%s+-+---------------- 1 ----------------\n"
                   % (" " * depth, " " * depth) for depth in range(2, 800, 2))
    told = vial.ExceptionInfo("ExceptionGroup", "x (1 sub-exception)", deep, module="builtins")
    assert isinstance(told.to_exception(), Exception)


def test_the_older_names_of_limits():
    assert ResourceLimits().max_duration == 300.0 and ResourceLimits().seconds == 30
    assert ResourceLimits(max_duration=300.0).seconds == 300.0
    assert ResourceLimits(max_duration=0.5, timeout_seconds=9).seconds == 0.5
    with pytest.raises(TimeoutError, match="Execution timeout after 0s"):
        execute("return 1", limits=ResourceLimits(timeout_seconds=0))


def test_an_executors_time_can_be_changed():
    async def main():
        executor = ProgrammaticToolExecutor(ToolCatalog(source="test", version="1.0"))
        executor.timeout = 0.2
        return await executor.execute("await asyncio.sleep(5)")
    assert "timeout" in asyncio.run(main())["error"].lower()


def test_who_gives_up_ends_the_code():
    async def main():
        async with SandboxEnvironment() as sandbox:
            await sandbox.execute_code("kept = 1")
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(sandbox.execute_code("while True: pass"), 2)
            return await asyncio.wait_for(sandbox.execute_code("return kept"), 20)
    assert asyncio.run(main()) == 1
