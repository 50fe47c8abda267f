"""vial.agentfly: every example of its document, and what its users rely on."""
import asyncio
import inspect

import pytest

from vial.agentfly import EnvironmentPool, PythonSandboxEnv, code_interpreter, code_reward
from vial.agentfly import env as env_module


def run(function):
    return asyncio.run(function())


def test_defaults():
    found = {name: p.default for name, p in inspect.signature(PythonSandboxEnv).parameters.items()
             if name != "client"}
    assert found == {"image": "reasonwang/python-http-env:latest", "runtime": "runc", "cpu": 2,
                     "mem": "2g", "start_timeout": 60.0, "max_episodes": 100,
                     "host_ip": "127.0.0.1", "container_port": 8000}


def test_the_document():
    async def main():
        env = PythonSandboxEnv(cpu=1, mem="1g", start_timeout=30.0)
        await env.start()
        assert await env.step("import math; print(math.pi)") == "3.141592653589793\n"
        await env.step("x = [1, 2, 3]")
        await env.step("x.append(4)")
        assert await env.step("print(x)") == "[1, 2, 3, 4]\n"
        assert await env.reset() == ""
        assert await env.step("print(x)") == "NameError: name 'x' is not defined\n"
        await env.aclose()
        await env.aclose()
        env = await PythonSandboxEnv.acquire()
        assert await env.step("print('Ready to use!')") == "Ready to use!\n"
        env.close()
    run(main)


def test_an_infinite_loop(monkeypatch):
    async def main():
        async with PythonSandboxEnv() as env:
            await env.step("x = 1")
            with monkeypatch.context() as short, \
                    pytest.raises(TimeoutError, match=r"^Execution timed out$"):
                short.setattr(env_module, "STEP_S", 0.5)
                await env.step("while True: pass")
            assert await env.step("print('Recovered!')") == "Recovered!\n"
            assert await env.step("x") == "NameError: name 'x' is not defined\n"
    run(main)


def test_observations():
    async def main():
        async with PythonSandboxEnv() as env:
            assert await env.step("print('lost'); 1/0") == "ZeroDivisionError: division by zero\n"
            assert await env.step("import sys; sys.exit(0)") == "SystemExit: 0\n"
            assert await env.step("x = bytearray(4 * 10**9)") == "Memory limit exceeded\n"
            assert await env.step("import sys; print('e', file=sys.stderr); print('o')") == "o\n"
            assert len(await env.step("print('x' * 20000)")) == 16384
            assert len(await env.step("raise ValueError('x' * 20000)")) == 8192
            code = "def f(n): return 1 if n < 2 else n * f(n - 1)\nclass C: pass\nimport json\nprint(f(5))"
            assert await env.step(code) == "120\n"
            assert await env.step("print(f(3), C.__name__, json.dumps(1))") == "6 C 1\n"
            assert (await env.step("x = = 1")).startswith("SyntaxError: ")
    run(main)


def test_life():
    async def main():
        env = PythonSandboxEnv()
        with pytest.raises(RuntimeError, match=r"^PythonSandboxEnv not started \(no HTTP client\)$"):
            await env.step("1")
        slow = PythonSandboxEnv(start_timeout=0.0)
        with pytest.raises(RuntimeError, match=r"^Sandbox did not become ready within 0.0s\."):
            await slow.start()
    run(main)


def test_episodes():
    async def main():
        async with PythonSandboxEnv(max_episodes=2) as env:
            first = env._session.id
            await env.reset()
            assert env._session.id == first
            await env.step("x = 1")
            await env.reset()
            assert env._session.id != first
            assert "NameError" in await env.step("x")
    run(main)


def test_many_steps_at_once():
    async def main():
        async with PythonSandboxEnv() as env:
            got = await asyncio.gather(*[env.step("print(%d)" % n) for n in range(100)])
            assert got == ["%d\n" % n for n in range(100)]
    run(main)


def test_the_pool():
    async def main():
        async with EnvironmentPool(2) as pool:
            await pool.warm(1)
            first = await pool.acquire()
            second = await pool.acquire()
            await first.step("x = 1")
            waiting = asyncio.ensure_future(pool.acquire())
            await asyncio.sleep(0.05)
            assert not waiting.done()
            await pool.release(first)
            await pool.release(first)
            assert await waiting is first
            assert "NameError" in await first.step("x")
            await second.aclose()
            await pool.release(second)
            async with pool.environment() as replaced:
                assert await replaced.step("print(1)") == "1\n"
    run(main)


def test_the_tool_and_the_reward():
    async def main():
        assert await code_interpreter("print(1)") == "1\n"
        async with PythonSandboxEnv() as env:
            assert await code_interpreter(5, env) == ""
            assert await code_reward("print(2)", env) == {"reward": 1.0, "output": "2\n"}
            assert await code_reward("1/0", env) == \
                {"reward": 0.0, "output": "ZeroDivisionError: division by zero\n"}
        closed = await code_interpreter("1", env)
        assert closed.startswith("Error: PythonSandboxEnv not started") and "Traceback" in closed
        assert (await code_reward("1", env))["reward"] == 0.0
    run(main)


def test_an_exit_ends_nothing(daemon):
    async def main():
        async with PythonSandboxEnv() as env:
            await env.step("x = 1")
            said = [await env.step(code) for code in (
                "import sys; sys.exit(0)", "sys.exit('bye')", "exit(3)", "input()", "raise SystemExit",
                "print(x)")]
            assert said == ["SystemExit: 0\n", "SystemExit: bye\n", "SystemExit: 3\n",
                            "EOFError: EOF when reading a line\n", "SystemExit: \n", "1\n"]
            assert await env.step("import os; os._exit(4)") == "SystemExit: 4\n"
            assert (await env.step("print(x)")).startswith("NameError: ")
    asyncio.run(main())


def test_who_gives_up_ends_the_step():
    async def main():
        async with PythonSandboxEnv() as env:
            await env.step("kept = 1")
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(env.step("while True: pass"), 2)
            return await asyncio.wait_for(env.step("print(kept)"), 20)
    assert asyncio.run(main()) == "1\n"
