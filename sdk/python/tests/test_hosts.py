"""allow_hosts: what is asked arrives, and what became of it comes back."""
import asyncio

import pytest

import vial

ASK = """
import urllib.request, urllib.error
try:
    urllib.request.urlopen("http://example.org/", timeout=20)
except urllib.error.HTTPError as error:
    print(error.code)
except OSError as error:
    print("none")
"""


def check(result):
    assert result.stdout == "403\n"
    assert (result.network.allowed, result.network.refused, result.network.failed) == (0, 1, 0)
    (refusal,) = result.network.refusals
    assert (refusal.host, refusal.port, refusal.reason) == ("example.org", 80, "host")
    assert "allow_hosts" in refusal.message


def test_of_a_run(sandbox):
    check(sandbox.run(ASK, allow_hosts=["example.com"]))
    plain = sandbox.run(ASK)
    assert plain.stdout == "none\n" and plain.network is None
    with sandbox.stream(ASK, allow_hosts=["example.com"]) as stream:
        check(stream.result)
    with pytest.raises(vial.Denied):
        sandbox.run("1", allow_hosts=["10.0.0.1"])
    with pytest.raises(TypeError):
        sandbox.run("1", allow_hosts="example.com")


def test_of_a_client(daemon):
    with vial.Sandbox(daemon, allow_hosts=["example.com"]) as sandbox:
        check(sandbox.run(ASK))
        assert sandbox.run(ASK, allow_hosts=[]).network is None
        with sandbox.session() as session:
            check(session.run(ASK))


def test_of_a_session_and_asynchronously(daemon):
    async def main():
        async with vial.AsyncSandbox(daemon) as sandbox:
            check(await sandbox.run(ASK, allow_hosts=["example.com"]))
            async with sandbox.session(allow_hosts=["*.example.com"]) as session:
                check(await session.run(ASK))

    asyncio.run(main())


def test_of_a_run_by_the_command(sandbox, tmp_path):
    check(sandbox.run(ASK, directory=str(tmp_path), allow_hosts=["example.com"]))
