"""vial.nemo: its document's examples, and its client's rules."""
import asyncio
import socket
import threading

import pytest

from vial.nemo import (
    CodeExecutionToolConfig,
    LocalSandbox,
    code_execution_tool,
    format_code_output,
    get_sandbox,
)


def execute(url, code, **options):
    return asyncio.run(get_sandbox("local", uri=url).execute_code(code, **options))


@pytest.mark.parametrize("code", [
    "print('Hello')", "{'generated_code': 'print(\"Hello\")'}", "```python\nprint('Hello')\n```"])
def test_formats(url, code):
    assert execute(url, code) == {"process_status": "completed", "stdout": "Hello\n\n", "stderr": ""}


def test_errors_and_time(url):
    got = execute(url, "1/0")
    assert got["process_status"] == "error"
    assert got["stderr"].startswith("Traceback (most recent call last):")
    assert execute(url, "while True: pass", timeout=0.5) == \
        {"process_status": "timeout", "stdout": "", "stderr": "Timed out\n"}


def test_cutting(url):
    assert execute(url, "print('z' * 5000)")["stdout"] == "z" * 1000 + "<output cut>\n"
    assert execute(url, "print('abc')", max_output_characters=2)["stdout"] == "ab<output cut>\n"


def test_what_is_refused(url):
    with pytest.raises(ValueError, match=r"^Language ruby not supported$"):
        execute(url, "puts 1", language="ruby")
    with pytest.raises(ValueError, match="Unknown sandbox type"):
        get_sandbox("other")


def test_urls():
    assert LocalSandbox().url == "http://127.0.0.1:6000/execute"
    assert LocalSandbox(uri="http://h:1/").url == LocalSandbox(uri="http://h:1").url


def test_no_server():
    with pytest.raises(ConnectionError):
        execute("http://127.0.0.1:1", "1")


def reply(data):
    """The URL of a server that says this, once."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()

    def serve():
        connection, _ = listener.accept()
        with connection, listener:
            connection.recv(1 << 16)
            connection.sendall(data)
    threading.Thread(target=serve, daemon=True).start()
    return "http://127.0.0.1:%d" % listener.getsockname()[1]


def test_servers_that_misbehave():
    nonsense = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnope"
    got = execute(reply(nonsense), "1")
    assert got["process_status"] == "error" and got["stderr"].startswith("Unknown error: nope")
    gateway = b"HTTP/1.1 502 Bad\r\nContent-Length: 0\r\n\r\n"
    assert execute(reply(gateway), "1")["process_status"] == "timeout"


def test_the_tool(url):
    tool = code_execution_tool(CodeExecutionToolConfig(uri=url, max_output_characters=3))
    assert asyncio.run(tool("print('abcd')"))["stdout"] == "abc<output cut>\n"
    assert CodeExecutionToolConfig() == CodeExecutionToolConfig(
        "http://127.0.0.1:6000", "local", 10.0, 1000)


def test_formats_for_models():
    told = {"process_status": "completed", "stdout": "1\n", "stderr": ""}
    assert format_code_output(told, "<o>", "</o>") == \
        "<o>\n\ncompleted\n[stdout]\n1\n[/stdout]\n</o>\n\n"
    assert format_code_output(told, "<o>", "</o>", "qwen") == "<o>1\n</o>\n"


def test_sessions(url):
    async def main():
        tool = code_execution_tool(CodeExecutionToolConfig(uri=url))
        await tool("x = 6", session_id="mine")
        return await tool("print(x * 7)", session_id="mine"), await tool("print(x)")
    kept, without = asyncio.run(main())
    assert kept == {"process_status": "completed", "stdout": "42\n\n", "stderr": "", "session_id": "mine"}
    assert without["process_status"] == "error" and "session_id" not in without
