"""Runs: by a blocking client, by an asynchronous one, with everything that can be given."""
import asyncio
import os
import threading
import time

import pytest

import vial


def test_hello(sandbox):
    result = sandbox.run("print(6 * 7)")
    assert result.ok and result.stdout == "42\n" and result.exit_code == 0 and result.id
    assert vial.run("print(1)").stdout == "1\n"


def test_everything_that_can_be_given(sandbox, tmp_path):
    (tmp_path / "here").write_bytes(b"\xff\x00")
    seen = []
    result = sandbox.run(
        "import os, sys\nprint(sys.argv[1:], os.environ['A'], sys.stdin.read(), sorted(os.listdir()))\n"
        "open('out.bin', 'wb').write(open('h', 'rb').read())\nos._exit(3)",
        files={"t.txt": "text", "h": tmp_path / "here", "d/b": b"bytes"}, args=["x", "y"],
        env={"A": "é"}, stdin="in", exports=["out.bin", "nope"], name="prog.py", timeout=5,
        limits={"memory": "128m", "open_files": 64}, progress=lambda *told: seen.append(told))
    assert result.exit_code == 3 and not result.ok
    assert result.file("out.bin") == b"\xff\x00"
    assert [f.path for f in result.files_changed] == ["out.bin"]
    with pytest.raises(FileNotFoundError):
        result.file("nope")
    assert seen and seen[-1][0] == seen[-1][1] > 0


@pytest.mark.parametrize(("language", "code"), [
    ("python", "print(1)"), ("javascript", "console.log(1)"), ("bash", "echo 1"), ("ruby", "puts 1")])
def test_languages(sandbox, language, code):
    if language not in [item["name"] for item in sandbox.environments()]:
        pytest.skip(language + " is not installed")
    assert sandbox.run(code, language).stdout == "1\n"


def test_failures_are_results(sandbox):
    result = sandbox.run("x = 1\nraise ValueError('no')")
    assert (result.exception.type, result.exception.message, result.exception.line) == \
        ("ValueError", "no", 2)
    assert sandbox.run("while True: pass", timeout=0.3).timed_out
    assert sandbox.run("x = bytearray(10**9)", limits={"memory": "64m"}).oom


def test_check_raises_the_same(sandbox):
    with pytest.raises(ZeroDivisionError, match="division by zero"):
        sandbox.run("1/0", check=True)
    with pytest.raises(TimeoutError):
        sandbox.run("while True: pass", timeout=0.3, check=True)
    with pytest.raises(MemoryError):
        sandbox.run("x = bytearray(10**9)", limits={"memory": "64m"}, check=True)
    with pytest.raises(vial.RemoteError) as caught:
        sandbox.run("class Odd(Exception): pass\nraise Odd('x')", check=True)
    assert caught.value.type_name == "Odd"
    with pytest.raises(vial.RemoteError):
        sandbox.run("import sys; sys.exit(3)", check=True)


def test_refusals_have_parts(sandbox):
    with pytest.raises(vial.InvalidRequest) as caught:
        sandbox.run("1", limits={"memory": "much"})
    assert caught.value.field == "limits.memory" and isinstance(caught.value, ValueError)
    with pytest.raises(vial.InvalidRequest):
        sandbox.run("1", "cobol")
    assert sandbox.kill("999999") is False


def test_what_the_server_does_not_do(sandbox, tmp_path):
    result = sandbox.run("import os; print(os.getcwd()); open('x', 'w')", workdir="/home/me",
                         writable=False)
    assert result.stdout == "/home/me\n" and result.exception.type == "OSError"
    (tmp_path / "a").write_text("1")
    result = sandbox.run("open('b', 'w').write(open('a').read() + '2')", directory=str(tmp_path))
    assert result.ok and (tmp_path / "b").read_text() == "12"


def test_a_stream_of_what_is_no_text(sandbox):
    stream = sandbox.stream("import os\nos.write(1, b'a\\xff')")
    printed = [event.data for event in stream if isinstance(event, vial.Output)]
    assert "".join(printed) == "a\N{REPLACEMENT CHARACTER}"


def test_a_stream(sandbox):
    stream = sandbox.stream("import sys\nprint('out')\nprint('err', file=sys.stderr)")
    events = list(stream)
    assert isinstance(events[0], vial.Started) and isinstance(events[-1], vial.Finished)
    text = {name: "".join(e.data for e in events if isinstance(e, vial.Output) and e.stream == name)
            for name in ("stdout", "stderr")}
    assert text == {"stdout": "out\n", "stderr": "err\n"}
    assert stream.result.ok


def test_leaving_a_stream_ends_its_run(sandbox):
    with sandbox.stream("import time\nprint(1, flush=True)\ntime.sleep(60)") as stream:
        for event in stream:
            if isinstance(event, vial.Output):
                break
    deadline = time.monotonic() + 10
    while stream.id in [str(run["id"]) for run in sandbox.runs()]:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_exceptions_of_the_reader_are_its_own(sandbox):
    with pytest.raises(OSError, match="mine"), sandbox.stream("print(1)") as stream:
        for _ in stream:
            raise OSError("mine")


def test_threads(sandbox):
    got = {}

    def work(number):
        got[number] = [sandbox.run("print(%d)" % number).stdout for _ in range(3)]
    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == {n: ["%d\n" % n] * 3 for n in range(8)}


def test_a_fork(sandbox):
    sandbox.run("print(1)")
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(writer, sandbox.run("print('child')").stdout.encode())
        os._exit(0)
    os.close(writer)
    os.waitpid(pid, 0)
    assert os.read(reader, 100) == b"child\n"
    assert sandbox.run("print('parent')").stdout == "parent\n"


def test_a_run_that_is_cancelled_ends(daemon):
    async def main():
        async with vial.AsyncSandbox(daemon) as sandbox:
            task = asyncio.ensure_future(sandbox.run("import time; time.sleep(60)", timeout=60))
            while not await sandbox.runs():
                await asyncio.sleep(0.02)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            while await sandbox.runs():
                await asyncio.sleep(0.02)
    asyncio.run(asyncio.wait_for(main(), 30))


def test_asyncio(daemon):
    async def main():
        async with vial.AsyncSandbox(daemon) as sandbox:
            results = await asyncio.gather(*[sandbox.run("print(%d)" % n) for n in range(20)])
            assert [int(r.stdout) for r in results] == list(range(20))
            events = [event async for event in sandbox.stream("print(1)")]
            assert isinstance(events[-1], vial.Finished)
            with pytest.raises(ZeroDivisionError):
                await sandbox.run("1/0", check=True)
            assert await sandbox.is_healthy() and await sandbox.environments()
    asyncio.run(main())


def test_one_client_in_several_loops(daemon):
    sandbox = vial.AsyncSandbox(daemon)
    for number in range(3):
        assert asyncio.run(sandbox.run("print(%d)" % number)).stdout == "%d\n" % number


def test_no_server(tmp_path):
    sandbox = vial.Sandbox(str(tmp_path / "none"), retries=1)
    with pytest.raises(vial.ServerUnavailable) as caught:
        sandbox.run("1")
    assert isinstance(caught.value, ConnectionError) and not caught.value.was_sent
    assert not sandbox.is_healthy()


def test_a_number_is_not_a_file(sandbox):
    with pytest.raises(TypeError, match="str, bytes or a path, not int"):
        sandbox.run("print(1)", files={"a": 0})


def test_a_result_can_be_looked_at(sandbox):
    """print(result) says what matters, and no megabytes."""
    code = "print('x' * 5000)\nopen('big', 'wb').write(bytes(1 << 20))"
    seen = repr(sandbox.run(code, exports=["big"]))
    assert seen.startswith("Result(ok=True, outcome='exited', exit_code=0, stdout='xxx")
    assert "... (5001 characters)" in seen and "ExportedFile(path='big', size=1048576" in seen and len(seen) < 2000
    assert "oom" not in seen and "timed_out" not in seen and "stderr" not in seen
    assert "timed_out=True" in repr(sandbox.run("while True: pass", timeout=0.2))


def test_files_in_a_list(sandbox):
    with pytest.raises(TypeError, match="files are a dict of names and contents, not list"):
        sandbox.run("1", files=["a"])
