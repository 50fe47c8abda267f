"""Environments are built, and told of while they are; no network."""
import pathlib
import shutil
import tempfile
import zipfile

import pytest

import vial
from vial import _daemon


@pytest.fixture
def place(binary):
    """A directory of environments, which cannot lie below /tmp, and a wheel."""
    home = pathlib.Path(tempfile.mkdtemp(prefix="vial-sdk-", dir=pathlib.Path.home()))
    home.chmod(0o755)
    (home / "vial.yaml").write_text("environments: %s/environments\n" % home)
    (home / "wheels").mkdir()
    meta = "homemade-1.0.dist-info/"
    with zipfile.ZipFile(home / "wheels" / "homemade-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("homemade.py", "answer = 42\n")
        wheel.writestr(meta + "METADATA", "Metadata-Version: 2.1\nName: homemade\nVersion: 1.0\n")
        wheel.writestr(meta + "WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(meta + "RECORD", "homemade.py,,\n")
    yield home
    shutil.rmtree(home)


def build(place, *args, **more):
    return vial.build_environment(*args, no_index=True, find_links=[place / "wheels"],
                                  config=str(place / "vial.yaml"), **more)


def test_a_build_and_its_progress(place):
    seen = []
    assert build(place, "mine", ["homemade"], preload=["homemade"], progress=seen.append)
    steps = [at.step for at in seen]
    assert steps[0] in ("prepare", "resolve")  # the first may be over before it is looked at
    assert steps[-1] == "built" and "install" in steps
    assert (1, 1, "homemade") in [(at.done, at.total, at.what) for at in seen if at.step == "install"]
    assert not build(place, "mine", ["homemade"], preload=["homemade"])
    daemon = _daemon.Daemon(["--config", str(place / "vial.yaml")])
    try:
        code = "import homemade; print(homemade.answer)"
        assert vial.Sandbox(daemon.path).run(code, environment="mine").stdout == "42\n"
    finally:
        daemon.stop()


def test_builds_that_fail(place):
    with pytest.raises(vial.ServerFault, match=r"^No matching distribution found for nowhere-to-be-found$"):
        build(place, "mine", ["nowhere-to-be-found"])
    with pytest.raises(vial.InvalidRequest, match=r"nowhere\.txt: No such file"):
        build(place, "mine", "nowhere.txt")
    with pytest.raises(vial.InvalidRequest):
        build(place, "--force")

    def lose_patience(at):
        raise KeyError(at.step)
    with pytest.raises(KeyError, match=r"prepare|resolve"):
        build(place, "mine", ["homemade"], progress=lose_patience)
    assert [path.name for path in place.glob("environments/[!.]*")] == []


def test_a_private_daemon_is_replaced(place, monkeypatch):
    monkeypatch.setenv("VIAL_SOCKET", "")
    first = _daemon.private_socket()
    with vial.Sandbox(first).session() as session:
        build(place, "one", ["homemade"])
        assert _daemon.private_socket() == first and session.run("6 * 7").value == 42
    build(place, "two", ["homemade"])
    assert _daemon.private_socket() != first
    _daemon.stop_private()
