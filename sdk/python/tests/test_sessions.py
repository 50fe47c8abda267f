"""Sessions: state, values, rich results, callbacks, and how they end."""
import asyncio
import threading

import pytest

import vial


@pytest.fixture
def session(sandbox):
    with sandbox.session() as made:
        yield made


class Peculiar(Exception):
    """Nothing that a guest has heard of."""


def test_state_and_values(session):
    assert session.run("x = [1, 2]").value is None
    result = session.run("x.append(3); x")
    assert result.value == [1, 2, 3] and result.state == "kept" and result.ok
    assert session.run("{'a': 2**80, 'b': None, 'c': [0.5, True, 'é']}").value == \
        {"a": 2 ** 80, "b": None, "c": [0.5, True, "é"]}
    assert session.run("return x", mode="function").value == [1, 2, 3]
    assert session.run("print(x)", mode="script").stdout == "[1, 2, 3]\n"


def test_values_that_json_cannot_say(session):
    value = session.run("{1, 2}").value
    assert isinstance(value, vial.Opaque) and value.text == "{1, 2}" and value.type_name == "set"
    assert repr(value) == "{1, 2}" and value


def test_rich_results(session):
    code = "class P:\n    def _repr_html_(self): return '<b>x</b>'\n    def _repr_png_(self): return b'\\x89PNG'\nP()"
    result = session.run(code)
    assert result.rich.html == "<b>x</b>" and result.rich.png == b"\x89PNG"
    assert result._repr_html_() == "<b>x</b>" and result._repr_png_() == b"\x89PNG"
    assert result._repr_mimebundle_()["text/html"] == "<b>x</b>"


def test_globals_and_failures(session):
    assert session.run("a + b", globals={"a": 1, "b": 2}).value == 3
    result = session.run("def f():\n    raise KeyError('k')\nf()")
    assert result.exception.type == "KeyError" and result.exception.frames[-1].name == "f"
    with pytest.raises(KeyError) as caught:
        session.run("f()", check=True)
    assert caught.value.args == ("k",)
    assert session.run("a").value == 1


def test_callbacks(session):
    main = threading.current_thread()
    seen = []

    def add(a, b=1):
        seen.append(threading.current_thread() is main)
        return a + b

    at_once = 0

    async def slow(n):
        nonlocal at_once
        at_once += 1
        while at_once < 5:  # or nobody goes on
            await asyncio.sleep(0.01)
        return n
    callbacks = {"add": add, "slow": slow}
    assert session.run("add(1, b=2) + add(1)", callbacks=callbacks).value == 5
    assert seen == [True, True]
    code = "import asyncio\nreturn await asyncio.gather(*[slow(n) for n in range(5)])"
    assert session.run(code, mode="function", callbacks=callbacks).value == [0, 1, 2, 3, 4]


def test_callbacks_of_a_step_that_was_refused(session):
    assert session.run("a()", callbacks={"a": lambda: 1}).value == 1
    with pytest.raises(vial.InvalidRequest):
        session.run("b()", mode="none such", callbacks={"b": lambda: 2})
    assert session.run("a()").value == 1


def test_callbacks_of_a_step_that_was_taken_back(daemon):
    with vial.Sandbox(daemon).session(rewind=True) as session:
        assert session.run("a()", callbacks={"a": lambda: 1}).value == 1
        session.run("b(); exit(1)", callbacks={"b": lambda: 2})
        assert session.run("a()", check=True).value == 1
        session.run("1", callbacks=[])
        session.undo()
        assert session.run("a()", check=True).value == 1


@pytest.mark.parametrize("is_async", (False, True))
def test_an_answer_that_is_too_large_is_an_error_of_the_call(session, is_async):
    async def later():
        return "x" * (17 << 20)
    code = "try:\n    big()\nexcept Exception as e:\n    print(e)"
    result = session.run(code, callbacks={"big": later if is_async else lambda: "x" * (17 << 20)})
    assert result.stdout.startswith("TooLarge: ")


AWAITING = "import asyncio\nawait asyncio.sleep(0)\n"


def test_callbacks_are_what_they_are_here(session, daemon):
    def price(item):
        return {"tea": 3}[item]

    async def slow(n):
        return 2 * n
    codes = {AWAITING + "price('tea') + 1": 4, "slow(1) + 1": 3,
             AWAITING + "await asyncio.gather(asyncio.ensure_future(slow(2)), slow(3))": [4, 6]}
    for code, value in codes.items():
        assert session.run(code, callbacks=[price, slow], check=True).value == value

    async def main():
        async with vial.AsyncSandbox(daemon).session() as other:
            return [(await other.run(code, callbacks=[price, slow], check=True)).value
                    for code in codes]
    assert asyncio.run(main()) == list(codes.values())


def test_callbacks_stay_from_step_to_step(session, daemon):
    session.run("1", callbacks={"add": lambda a, b: a + b})
    assert session.run("add(1, 2)", check=True).value == 3
    with session.fork() as branches:
        assert branches[0].run("add(2, 2)", check=True).value == 4
    assert session.stream("add(3, 2)").result.value == 5
    session.run("1", callbacks=[])
    assert session.run("add(1, 2)").exception.type == "NameError"
    session.run("1", callbacks={"add": lambda a, b: a + b})
    session.reset()
    assert session.run("add(1, 2)").exception.type == "NameError"

    async def main():
        async with vial.AsyncSandbox(daemon).session() as other:
            await other.run("1", callbacks={"add": lambda a, b: a + b})
            return (await other.run("add(1, 2)", check=True)).value
    assert asyncio.run(main()) == 3


def test_exceptions_of_callbacks_travel(session):
    error = Peculiar("mine")

    def bad(kind):
        raise {"key": KeyError("k"), "own": error}[kind]
    code = "try:\n    bad('key')\nexcept KeyError as e:\n    r = e.args[0]\nr"
    assert session.run(code, callbacks=[bad]).value == "k"
    with pytest.raises(Peculiar) as caught:
        session.run("bad('own')", callbacks=[bad], check=True)
    assert caught.value is error

    class BadRow(ValueError):
        pass

    def check():
        raise BadRow("row 3")
    code = "try:\n    check()\nexcept ValueError as e:\n    r = [type(e).__name__, str(e)]\nr"
    assert session.run(code, callbacks=[check]).value == ["BadRow", "row 3"]
    with pytest.raises(BadRow):
        session.run("check()", callbacks=[check], check=True)
    result = session.run("f()", callbacks={"f": object})
    assert result.exception.type == "TypeError" and "JSON" in result.exception.message


def test_what_a_callback_raises_may_say_what_json_cannot(session):
    def bad():
        raise ValueError("\udc80")
    assert session.run("bad()", callbacks=[bad], timeout=10).exception.message == "\\udc80"


def test_output_as_it_comes(session):
    seen = []
    session.run("import time\nprint(1, flush=True)\ntime.sleep(2)\nprint(2)",
                on_output=lambda stream, text: seen.append((stream, text)))
    assert "".join(text for _, text in seen) == "1\n2\n" and len(seen) >= 2
    events = list(session.stream("print(3)\n4"))
    assert isinstance(events[-1], vial.Finished) and events[-1].result.value == 4


def test_time(session):
    session.run("x = 1")
    result = session.run("while True: pass", timeout=2)
    assert result.timed_out and result.state == "kept"
    assert session.run("x").value == 1
    code = "import time; print('on', flush=True); time.sleep(60)"  # who says so has begun
    assert session.run(code, on_output=lambda *_: session.interrupt()).interrupted
    assert session.interrupt() is False


def test_rewind_and_undo(sandbox):
    with sandbox.session(rewind=True) as session:
        session.run("x = 1; open('f', 'w').write('1')")
        bad = session.run("x = 2; open('f', 'w').write('2'); import os; os._exit(3)")
        assert (bad.state, bad.exit_code) == ("rolled_back", 3)
        session.run("x = 3")
        assert session.undo().state == "rolled_back"
        assert session.run("x, open('f').read()").value == [1, "1"]
        session.undo()
        assert "no step" in session.undo().exception.message


def test_forks(sandbox):
    with sandbox.session() as session:
        session.run("x = 6")
        with session.fork(2) as branches:
            assert [branch.run("x += %d; x" % i).value for i, branch in enumerate(branches)] == [6, 7]
            assert branches[0].info().parent == session.id
        assert session.run("x").value == 6
        session.run("import socket; s = socket.socketpair()")
        with pytest.raises(vial.Denied, match="socket"):
            session.fork()


def test_forks_of_a_session_with_rewind(sandbox):
    with sandbox.session("python", rewind={"undo": 2}) as session:
        session.run("import os; x = [1]")
        session.checkpoint("here")
        with session.fork(2) as branches:
            for number, one in enumerate([session, *branches]):
                assert one.checkpoints() == []
                assert one.undo().state == "kept"
                one.run("x.append(%d)" % number)
                assert one.run("x.clear(); os._exit(1)").state == "rolled_back"
                assert one.run("x").value == [1, number]
                assert one.undo(2).state == "rolled_back"
                assert one.run("x").value == [1]


def test_forks_of_an_async_session(daemon):
    async def main():
        async with vial.AsyncSandbox(daemon) as sandbox:
            async with sandbox.session() as session:
                await session.run("x = 6")
                async with session.fork(8) as branches:
                    steps = [branch.run("x += %d; x" % i) for i, branch in enumerate(branches)]
                    assert [r.value for r in await asyncio.gather(*steps)] == list(range(6, 14))
                    assert {(await branch.info()).parent for branch in branches} == {session.id}
                with pytest.raises(vial.NotFound):  # closed with the block
                    await branches[0].run("x")
                assert (await session.run("x")).value == 6
                kept = await session.fork(2, deterministic=True)
                drawn = [(await one.run("import random; random.random()")).value for one in (session, *kept)]
                assert len(set(drawn)) == 1
                for one in kept:
                    await one.aclose()

    asyncio.run(main())


def test_checkpoints(sandbox):
    with sandbox.session(rewind={"undo": 3}) as session:
        session.run("x = 1")
        assert session.checkpoint("one").name == "one"
        for number in (2, 3, 4):
            session.run("x = %d" % number)
        assert session.undo(2).state == "rolled_back"
        assert session.run("x").value == 2
        assert session.restore("one").state == "rolled_back"
        assert session.run("x").value == 1
        assert [item.name for item in session.checkpoints()] == ["one"]
        session.forget("one")
        with pytest.raises(vial.NotFound):
            session.restore("one")


def test_reset_and_the_end(sandbox):
    session = sandbox.session(idle_timeout=60, lifetime=120)
    session.run("x = 1")
    session.reset()
    assert session.run("x").exception.type == "NameError"
    lost = session.run("import os; os._exit(3)")
    assert lost.state == "lost" and session.run("1 + 1").value == 2
    session.extend(300)
    assert session.info().state == "idle" and session.info().id == session.id
    assert session.id in [item.id for item in sandbox.sessions()]
    assert sandbox.attach(session.id).run("2").value == 2
    session.close()
    session.close()
    with pytest.raises(vial.NotFound):
        session.run("1")


def test_policy(sandbox):
    with sandbox.session(policy={"block": ["os"]}) as session:
        assert session.run("import os").exception.message == "Import 'os' not allowed"
        assert session.run("import os", policy=None).ok


def test_asyncio(daemon):
    async def main():
        sandbox = vial.AsyncSandbox(daemon)
        async with sandbox.session() as session:
            async def ask(n):
                await asyncio.sleep(0.05)
                return n * 2
            result = await session.run("y = ask(4)\nreturn await y if hasattr(y, '__await__') else y",
                                       mode="function", callbacks={"ask": ask})
            assert result.value == 8
            assert (await session.run("plain(1)", callbacks={"plain": lambda n: n + 1})).value == 2
            steps = [session.run("print(%d)" % n) for n in range(20)]
            assert [r.stdout for r in await asyncio.gather(*steps)] == ["%d\n" % n for n in range(20)]
            with pytest.raises(Peculiar):
                def bad():
                    raise Peculiar("x")
                await session.run("bad()", callbacks=[bad], check=True)
            await session.reset()
        session = await sandbox.session()
        await session.aclose()
    asyncio.run(main())


def test_many_sessions_at_once(daemon):
    async def one(sandbox, n):
        async with sandbox.session() as session:
            await session.run("x = %d" % n)
            return (await session.run("x")).value

    async def main():
        sandbox = vial.AsyncSandbox(daemon)
        return await asyncio.gather(*[one(sandbox, n) for n in range(40)])
    assert asyncio.run(main()) == list(range(40))


@pytest.mark.parametrize(("language", "first", "second", "value"), [
    ("javascript", "var x = 20", "x + 1", 21), ("ruby", "x = 20", "x + 1", 21)])
def test_other_languages(sandbox, language, first, second, value):
    if language not in [item["name"] for item in sandbox.environments()]:
        pytest.skip(language + " is not installed")
    with sandbox.session(language) as session:
        session.run(first)
        assert session.run(second).value == value
