"""vial env build --image: images that the tests make themselves, good ones and hostile ones."""
import gzip
import io
import json
import os
import shutil
import stat
import subprocess
import tarfile
import unittest

import cli
import images
import test_env


class Case(test_env.Case):
    """Environments in a directory of the test's own."""

    def image(self, name, source, *options, **more):
        return self.env("build", "--image", source, *options, name, **more)

    def saved(self, *layers, **more):
        return images.saved(self.path("image.tar"), [layer.bytes() for layer in layers], **more)

    def run_in(self, name, code, *options):
        return self.vial("run", "--config", self.config, "-E", name, *options, "-c", code)

    def tree(self, name, *below):
        return os.path.join(self.root, name, "root", *below)

    def built(self, *layers, **more):
        self.assert_ok(self.image("box", self.saved(*layers, **more)))

    def refused(self, source, *fragments, options=()):
        done = self.image("box", source, *options)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        for fragment in fragments:
            self.assertIn(fragment, done.stderr)
        self.assertEqual(os.listdir(self.root), [])  # nothing is left of it
        return done


class Good(Case):
    def test_what_docker_saves_is_an_environment(self):
        self.built(images.busybox(), tag="team/box:2")
        self.assert_ok(self.run_in("box", "echo $GREETING; ls /bin; cat /etc/hostname; id -u"),
                       "hello\nbusybox\ncat\necho\nid\nls\nsh\nstat\ntest\nvial\n1000\n")
        self.assert_ok(self.run_in("team/box:2", "echo 1"), "1\n")
        self.assert_ok(self.run_in("docker.io/team/box:2", "echo 1"), "1\n")
        shown = json.loads(self.env("show", "--json", "box").stdout)
        self.assertEqual((shown["language"], shown["tool"], shown["image"], shown["workdir"]),
                         ("sh", "/bin/sh", "team/box:2", "/app"))
        self.assertIn("team/box:2", self.env("list").stdout)
        self.assert_ok(self.env("remove", "box"))
        self.assertEqual(os.listdir(self.root), [])

    def test_programs_see_the_image_and_nothing_of_the_host(self):
        self.built(images.busybox())
        done = self.run_in("box", "ls /; test -e /usr/bin/python3 || echo none; echo >/bin/x; echo >x; ls")
        self.assertEqual(done.stdout, "bin\ndev\netc\nhome\nproc\nrun\nsandbox\nsys\ntmp\nvar\n"
                                      "none\nmain.sh\nx\n")
        self.assertIn("Read-only file system", done.stderr)

    def test_the_same_image_is_not_unpacked_again(self):
        source = self.saved(images.busybox())
        self.assert_ok(self.image("box", source))
        self.assertIn("nothing to do", self.image("box", source).stdout)
        self.assertIn("built", self.image("box", source, "--force").stdout)
        self.assertIn("built", self.image("box", source, "--tag", "other:1").stdout)
        self.assert_ok(self.run_in("other:1", "echo 1"), "1\n")

    def test_python_of_an_image(self):
        source = images.saved(self.path("py.tar"), [images.python().bytes()], tag="python:test")
        self.assert_ok(self.image("slim", source, "--preload", "json"))
        shown = json.loads(self.env("show", "--json", "slim").stdout)
        self.assertEqual((shown["language"], shown["tool"]), ("python", "/usr/local/bin/python3"))
        self.assertTrue(shown["built_with"].startswith("Python 3."), shown)
        self.assert_ok(self.run_in("slim", "import sys, os, json; print(sys.executable, "
                                         "os.environ['GREETING'], os.listdir('/usr'))"),
                       "/usr/local/bin/python3 hello ['local', 'lib']\n"
                       if os.listdir(self.tree("slim", "usr")) == ["local", "lib"] else
                       "/usr/local/bin/python3 hello ['lib', 'local']\n")
        with open(os.path.join(self.root, "slim", "environment.yaml"), encoding="utf-8") as file:
            self.assertIn("warm: true", file.read())
        self.refused_preload(source)

    def refused_preload(self, source):
        done = self.image("other", source, "--preload", "no_such_module")
        self.assertIn("ModuleNotFoundError", done.stderr)
        self.assertEqual(os.listdir(self.root), ["slim"])

    def test_layouts_as_directories_and_tars_with_both_compressors(self):
        layers = [images.busybox().bytes(), images.Layer().add("a", b"1").bytes()]
        zstd = lambda data: subprocess.run(["zstd", "-q", "-c"], input=data, check=True,
                                           stdout=subprocess.PIPE).stdout
        packs = {"gzip": (gzip.compress, images.LAYER + "+gzip"), "plain": (bytes, images.LAYER)}
        if shutil.which("zstd"):
            packs["zstd"] = (zstd, images.LAYER + "+zstd")
        for name, (pack, media) in packs.items():
            with self.subTest(name):
                layout = images.Layout(self.path(name))
                layout.finish(layout.image(layers, pack, media))
                self.assert_ok(self.image(name, layout.path, "--tag", "box:" + name))
                self.assert_ok(self.run_in("box:" + name, "cat /bin/../a"), "1")
        with tarfile.open(self.path("layout.tar.gz"), "w:gz") as tar:
            tar.add(self.path("gzip"), ".")
        self.assert_ok(self.image("packed", self.path("layout.tar.gz")))

    def test_the_platform_is_this_machines(self):
        layout = images.Layout(self.path("layout"))
        good = layout.image([images.busybox().bytes()])
        bad = layout.image([images.Layer().add("wrong").bytes()])
        attestation = {**bad, "platform": {"os": "unknown", "architecture": "unknown"}}
        inner = layout.index([images.for_platform(bad, "s390x"), attestation,
                              images.for_platform(good)])
        layout.finish(images.named(inner, "latest"))
        self.assert_ok(self.image("box", layout.path))
        self.assertFalse(os.path.exists(self.tree("box", "wrong")))
        layout.finish(images.for_platform(bad, "s390x"))
        self.assertIn("nothing for linux/" + images.ARCH, self.image("x", layout.path).stderr)

    def test_one_of_several_images(self):
        layout = images.Layout(self.path("layout"))
        one = layout.image([images.busybox().add("one").bytes()])
        two = layout.image([images.busybox().add("two").bytes()])
        layout.finish(images.named(one, "example.org/box:1"), images.named(two, "2"))
        self.refused(layout.path, "choose one with --tag: example.org/box:1, 2")
        self.assert_ok(self.image("box", layout.path, "--tag", "example.org/box:2"))
        self.assertTrue(os.path.exists(self.tree("box", "two")))

    def test_layers_hide_and_replace_what_is_below(self):
        below = (images.busybox().add("gone", b"x").add("d/old", b"x").add("d/sub/old", b"x")
                 .add("file", b"x").dir("dir").add("dir/x").add("keep", b"1").link("lib", "usr/lib")
                 .dir("usr/lib"))
        above = (images.Layer().add(".wh.gone").add("d/new", b"2").add("d/.wh..wh..opq")
                 .add("d/sub/newer", b"3").dir("file").add("file/inside", b"4")
                 .add("dir", b"5").add("lib/through", b"6").hard("same", "keep"))
        self.built(below, above)
        tree = self.tree("box")
        found = sorted(os.path.relpath(os.path.join(at, name), tree) for at, dirs, files in
                       os.walk(tree) for name in files if not at.endswith(("/bin", "/etc")))
        self.assertEqual(found, ["d/new", "d/sub/newer", "dir", "file/inside", "keep", "same",
                                 "usr/lib/through"])
        self.assertEqual(os.stat(self.tree("box", "same")).st_ino,
                         os.stat(self.tree("box", "keep")).st_ino)

    def test_a_language_can_be_asked_for(self):
        source = self.saved(images.busybox())
        self.refused(source, "the image has no Ruby", options=["--language", "ruby"])
        self.refused(self.saved(images.Layer().add("x")), "no interpreter that vial knows")

    def test_a_bar_on_a_terminal(self):
        seen = self.terminal("env", "build", "--config", self.config, "--image",
                             self.saved(images.busybox()), "box")
        self.assertEqual(seen[0], 0)
        self.assertIn("\r", seen[1])
        self.assertIn("box: built", seen[1])


class Hostile(Case):
    """None of it may leave the tree, be dangerous in it, or stay when it is refused."""

    def test_rights_are_not_taken_over(self):
        self.built(images.busybox().add("bin/root", b"x", mode=0o6755).add("secret", b"x", mode=0)
                   .add("dev/disk", kind=tarfile.BLKTYPE, devmajor=8).add("pipe", kind=tarfile.FIFOTYPE)
                   .add("etc/shadow", b"root:secret").add("owned", b"x", uid=1234, gid=1234))
        modes = {name: stat.S_IMODE(os.lstat(self.tree("box", name)).st_mode)
                 for name in ("bin/root", "secret", "owned")}
        self.assertEqual(modes, {"bin/root": 0o755, "secret": 0o644, "owned": 0o644})
        self.assertEqual(os.stat(self.tree("box", "owned")).st_uid, os.geteuid())
        for name in ("dev/disk", "pipe", "etc/shadow"):
            self.assertFalse(os.path.lexists(self.tree("box", name)), name)

    def test_names_that_leave_the_tree(self):
        for name in ("../out", "a/../../out", "..", "x/.."):
            with self.subTest(name):
                self.refused(self.saved(images.busybox().add(name, b"x")), "leaves the image")
        self.built(images.busybox().add("/absolute", b"x"))
        self.assertTrue(os.path.exists(self.tree("box", "absolute")))
        self.assertFalse(os.path.exists("/absolute"))

    def test_links_that_leave_the_tree(self):
        marker = self.path("outside")
        os.mkdir(marker)
        os.chmod(marker, 0o777)
        up = "../" * 40
        self.built(images.busybox().link("abs", marker).add("abs/one", b"x")
                   .link("rel", up + marker.lstrip("/")).add("rel/two", b"x")
                   .link("root", "/").add("root/three", b"x").link("loop", "loop"),
                   images.Layer().add("abs/.wh..wh..opq").add("rel/four", b"x"))
        self.assertEqual(os.listdir(marker), [])
        self.assertTrue(os.path.exists(self.tree("box", "three")))
        self.assertTrue(os.path.exists(self.tree("box", marker.lstrip("/"), "four")))
        self.refused_again(images.busybox().link("loop", "loop").add("loop/x", b"x"), "Too many levels")

    def refused_again(self, layer, fragment):
        done = self.image("other", self.saved(layer))
        self.assertIn(fragment, done.stderr)
        self.assertEqual(os.listdir(self.root), ["box"])

    def test_hard_links_to_the_host(self):
        self.refused(self.saved(images.busybox().hard("passwd", "/etc/passwd")), "hard link to")
        self.refused(self.saved(images.busybox().hard("up", "../../../etc/passwd")), "leaves the image")
        self.refused(self.saved(images.busybox().link("etc", "/etc").hard("x", "etc/hostname")),
                     "hard link to")

    def test_whiteouts_stay_inside(self):
        self.refused(self.saved(images.busybox().add(".wh..", b"")), "hides no file")
        self.refused(self.saved(images.busybox().add(".wh...", b"")), "hides no file")
        marker = self.put("outside/file", "x")
        os.chmod(os.path.dirname(marker), 0o777)
        self.built(images.busybox().link("out", os.path.dirname(marker)),
                   images.Layer().add("out/.wh.file"))
        self.assertTrue(os.path.exists(marker))

    def test_top_directories_that_are_links(self):
        """What the sandbox itself makes is made in its own root, wherever an image's links lead."""
        self.built(images.busybox().link("var", "/tmp").link("etc", "/sandbox/etc").link("tmp", "/root")
                   .link("run", "/etc").link("sandbox", "/proc").link("dev", "/").link("home", "/x"))
        self.assert_ok(self.run_in("box", "echo 1 >/tmp/a; echo 2 >b; cat /tmp/a b"), "1\n2\n")

    def test_bombs(self):
        zeros = io.BytesIO()
        with gzip.GzipFile(fileobj=zeros, mode="wb", compresslevel=9) as packed:
            info = tarfile.TarInfo("zeros")
            info.size = 100 << 20
            packed.write(info.tobuf())
            for _ in range(100):
                packed.write(bytes(1 << 20))
        layout = images.Layout(self.path("layout"))
        layout.finish(layout.image([b"x"], pack=lambda _: zeros.getvalue()))
        self.refused(layout.path, "more than an image may have")

    def test_more_bytes_than_there_may_be(self):
        """A tar can say that a file has holes: what it would be counts."""
        layer = images.busybox().bytes()
        info = tarfile.TarInfo("sparse")
        info.size, info.type = 512, tarfile.GNUTYPE_SPARSE
        head = bytearray(info.tobuf(tarfile.GNU_FORMAT))
        head[386:398], head[398:410] = b"%011o\0" % (1 << 32), b"%011o\0" % 512
        head[483:495] = b"%011o\0" % (1 << 32)
        head[124:136] = b"%011o\0" % 512
        head[148:156] = b" " * 8
        head[148:156] = b"%06o\0 " % sum(head)
        huge = bytes(head) + bytes(512)
        self.refused(images.saved(self.path("i.tar"), [layer, huge + bytes(1024)]),
                     "layer 2 of 2: sparse: write: File too large")

    def test_digests_that_do_not_fit(self):
        layers = [images.busybox().bytes()]
        wrong = images.config([b"something else"])
        self.refused(images.saved(self.path("i.tar"), layers, about=wrong), "its digest is sha256:")
        layout = images.Layout(self.path("layout"))
        image = layout.image(layers)
        layout.finish(image)
        blobs = os.path.join(layout.path, "blobs/sha256")
        for name in os.listdir(blobs):
            with self.subTest(name), open(os.path.join(blobs, name), "r+b") as file:
                old = file.read()
                file.seek(len(old) // 2)
                file.write(bytes([old[len(old) // 2] ^ 1]))
                file.flush()
                self.refused(layout.path)
                file.seek(0)
                file.write(old)
        self.assert_ok(self.image("box", layout.path))

    def test_documents_that_are_none(self):
        layers = [images.busybox().bytes()]
        for manifest in ({}, [], [1], [{}], [{"Config": "../../etc/passwd", "Layers": []}],
                         [{"Config": "nowhere", "Layers": ["x"]}], [{"Config": 1}],
                         [{"Config": "manifest.json", "Layers": ["0/layer.tar"] * 2000}]):
            with self.subTest(str(manifest)[:60]):
                self.refused(images.saved(self.path("i.tar"), layers, manifest=manifest or [[]]))
        self.refused(self.put("empty.tar"), "not an image")
        self.refused(self.put("text.tar", "no archive at all\n" * 100))
        self.refused(self.put("dir/file"))
        os.mkdir(self.path("nothing"))
        self.refused(self.path("nothing"), "not an image")
        self.refused("/no/such/file", "No such file")
        config = json.loads(images.config(layers))
        config["architecture"] = "s390x"
        self.refused(images.saved(self.path("i.tar"), layers, about=json.dumps(config).encode()),
                     "it is for linux/s390x")

    def test_layers_of_unknown_kinds(self):
        layout = images.Layout(self.path("layout"))
        layout.finish(layout.image([images.busybox().bytes()], media="application/x-encrypted"))
        self.refused(layout.path, "a layer of type 'application/x-encrypted'")

    def test_variables_that_would_reach_out(self):
        env = ["LD_PRELOAD=/evil.so", "HOME=/root", "VIAL_SESSION=x", "BAD\nNAME=1", "=x", "OK=1",
               "TAB=a\tb", "PATH=/bin"]
        layers = [images.busybox().bytes()]
        self.assert_ok(self.image("box", images.saved(self.path("i.tar"), layers,
                                                      about=images.config(layers, Env=env))))
        self.assert_ok(self.run_in("box", 'echo "$LD_PRELOAD,$HOME,$VIAL_SESSION,$OK,$TAB"'),
                       ",/tmp,,1,\n")

    def test_an_interpreter_that_does_not_run(self):
        self.refused(self.saved(images.Layer().add("bin/sh", b"no program", mode=0o755)),
                     "its /bin/sh does not run")

    def test_an_interpreter_that_says_nothing_of_itself(self):
        python = b"#!/bin/busybox sh\necho\nprintf '\\377\\n'\n"
        self.built(images.busybox().add("usr/bin/python3", python, mode=0o755))
        self.assertEqual(json.loads(self.env("show", "--json", "box").stdout)["built_with"], "?")

    def test_a_tree_too_deep_to_remove(self):
        layer = images.busybox()
        deep = "/".join(["d" * 200] * 10)
        layer.dir(deep).link("l", deep).dir("l/" + deep).link("m", "l/" + deep)
        self.refused(self.saved(layer), "nested too deep")


class Registry(Case):
    def test_without_skopeo_it_is_said(self):
        hidden = "for p in /usr/bin/skopeo; do [ ! -e $p ] || mount --bind /dev/null $p; done; exec \"$@\""
        done = subprocess.run(["unshare", "-m", "sh", "-c", hidden, "sh", cli.VIAL, "env", "build",
                               "--config", self.config, "box", "--image", "example.org/box:1"],
                              capture_output=True, text=True, timeout=cli.PATIENCE_S)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("apt-get install skopeo", done.stderr)
        self.assertEqual(os.listdir(self.root), [])

    def test_an_unknown_image_says_how_to_have_it(self):
        self.assert_usage(self.run_in("python:9", "1"), "vial env build NAME --image python:9")

    def test_requirements_and_image(self):
        self.put("requirements.txt", "x\n")
        done = self.env("build", "--image", "x", "box", self.path("requirements.txt"))
        self.assertIn("of an image or of requirements, not both", done.stderr)
        self.assertIn("--tag is for an image", self.env("build", "--tag", "x:1", "box").stderr)


if __name__ == "__main__":
    unittest.main()
