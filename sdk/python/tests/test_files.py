"""Files of sessions: up and down, single and as trees, whatever the guest made of them."""
import asyncio
import io
import os
import tarfile

import pytest

import vial
from vial._tree import TreeSource, Unpacker


@pytest.fixture
def session(sandbox):
    with sandbox.session(limits={"workspace": "64m"}) as made:
        yield made


def test_write_read_list_remove(session):
    assert session.files.write("d/ä.txt", "hällo") == 6
    assert session.files.write("d/b.bin", b"\0\xff", mode=0o755) == 2
    assert session.run("open('d/ä.txt').read()").value == "hällo"
    session.run("open('d/out', 'w').write('x' * 10)")
    assert session.files.read("d/out") == b"x" * 10
    found = session.files.list("d")
    assert [(f.name, f.path, f.type, f.size) for f in found] == \
        [("b.bin", "d/b.bin", "file", 2), ("out", "d/out", "file", 10), ("ä.txt", "d/ä.txt", "file", 6)]
    assert found[0].mode == 0o755 and found[0].mtime > 1e9 and not found[0].is_dir
    assert [f.path for f in session.files.list(recursive=True)] == ["d", "d/b.bin", "d/out", "d/ä.txt"]
    session.files.make_dir("e/f")
    session.files.make_dir("e/f")
    session.files.remove("d/out")
    with pytest.raises(vial.InvalidRequest):
        session.files.remove("d")
    session.files.remove("d", recursive=True)
    assert [f.path for f in session.files.list(recursive=True)] == ["e", "e/f"]


def test_what_is_wrong_is_raised(session):
    with pytest.raises(vial.NotFound):
        session.files.read("none")
    with pytest.raises(vial.InvalidRequest):
        session.files.write("../x", "")
    with pytest.raises(vial.TooLarge) as caught:
        session.files.write("x", b"x" * (65 << 20))
    assert caught.value.status == 507 and "workspace" in caught.value.hint
    assert session.files.list() == []
    session.files.write("ok", b"")  # the connection is good, or a new one is made


def test_names_that_are_no_text(session):
    session.run("open(b'caf\\xff', 'w').write('odd')")
    info, = session.files.list()
    assert info.name == "caf\udcff"
    assert session.files.read(info.path) == b"odd"


def test_large_files_stream_with_progress(session, tmp_path):
    local = tmp_path / "big"
    with open(local, "wb") as file:
        file.truncate(20 << 20)
        file.write(b"begin")
    seen = []
    assert session.files.upload(local, progress=lambda *at: seen.append(at)) == 20 << 20
    assert seen[-1] == (20 << 20, 20 << 20) and len(seen) > 10
    assert seen == sorted(seen)
    seen.clear()
    assert session.files.download("big", tmp_path / "copy", progress=lambda *at: seen.append(at)) == 20 << 20
    assert seen[-1] == (20 << 20, 20 << 20)
    assert (tmp_path / "copy").read_bytes() == local.read_bytes()


def test_open_files(session):
    source = io.BytesIO(b"skipped" + b"content")
    source.seek(7)
    assert session.files.upload(source, "f") == 7

    class Pipe(io.RawIOBase):
        """What cannot be rewound, nor says how long it is."""

        def __init__(self):
            self.left = [b"one", b"two"]

        def readable(self):
            return True

        def tell(self):
            raise OSError("a pipe")

        def read(self, size=-1):
            return self.left.pop(0) if self.left else b""

    assert session.files.upload(Pipe(), "g") == 6
    out = io.BytesIO()
    assert session.files.download("g", out) == 6 and out.getvalue() == b"onetwo"
    with pytest.raises(ValueError, match="path"):
        session.files.upload(io.BytesIO(b""))


def test_a_download_that_fails_leaves_the_old_file(session, tmp_path):
    old = tmp_path / "f"
    old.write_text("old")
    with pytest.raises(vial.NotFound):
        session.files.download("none", old)
    assert old.read_text() == "old" and os.listdir(tmp_path) == ["f"]


def make_tree(root):
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "b" / "ä").write_bytes(os.urandom(100001))
    (root / "a" / ("n" * 150)).write_text("long")
    (root / "tool").write_text("#!/bin/sh\n")
    (root / "tool").chmod(0o755)
    (root / "empty").mkdir()
    os.symlink("b/ä", root / "a" / "link")


def test_trees(session, tmp_path):
    make_tree(tmp_path / "t")
    seen = []
    assert session.files.upload_dir(tmp_path / "t", "in", progress=lambda *at: seen.append(at)) == 7
    assert seen[-1][0] == seen[-1][1] > 100000
    assert session.run("import os; [os.access('in/tool', os.X_OK), os.readlink('in/a/link')]").value == [True, "b/ä"]
    made = session.files.download_dir("in", tmp_path / "back")
    assert sorted(made) == sorted(["a/b/ä", "a/" + "n" * 150, "tool", "a/link"])
    for name in ("a/b/ä", "tool", "a/link"):
        assert (tmp_path / "back" / name).read_bytes() == (tmp_path / "t" / name).read_bytes()
    assert os.access(tmp_path / "back" / "tool", os.X_OK) and (tmp_path / "back" / "empty").is_dir()
    assert session.files.download_dir("in", tmp_path / "back") and session.files.download_dir("", tmp_path / "all")


def test_a_hostile_tree_stays_inside(session, tmp_path):
    session.run("""
import os
os.mkdir('d')
os.symlink('/etc/passwd', 'abs'); os.symlink('..', 'up'); os.symlink('..', 'd/up'); os.symlink('d/up/..', 'bent')
os.symlink('../../x', 'd/out'); os.mkfifo('p'); open('f', 'w').write('x'); os.symlink('f', 'fine')
""")
    made = session.files.download_dir("", tmp_path / "got")
    assert sorted(made) == ["d/up", "f", "fine"]
    assert sorted(os.listdir(tmp_path / "got")) == ["d", "f", "fine"]


def tar_of(*entries):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, kind, content in entries:
            info = tarfile.TarInfo(name)
            info.type = kind
            if kind == tarfile.REGTYPE:
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
            else:
                info.linkname = content
                tar.addfile(info)
    out.seek(0)
    return out


@pytest.mark.parametrize("name", ["../x", "/tmp/vial-x", "a/../../x"])
def test_no_server_can_make_us_write_elsewhere(tmp_path, name):
    with pytest.raises(ValueError, match="leads out"):
        Unpacker(str(tmp_path / "in")).unpack(tar_of((name, tarfile.REGTYPE, b"x")))
    assert os.listdir(tmp_path) == ["in"]


def test_nothing_is_written_through_links(tmp_path):
    target = tmp_path / "in"
    outside = tmp_path / "outside"
    outside.mkdir()
    target.mkdir()
    os.symlink(outside, target / "l")
    with pytest.raises(ValueError, match="is a link"):
        Unpacker(str(target)).unpack(tar_of(("l/x", tarfile.REGTYPE, b"x")))
    unpacker = Unpacker(str(target))
    unpacker.unpack(tar_of(("m", tarfile.SYMTYPE, "d"), ("m/x", tarfile.REGTYPE, b"x"),
                           ("l", tarfile.REGTYPE, b"replaced"), ("c", tarfile.CHRTYPE, "")))
    assert (target / "m" / "x").read_bytes() == b"x" and not (target / "m").is_symlink()
    assert (target / "l").read_bytes() == b"replaced" and os.listdir(outside) == []
    assert not (target / "c").exists()


def test_a_tree_that_shrinks_is_told(tmp_path):
    (tmp_path / "f").write_bytes(b"x" * 100000)
    source = TreeSource(str(tmp_path))
    (tmp_path / "f").write_bytes(b"x")
    source.start()
    with pytest.raises(OSError, match="shorter"):
        while source.read(1 << 16):
            pass


def test_asyncio(daemon, tmp_path):
    make_tree(tmp_path / "t")

    async def main():
        sandbox = vial.AsyncSandbox(daemon)
        async with sandbox.session() as session:
            files = session.files
            await asyncio.gather(*(files.write("f%d" % i, "x" * i) for i in range(10)))
            assert [f.size for f in await files.list()] == list(range(10))
            assert await files.upload(tmp_path / "t" / "tool", "up/tool") == 10
            assert await files.read("up/tool") == b"#!/bin/sh\n"
            await files.download("up/tool", tmp_path / "tool")
            assert (tmp_path / "tool").read_text() == "#!/bin/sh\n"
            assert await files.upload_dir(tmp_path / "t", "t") == 7
            assert "tool" in await files.download_dir("t", tmp_path / "back")
            await files.make_dir("m")
            await files.remove("m")
            assert (await session.run("open('f3').read()")).value == "xxx"
        await sandbox.aclose()

    asyncio.run(main())


def test_a_fresh_workspace_after_a_reset(sandbox):
    with sandbox.session(files={"given": "1"}) as session:
        session.files.write("put", "2")
        session.reset()
        assert [f.name for f in session.files.list()] == ["given"]
