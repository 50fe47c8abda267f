"""Files of a session over HTTP: put, got, listed, removed, packed, whatever the guest does meanwhile."""
import base64
import concurrent.futures
import contextlib
import gzip
import hashlib
import io
import os
import re
import signal
import socket
import subprocess
import tarfile
import time
import unittest
import urllib.parse
import zipfile

import daemon
import sessions
from daemon import wait_until

MIB = 1 << 20
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Case(sessions.Case):
    def path(self, session, *parts, what="files", **query):
        name = "/".join(urllib.parse.quote(part) for part in parts)
        return "/v1/sessions/%s/%s%s%s" % (
            session, what, "/" + name if name else "",
            "?" + urllib.parse.urlencode(query) if query else "")

    def put(self, session, name, content, **query):
        return self.daemon.ask("PUT", self.path(session, name, **query), content,
                               {"Content-Type": "application/octet-stream"})

    def get(self, session, name, headers=None, method="GET", **query):
        """(status, bytes, headers)"""
        made = self.daemon.connect()
        try:
            made.request(method, self.path(session, name, **query), headers=headers or {})
            response = made.getresponse()
            return response.status, response.read(), dict(response.getheaders())
        finally:
            made.close()

    def list(self, session, **query):
        status, answer, _ = self.daemon.ask("GET", self.path(session, **query))
        self.assertEqual(status, 200, answer)
        return answer

    def names(self, session, **query):
        return sorted(entry["path"] for entry in self.list(session, **query)["entries"])

    def remove(self, session, name, **query):
        return self.daemon.ask("DELETE", self.path(session, name, **query))

    def pack(self, session, **query):
        made = self.daemon.connect()
        try:
            made.request("GET", self.path(session, what="archive", **query))
            response = made.getresponse()
            return response.status, response.read(), dict(response.getheaders())
        finally:
            made.close()

    def unpack(self, session, content, **query):
        return self.daemon.ask("POST", self.path(session, what="archive", **query), content,
                               {"Content-Type": "application/x-tar"})

    def weak_tag(self, session, name, content):
        """The tag of a file that changed just now."""
        def young():
            self.put(session, name, content)
            tag = self.get(session, name, method="HEAD")[2]["ETag"]
            return tag.startswith('W/"') and tag
        tag = wait_until(young)
        self.assertTrue(tag)
        return tag

    def strong_tag(self, session, name):
        """The tag of a file that has not changed for a while."""
        self.assertTrue(wait_until(
            lambda: self.get(session, name, method="HEAD")[2]["ETag"].startswith('"')))
        return self.get(session, name, method="HEAD")[2]["ETag"]


class Files(Case):
    def test_what_is_put_is_there_for_the_first_step_and_what_it_writes_can_be_got(self):
        session = self.open()
        status, answer, _ = self.put(session, "sub/in.txt", b"hello")
        self.assertEqual((status, answer), (201, {"path": "sub/in.txt", "size": 5}))
        self.assertEqual(self.put(session, "sub/in.txt", b"hello")[0], 200)
        result = self.step(session, "import os\n"
                                    "s = os.stat('sub/in.txt')\n"
                                    "print(open('sub/in.txt').read(), s.st_uid == os.getuid(), oct(s.st_mode))\n"
                                    "open('sub/in.txt', 'a').write('!'); open('sub/out', 'wb').write(b'\\0\\xff')")
        self.assertEqual(result["stdout"], "hello True 0o100644\n")
        self.assertTrue(result["fresh"])
        self.assertEqual(self.get(session, "sub/in.txt")[:2], (200, b"hello!"))
        self.assertEqual(self.get(session, "sub/out")[:2], (200, b"\0\xff"))

    def test_modes_are_the_clients_and_never_more_than_permissions(self):
        session = self.open("bash")
        self.put(session, "tool", b"#!/bin/sh\necho ran\n", mode="0755")
        self.assertEqual(self.step(session, "./tool")["stdout"], "ran\n")
        for mode in ("4755", "9", "x", "-1", "07777", "1" * 30):
            self.assert_refused(self.put(session, "tool", b"", mode=mode), 400, "invalid", "mode")

    def test_a_list_says_what_there_is(self):
        session = self.open()
        self.put(session, "d/e/f.txt", b"123")
        self.step(session, "import os\nos.symlink('f.txt', 'd/e/l'); os.mkfifo('d/e/p'); os.chmod('d/e/f.txt', 0o600)")
        self.assertEqual(self.names(session), ["d"])
        self.assertEqual(self.names(session, recursive="true"),
                         ["d", "d/e", "d/e/f.txt", "d/e/l", "d/e/p"])
        found = {e["name"]: e for e in self.list(session, path="d/e")["entries"]}
        self.assertEqual({n: e["type"] for n, e in found.items()},
                         {"f.txt": "file", "l": "link", "p": "other"})
        self.assertEqual((found["f.txt"]["size"], found["f.txt"]["mode"], found["f.txt"]["path"]),
                         (3, "0600", "d/e/f.txt"))
        self.assertEqual(found["l"]["target"], "f.txt")
        self.assertGreater(found["f.txt"]["mtime"], 1e9)
        for path in (".", "/", ""):
            self.assertEqual(self.names(session, path=path), ["d"])
        self.assertEqual(self.names(session, path="d/e/"), self.names(session, path="d/e"))

    def test_removing_and_making_directories(self):
        session = self.open()
        self.assertEqual(self.daemon.ask("PUT", self.path(session, "a/b", what="directories"))[0], 201)
        self.assertEqual(self.daemon.ask("PUT", self.path(session, "a/b", what="directories"))[0], 200)
        self.put(session, "a/b/c", b"")
        self.assert_refused(self.daemon.ask("PUT", self.path(session, "a/b/c", what="directories")), 409, "invalid")
        self.assert_refused(self.remove(session, "a"), 409, "invalid", words="not empty")
        self.assertEqual(self.remove(session, "a/b/c")[0], 200)
        self.assert_refused(self.remove(session, "a/b/c"), 404, "gone")
        self.assertEqual(self.remove(session, "a", recursive="true")[0], 200)
        self.assertEqual(self.names(session), [])
        self.assert_refused(self.remove(session, "a", recursive="maybe"), 400, "invalid", "recursive")

    def test_what_is_wrong_is_said_in_one_shape(self):
        session = self.open()
        self.put(session, "f", b"x")
        self.put(session, "d/x", b"x")
        self.assert_refused(self.daemon.ask("GET", self.path(session, "none")), 404, "gone")
        self.assert_refused(self.daemon.ask("GET", self.path(session, "d")), 409, "invalid", words="directory")
        self.assert_refused(self.put(session, "d", b"x"), 409, "invalid")
        self.assert_refused(self.put(session, "f/x", b"x"), 409, "invalid")
        self.assert_refused(self.put(session, "n" * 300, b"x"), 400, "invalid", "path")
        self.assert_refused(self.daemon.ask("GET", self.path("0" * 32, "f")), 404, "gone")
        for other in ("0" * 32, "nope"): # which is no id of any session
            self.assert_refused(self.put(other, "f", b"hello"), 404, "gone")
            self.assert_refused(self.daemon.ask("POST", self.path(other, what="archive"), b"hello", {
                "Content-Type": "application/x-tar", "Expect": "100-continue"}), 404, "gone")
        self.assert_refused(self.daemon.ask("GET", self.path(session, path="none")), 404, "gone")
        self.assert_refused(self.daemon.ask("GET", self.path(session, limit="x")), 400, "invalid", "limit")
        self.assertEqual(self.names(session, recursive="true"), ["d", "d/x", "f"])

    def test_a_condition_that_is_not_heeded_is_refused(self):
        session = self.open()
        self.put(session, "f", b"whole")
        for header, value in (("If-Match", '"x"'), ("If-None-Match", "*"), ("Content-Range", "bytes 0-0/5"),
                              ("If-Unmodified-Since", "Mon, 16 Nov 2026 07:31:10 GMT")):
            for method, content in (("PUT", b"x"), ("DELETE", None)):
                asked = self.daemon.ask(method, self.path(session, "f"), content,
                                        {"Content-Type": "application/octet-stream", header: value})
                self.assert_refused(asked, 400, "invalid", header)
                self.assertEqual(self.get(session, "f")[:2], (200, b"whole"))

    def test_no_path_leads_out(self):
        session = self.open()
        for path in ("../x", "a/../../x", "%2e%2e/x", "a/%2e%2e%2f%2e%2e/x", "/etc/passwd", "%2fetc/passwd",
                     "./x", "a//b", "a%00b"):
            for method in ("GET", "PUT", "DELETE"):
                status, answer, _ = self.daemon.ask(method, "/v1/sessions/%s/files/%s" % (session, path),
                                                    b"" if method == "PUT" else None)
                self.assertEqual((status, answer["error"]["code"]), (400, "invalid"), path)
        self.assertEqual(self.names(session), [])

    def test_names_are_bytes(self):
        session = self.open()
        made = self.daemon.connect()
        self.addCleanup(made.close)
        made.request("PUT", "/v1/sessions/%s/files/caf%%ff%%0a%%22" % session, b"odd")
        self.assertEqual(made.getresponse().read()[:1], b"{")
        self.assertEqual(self.value(session, "import os; os.listdir(b'.') == [b'caf\\xff\\n\"']"), True)
        entry, = self.list(session)["entries"]
        self.assertEqual(base64.b64decode(entry["name_base64"]), b'caf\xff\n"')
        self.assertEqual(self.get(session, "caf\udcff\n\"".encode(errors="surrogateescape"))[:2], (200, b"odd"))
        self.put(session, "Ä 日本.txt", b"text")
        self.assertIn("Ä 日本.txt", self.names(session))

    def test_a_fresh_workspace_is_empty_but_for_what_the_session_was_made_with(self):
        session = self.open(files=[{"path": "given", "content": "1"}])
        self.put(session, "put", b"2")
        self.assertEqual(self.names(session), ["given", "put"])
        self.assertEqual(self.post(session, "reset")[0], 200)
        self.assertEqual(self.names(session), ["given"])
        self.put(session, "put", b"2")
        self.assertEqual(self.step(session, "import os; os._exit(3)")["state"], "lost")
        self.assertEqual(self.names(session), ["given"]) # it has an interpreter again
        self.put(session, "put", b"2")
        self.assertEqual(self.value(session, "open('put').read()"), "2")

    def test_files_keep_a_session_from_being_idle(self):
        session = self.open(idle_timeout=60)
        before = self.look(session)[1]["idle_seconds"]
        self.assertTrue(wait_until(lambda: self.look(session)[1]["idle_seconds"] > before + 0.3))
        began = time.monotonic()
        self.put(session, "f", b"x")
        idle = self.look(session)[1]["idle_seconds"]
        self.assertLess(idle, time.monotonic() - began + 0.1)  # not since it was opened


class Fetching(Case):
    def test_ranges_as_curl_and_browsers_ask_for_them(self):
        session = self.open()
        self.put(session, "f", b"0123456789")
        for header, status, content, span in (
                ("bytes=0-3", 206, b"0123", "bytes 0-3/10"), ("bytes=4-", 206, b"456789", "bytes 4-9/10"),
                ("bytes=-2", 206, b"89", "bytes 8-9/10"), ("bytes=8-99", 206, b"89", "bytes 8-9/10"),
                ("bytes=0-1,4-5", 200, b"0123456789", None), ("lines=1-2", 200, b"0123456789", None),
                ("bytes=5-3", 200, b"0123456789", None)):
            got = self.get(session, "f", {"Range": header})
            self.assertEqual((got[0], got[1], got[2].get("Content-Range")), (status, content, span), header)
            self.assertEqual(got[2]["Accept-Ranges"], "bytes")
        outside = self.daemon.ask("GET", self.path(session, "f"), headers={"Range": "bytes=10-"})
        self.assert_refused(outside, 416, "invalid")
        self.assertEqual(outside[2]["Content-Range"], "bytes */10")
        self.assertEqual(self.get(session, "f", {"Range": "bytes=3-4"}, method="HEAD")[2]["Content-Length"], "2")
        self.put(session, "empty", b"")
        self.assertEqual(self.get(session, "empty")[:2], (200, b""))

    def test_what_is_known_is_not_sent_again(self):
        session = self.open()
        young = self.weak_tag(session, "f", b"0123456789")
        tag = self.strong_tag(session, "f")
        self.assertEqual("W/" + tag, young)
        for header in (tag, "W/" + tag, '"x", ' + tag, "*"):
            status, content, headers = self.get(session, "f", {"If-None-Match": header})
            self.assertEqual((status, content, headers["ETag"]), (304, b"", tag))
        self.assertEqual(self.get(session, "f", {"If-None-Match": '"x"'})[0], 200)
        self.assertEqual(self.get(session, "f", {"Range": "bytes=0-1", "If-Range": tag})[0], 206)
        for other in ('"x"', "W/" + tag, "Mon, 16 Nov 2026 07:31:10 GMT"):
            self.assertEqual(self.get(session, "f", {"Range": "bytes=0-1", "If-Range": other})[0], 200)
        self.step(session, "open('f', 'r+').write('x')")
        self.assertNotEqual(self.get(session, "f")[2]["ETag"].replace("W/", ""), tag)
        self.assertEqual(self.get(session, "f", {"If-None-Match": tag})[:2], (200, b"x123456789"))

    def test_a_browser_does_not_take_it_for_a_page_of_ours(self):
        session = self.open()
        self.put(session, "x.html", b"<script>alert(1)</script>")
        headers = self.get(session, "x.html")[2]
        self.assertEqual(headers["Content-Type"], "application/octet-stream")
        self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
        self.assertTrue(headers["Content-Disposition"].startswith("attachment"))
        self.assertIn("sandbox", headers["Content-Security-Policy"])
        self.assertIn("private", headers["Cache-Control"])

    def test_a_head_is_that_of_the_answer(self):
        session = self.open()
        self.put(session, "f", b"x" * 100000)
        head, whole = self.get(session, "f", method="HEAD"), self.get(session, "f")
        self.assertEqual(head[1], b"")
        for name in ("Content-Length", "ETag", "Last-Modified", "Accept-Ranges"):
            self.assertEqual(head[2].get(name), whole[2].get(name), name)
        self.assertEqual(head[2]["Content-Length"], "100000")

    def test_curl_goes_on_where_it_was_cut_off(self):
        session = self.open()
        content = os.urandom(300000)
        self.put(session, "f", content)
        part = os.path.join(self.daemon.dir, "part")
        with open(part, "wb") as file:
            file.write(content[:100001])
        subprocess.run(["curl", "-sf", "-C", "-", "-o", part, "--unix-socket", self.daemon.path,
                        "http://localhost" + self.path(session, "f")], check=True, timeout=60)
        with open(part, "rb") as file:
            self.assertEqual(file.read(), content)


class Documented(Case):
    """The commands of docs/API.md do what it says."""

    def test_every_command(self):
        session = self.open()
        self.put(session, "out.csv", b"made")
        folder = os.path.join(self.daemon.dir, "documented")
        os.makedirs(os.path.join(folder, "project", "sub"))
        for name in ("data.csv", "project/sub/f"):
            with open(os.path.join(folder, name), "w", encoding="ascii") as file:
                file.write("a,b\n")
        with open(os.path.join(ROOT, "docs", "API.md"), encoding="utf-8") as file:
            commands = re.findall(r"^    (.*curl .*/v1/sessions/\$ID/(?:files|directories|archive).*)$", file.read(), re.M)
        self.assertGreaterEqual(len(commands), 8)
        for command in commands:
            if " -C - " in command: # which is for what was cut off
                os.truncate(os.path.join(folder, "out.csv"), 1)
            command = command.replace("127.0.0.1:6000", "127.0.0.1:%d" % self.daemon.port).replace("curl ", "curl -sf ")
            done = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=folder, stdin=subprocess.DEVNULL,
                                  env=dict(os.environ, ID=session), capture_output=True, timeout=60, check=False)
            self.assertEqual(done.returncode, 0, (command, done.stdout, done.stderr))
        with open(os.path.join(folder, "out.csv"), "rb") as file:
            self.assertEqual(file.read(), b"made")
        self.assertEqual(self.names(session, path="project", recursive="true"), ["project/sub", "project/sub/f"])


def pattern(size):
    """Bytes that are not all alike, a MiB at a time."""
    block = bytes(range(256)) * (MIB // 256)
    for at in range(0, size, MIB):
        yield at.to_bytes(8, "big") + block[8:]


class Size(Case):
    size = int(os.environ.get("VIAL_FILE_MIB", "64")) * MIB

    def memory(self):
        with open("/proc/%d/status" % self.daemon.server_pid(), encoding="ascii") as file:
            return int(next(line for line in file if line.startswith("VmHWM")).split()[1]) * 1024

    def test_much_goes_up_and_down_in_little_memory(self):
        session = self.open(limits={"workspace": self.size + 8 * MIB})
        self.put(session, "small", b"x")
        self.get(session, "small")
        before, sent = self.memory(), hashlib.sha256()
        made = self.daemon.connect()
        self.addCleanup(made.close)
        made.putrequest("PUT", self.path(session, "big"))
        made.putheader("Content-Length", str(self.size))
        made.endheaders()
        for block in pattern(self.size):
            sent.update(block)
            made.send(block)
        response = made.getresponse()
        self.assertEqual((response.status, response.read()[:1]), (201, b"{"))
        for path in (self.path(session, "big"), self.path(session, what="archive")):
            made.request("GET", path)
            response, got, count = made.getresponse(), hashlib.sha256(), 0
            while block := response.read(MIB):
                got.update(block)
                count += len(block)
            self.assertGreaterEqual(count, self.size)
            if "archive" not in path:
                self.assertEqual(got.hexdigest(), sent.hexdigest())
        self.assertLess(self.memory() - before, 4 * MIB)

    def test_who_does_not_read_is_waited_for_and_holds_nobody_up(self):
        session = self.open(limits={"workspace": "64m"})
        for block in (b"x" * (32 * MIB),):
            self.put(session, "big", block)
        before, slow = self.memory(), self.daemon.raw()
        self.addCleanup(slow.close)
        slow.sendall(b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % self.path(session, "big").encode())
        self.assertTrue(slow.recv(100).startswith(b"HTTP/1.1 200"))
        self.assertEqual(self.get(session, "big", {"Range": "bytes=0-0"})[1], b"x")
        self.assertEqual(self.value(session, "6 * 7"), 42)
        self.assertLess(self.memory() - before, 4 * MIB)

    def test_a_workspace_that_is_full_says_so_and_keeps_no_half_file(self):
        session = self.open(limits={"workspace": "4m", "files": 100})
        self.assertEqual(self.put(session, "a", b"x" * (3 * MIB))[0], 201)
        self.assert_refused(self.put(session, "b", b"x" * (5 * MIB)), 507, "limit", words="No space")
        self.assert_refused(self.put(session, "b", b"x" * (2 * MIB)), 507, "limit", words="No space")
        chunks = (b"x" * 65536 for _ in range(64))
        made = self.daemon.connect()
        self.addCleanup(made.close)
        made.request("PUT", self.path(session, "a"), chunks, encode_chunked=True,
                     headers={"Transfer-Encoding": "chunked"})
        self.assertEqual(made.getresponse().status, 507)
        self.assertEqual(self.names(session), ["a"])
        self.assertEqual(len(self.get(session, "a")[1]), 3 * MIB) # the old one
        answers = [self.put(session, "n%d" % i, b"")[0] for i in range(120)]
        self.assertEqual((answers[0], answers[-1]), (201, 507))

    def test_whoever_sends_much_for_nothing_reads_why_and_goes_on(self):
        session, content = self.open(limits={"workspace": "4m"}), b"x" * (70 * MIB)
        made = self.daemon.connect()
        self.addCleanup(made.close)
        for path, status in ((self.path(session, "a"), 507), (self.path("none", "a"), 404),
                             (self.path(session, "a") + "?mode=9", 400)):
            self.assertEqual(self.daemon.ask("PUT", path, content, connection=made)[0], status)
        self.assertEqual(self.daemon.ask("PUT", self.path(session, "a"), b"", connection=made)[0], 201)

    def test_an_upload_that_breaks_off_leaves_nothing(self):
        session = self.open()
        self.put(session, "f", b"old")
        for finish in (socket.socket.close, lambda s: s.shutdown(socket.SHUT_RDWR)):
            half = self.daemon.raw(tcp=True)
            self.addCleanup(half.close)
            half.sendall(b"PUT %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n" %
                         self.path(session, "f").encode() + b"x" * 500000)
            self.assertTrue(wait_until(lambda: len(self.names(session)) == 2)) # the name it has meanwhile
            self.assertEqual(self.get(session, "f")[1], b"old")
            finish(half)
            self.assertTrue(wait_until(lambda: self.names(session) == ["f"]))
        self.assertEqual(self.get(session, "f")[1], b"old")

    def test_many_at_once_are_all_right_or_told_to_come_back(self):
        session = self.open()

        def one(i):
            content = bytes([i]) * 200000
            status = self.put(session, "f%d" % i, content)[0]
            return status, status == 429 or self.get(session, "f%d" % i)[1] in (content, b"")

        with concurrent.futures.ThreadPoolExecutor(30) as pool:
            answers = list(pool.map(one, range(60)))
        self.assertLessEqual({status for status, _ in answers}, {201, 429})
        self.assertGreater(sum(status == 201 for status, _ in answers), 15)

    def test_a_transfer_ends_with_its_session(self):
        session = self.open(limits={"workspace": "64m"})
        self.put(session, "big", b"x" * (32 * MIB))
        for how in ("reset", "close"):
            down = self.daemon.connect()
            self.addCleanup(down.close)
            if how == "close":
                self.put(session, "big", b"x" * (32 * MIB))
            down.request("GET", self.path(session, "big"))
            response = down.getresponse()
            self.assertEqual(len(response.read(1000)), 1000)
            if how == "reset":
                self.assertEqual(self.post(session, "reset")[0], 200)
            else:
                self.daemon.ask("DELETE", "/v1/sessions/" + session)
            with self.assertRaises(Exception): # IncompleteRead, or reset
                response.read()
                self.fail("it was whole")


class Hostile(Case):
    """The guest runs, and means harm, while its files are served."""

    def test_links_are_not_followed(self):
        session = self.open()
        self.step(session, "import os\n"
                           "os.symlink('/etc/passwd', 'l'); os.symlink('/', 'root'); os.symlink('/proc/self/fd', 'fds')\n"
                           "os.symlink('/proc/1/root/etc/passwd', 'proc'); os.symlink('loop', 'loop')\n"
                           "os.mkdir('d'); os.symlink('d', 'dl'); open('d/f', 'w').write('inside')")
        for name in ("l", "root/etc/passwd", "fds/0", "proc", "loop", "dl/f"):
            status, content, _ = self.get(session, name)
            self.assertEqual(status, 409, name)
            self.assertNotIn(b"root:", content)
        for name in ("root/tmp/x", "dl/g", "loop/x"):
            self.assert_refused(self.put(session, name, b"x"), 409, "invalid")
        self.assert_refused(self.daemon.ask("GET", self.path(session, path="root")), 409, "invalid")
        self.assert_refused(self.remove(session, "dl/f"), 409, "invalid")
        # The link itself is replaced and removed, not what it leads to.
        self.assertEqual(self.put(session, "l", b"mine")[0], 200)
        self.assertEqual(self.remove(session, "dl", recursive="true")[0], 200)
        self.assertEqual(self.value(session, "[os.path.islink('l'), open('d/f').read(), open('l').read()]"),
                         [False, "inside", "mine"])

    def test_what_is_no_file_holds_nobody_up(self):
        session = self.open()
        self.step(session, "import os, socket\nos.mkfifo('fifo'); s = socket.socket(socket.AF_UNIX); s.bind('sock')\n"
                           "os.mkdir('dark'); open('dark/f', 'w').close(); os.chmod('dark', 0)")
        for name in ("fifo", "sock"):
            self.assertEqual(self.get(session, name)[0], 409, name)
        self.assertEqual(self.get(session, "dark/f")[0], 403)
        self.assertEqual(self.put(session, "fifo", b"x")[0], 200) # replaced
        self.assertEqual(self.get(session, "fifo")[1], b"x")
        self.assert_refused(self.daemon.ask("GET", self.path(session, what="archive")), 413, "limit")

    def test_links_that_are_swapped_meanwhile_lead_nowhere(self):
        session = self.open()
        secret = "root:"
        self.put(session, "d/f", b"inside")
        race = self.later(session, "import os, time\n"
                                   "os.mkdir('real'); open('real/f', 'w').write('inside')\n"
                                   "os.symlink('/etc', 'link')\n"
                                   "end = time.monotonic() + 1.5\n"
                                   "while time.monotonic() < end:\n"
                                   "    for a, b in (('d', 'old'), ('link', 'd'), ('d', 'link'), ('old', 'd')):\n"
                                   "        try: os.rename(a, b)\n"
                                   "        except OSError: pass\n", timeout=20)
        self.wait_running(session)
        seen = set()
        for _ in range(60):
            for name in ("d/f", "d/passwd", "d/hostname"):
                status, content, _ = self.get(session, name)
                seen.add(status)
                self.assertNotIn(secret, content.decode())
                self.assertIn(status, (200, 404, 409), content)
            self.assertIn(self.put(session, "d/g", b"x")[0], (200, 201, 404, 409))
            self.assertIn(self.remove(session, "d/g")[0], (200, 404, 409))
        race()
        self.assertIn(409, seen)

    def test_a_file_that_changes_its_size_ends_truthfully(self):
        session = self.open(limits={"workspace": "64m"})
        self.put(session, "f", b"x" * (16 * MIB))
        for change, whole in (("open('f', 'r+').truncate(1000)", False), ("open('f', 'ab').write(b'y' * 1000)", True)):
            self.put(session, "f", b"x" * (16 * MIB))
            made = self.daemon.connect()
            self.addCleanup(made.close)
            made.request("GET", self.path(session, "f"))
            response = made.getresponse()
            self.assertEqual(response.getheader("Content-Length"), str(16 * MIB))
            first = response.read(1000)
            self.step(session, change)
            try:
                got = first + response.read()
                self.assertTrue(whole)
                self.assertEqual(got, b"x" * (16 * MIB))
            except (OSError, Exception) as e: # pylint: disable=broad-except
                if isinstance(e, AssertionError):
                    raise
                self.assertFalse(whole, e)

    def test_hard_links_and_holes(self):
        session = self.open(limits={"workspace": "64m"})
        self.step(session, "import os\nopen('a', 'w').write('one'); os.link('a', 'b'); open('h', 'wb').truncate(200 << 20)")
        self.assertEqual(self.put(session, "a", b"two")[0], 200)
        self.assertEqual((self.get(session, "a")[1], self.get(session, "b")[1]), (b"two", b"one"))
        self.assertEqual(self.get(session, "h", {"Range": "bytes=-3"})[1], b"\0\0\0")
        self.assertEqual(self.get(session, "h", method="HEAD")[2]["Content-Length"], str(200 * MIB))
        self.assert_refused(self.daemon.ask("GET", self.path(session, what="archive")), 413, "limit")

    def test_deep_trees_are_bounded(self):
        session = self.open()
        self.step(session, "import os\nos.mkdir('top'); os.chdir('top')\n"
                           "for i in range(1000): os.mkdir('d'); os.chdir('d')\nos.chdir('/sandbox')", timeout=30)
        answer = self.list(session, recursive="true")
        self.assertTrue(answer["truncated"])
        self.assertGreater(len(answer["entries"]), 100)
        self.assert_refused(self.remove(session, "top", recursive="true"), 413, "limit")
        self.assertIn(self.daemon.ask("GET", self.path(session, what="archive"))[0], (413,))
        self.assertEqual(self.value(session, "1"), 1)

    def test_very_many_files_are_listed_as_they_come(self):
        count = int(os.environ.get("VIAL_FILES", "12000"))
        session = self.open(limits={"files": count + 10, "workspace": "512m", "cpu-time": 300})
        self.step(session, "for i in range(%d): open('f%%d' %% i, 'w').close()" % count, timeout=300)
        answer = self.list(session)
        self.assertEqual((len(answer["entries"]), answer["truncated"]), (10000, True))
        answer = self.list(session, limit=200000)
        self.assertEqual((len({e["name"] for e in answer["entries"]}), answer["truncated"]), (count, False))

    def test_a_guest_that_fills_its_workspace_is_told_to_the_client(self):
        session = self.open(limits={"workspace": "2m"})
        self.step(session, "try:\n    open('x', 'wb').write(b'x' * (8 << 20))\nexcept OSError: pass")
        self.assert_refused(self.put(session, "f", b"x" * 5000), 507, "limit")
        self.assertEqual(self.remove(session, "x")[0], 200)
        self.assertEqual(self.put(session, "f", b"x" * 5000)[0], 201)


def tar_of(*entries, fmt=tarfile.PAX_FORMAT, mode="w"):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode, format=fmt) as tar:
        for name, kind, content in entries:
            info = tarfile.TarInfo(name)
            info.type, info.mtime, info.mode = kind, 1500000000, 0o644
            if kind == tarfile.REGTYPE:
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
            else:
                info.linkname = content or ""
                tar.addfile(info)
    return out.getvalue()


class Archives(Case):
    FILE, DIR, LINK, HARD = tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE

    def test_a_tree_goes_up_and_comes_down_in_every_format(self):
        content = {"a.txt": b"one", "d/b.bin": bytes(range(256)) * 500, "d/e/Ä 日本": b"", "n" * 150 + "/x": b"long"}
        entries = [(name, self.FILE, data) for name, data in content.items()]
        zipped = io.BytesIO()
        with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in content.items():
                archive.writestr(name, data)
        for packed in (tar_of(*entries), tar_of(*entries, fmt=tarfile.GNU_FORMAT), tar_of(*entries, mode="w:gz"),
                       zipped.getvalue()):
            session = self.open()
            status, answer, _ = self.unpack(session, packed, path="in")
            self.assertEqual((status, answer), (200, {"path": "in", "entries": 4}))
            self.assertEqual({name: self.get(session, "in/" + name)[1] for name in content}, content)
            for form in ("tar", "tar.gz", "zip"):
                status, down, headers = self.pack(session, path="in", format=form)
                self.assertEqual(status, 200)
                self.assertIn("attachment", headers["Content-Disposition"])
                if form == "zip":
                    with zipfile.ZipFile(io.BytesIO(down)) as archive:
                        self.assertIsNone(archive.testzip())
                        got = {n: archive.read(n) for n in archive.namelist() if not n.endswith("/")}
                else:
                    with tarfile.open(fileobj=io.BytesIO(down), mode="r:gz" if form == "tar.gz" else "r:") as tar:
                        got = {m.name: tar.extractfile(m).read() for m in tar if m.isfile()}
                self.assertEqual(got, content, form)
            self.daemon.ask("DELETE", "/v1/sessions/" + session)
        self.assert_refused(self.daemon.ask("GET", self.path(self.open(), what="archive", format="rar")),
                            400, "invalid", "format")

    def test_links_and_modes_come_with_it(self):
        session = self.open()
        self.step(session, "import os\nos.mkdir('d'); open('d/x', 'w').write('x'); os.chmod('d/x', 0o755)\n"
                           "os.symlink('x', 'd/l'); os.symlink('/etc/passwd', 'out'); os.mkfifo('p'); os.link('d/x', 'h')")
        with tarfile.open(fileobj=io.BytesIO(self.pack(session)[1])) as tar:
            found = {m.name: m for m in tar}
        self.assertEqual(set(found), {"d", "d/x", "d/l", "out", "h"})
        self.assertEqual((found["d/x"].mode, found["d/l"].linkname, found["out"].linkname),
                         (0o755, "x", "/etc/passwd"))
        other = self.open("bash")
        packed = tar_of(("d/x", self.FILE, b"x"), ("d/l", self.LINK, "x"), ("d/h", self.HARD, "d/x"),
                        ("./d/./", self.DIR, None), ("./e/", self.DIR, None))
        status, answer, _ = self.unpack(other, tar_of(("d/x", self.FILE, b"x"), ("d/l", self.LINK, "x"),
                                                      ("d/h", self.HARD, "d/x"), ("./e/", self.DIR, None)))
        self.assertEqual((status, answer["entries"]), (200, 4), answer)
        self.assertEqual(self.step(other, "cat d/l d/h; stat -c '%h %Y' d/h; ls")["stdout"], "xx2 1500000000\nd\ne\n")
        self.assertEqual(self.unpack(other, packed)[0], 400)

    def test_what_leads_out_or_is_no_file_is_refused(self):
        for name, kind, content in (
                ("../x", self.FILE, b"x"), ("/etc/x", self.FILE, b"x"), ("a/../../x", self.FILE, b"x"),
                ("l", self.LINK, "/etc/passwd"), ("l", self.LINK, "../x"), ("a/l", self.LINK, "../../x"),
                ("h", self.HARD, "/etc/passwd"), ("h", self.HARD, "../x"), ("h", self.HARD, "none"),
                ("dev", tarfile.CHRTYPE, None), ("dev", tarfile.BLKTYPE, None), ("p", tarfile.FIFOTYPE, None)):
            session = self.open("bash")
            answer = self.unpack(session, tar_of((name, kind, content)))
            self.assertIn(answer[0], (400, 404), (name, answer))
            self.assertEqual(self.names(session, recursive="true"), [] if "/" not in name or name[0] in "./" or ".." in name
                             else self.names(session, recursive="true"))
            self.daemon.ask("DELETE", "/v1/sessions/" + session)

    def test_nothing_is_written_through_a_link_of_the_archive(self):
        session = self.open()
        answer = self.unpack(session, tar_of(("d/", self.DIR, None), ("l", self.LINK, "d"), ("l/f", self.FILE, b"x")))
        self.assert_refused(answer, 409, "invalid")
        self.assertEqual(self.names(session, recursive="true"), ["d", "l"])

    def test_bombs_stop_at_the_workspace(self):
        session = self.open(limits={"workspace": "4m", "files": 200})
        many = tar_of(*((("f%d" % i), self.FILE, b"") for i in range(1000)))
        self.assert_refused(self.unpack(session, many), 507, "limit")
        self.post(session, "reset")
        large = tar_of(("zeros", self.FILE, b"\0" * (64 * MIB)), mode="w:gz")
        self.assertLess(len(large), MIB // 4)
        self.assert_refused(self.unpack(session, large), 507, "limit")
        self.assertEqual(self.names(session), [])
        hidden = gzip.compress(tar_of(("a", self.FILE, b"x"))[:1024] + b"\0" * 512 * 1024 +
                               tar_of(("b", self.FILE, b"x")) * 2)
        self.assertIn(self.unpack(session, hidden)[0], (200, 400))

    def test_what_is_no_archive_is_said_so(self):
        session = self.open()
        good = tar_of(("a", self.FILE, b"x" * 100000))
        for content in (b"", b"hello", os.urandom(5000), good[:50000], gzip.compress(good)[:60], b"PK\3\4" + b"\0" * 50):
            self.assert_refused(self.unpack(session, content), 400, "invalid", words="archive")
        self.assertEqual(self.names(session), [])

    def test_files_that_grow_while_they_are_packed(self):
        session = self.open()
        self.put(session, "f", b"x" * 100000)
        grow = self.later(session, "import time\nend = time.monotonic() + 1\n"
                                   "while time.monotonic() < end: open('f', 'ab').write(b'y' * 1000)", timeout=20)
        self.wait_running(session)
        for _ in range(10):
            status, content, _ = self.pack(session)
            self.assertEqual(status, 200)
            with tarfile.open(fileobj=io.BytesIO(content)) as tar:
                self.assertGreaterEqual(tar.getmember("f").size, 100000)
                self.assertEqual(len(tar.extractfile("f").read()), tar.getmember("f").size)
        grow()


@unittest.skipUnless(os.getuid() == 0, "an ordinary user's filer has his uid")
class Boundary(Case):
    def filers(self):
        """[(pid, what /proc says of it)]"""
        keeper = self.daemon.process.pid
        found = []
        with open("/proc/%d/task/%d/children" % (keeper, keeper), encoding="ascii") as file:
            for pid in file.read().split():
                try:
                    with open("/proc/%s/status" % pid, encoding="ascii") as status:
                        facts = dict(line.rstrip("\n").split(":\t", 1) for line in status if ":\t" in line)
                except OSError:
                    continue
                if facts["Name"] == "vial-filer":
                    found.append((pid, facts))
        return found

    def assert_has(self, session, name, content):
        status, got, _ = self.get(session, name)
        self.assertEqual((status, len(got)), (200, len(content)), got[:200])
        self.assertTrue(got == content)

    def kill_filers(self):
        """... and wait until they are gone; how many there were."""
        filers = self.filers()
        for pid, _ in filers:
            with contextlib.suppress(ProcessLookupError):  # it had nothing left to do, and went
                os.kill(int(pid), signal.SIGKILL)
        self.assertTrue(wait_until(lambda: not any(os.path.exists("/proc/" + pid) for pid, _ in filers)))
        return len(filers)

    @daemon.inside
    def test_one_that_is_killed_takes_along_only_what_it_was_at(self):
        session = self.open(limits={"workspace": "64m"})
        content = os.urandom(16 * MIB)
        killed = 0
        for _ in range(5):
            self.assertIn(self.put(session, "f", content)[0], (200, 201, 204))
            killed += self.kill_filers()  # it was kept for the next one, who must not notice
            self.assert_has(session, "f", content)
        self.assertTrue(killed)
        slow = self.daemon.raw()
        self.addCleanup(slow.close)
        slow.sendall(b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % self.path(session, "f").encode())
        self.assertIn(b"200 OK", slow.recv(100))
        self.assertTrue(self.kill_filers())
        received = 0
        while True:
            try:
                piece = slow.recv(1 << 20)
            except ConnectionResetError:
                break
            if not piece:
                break
            received += len(piece)
        self.assertLess(received, len(content))  # it breaks off, which its length tells
        self.assert_has(session, "f", content)
        self.assertEqual(self.value(session, "1 + 1"), 2)

    @daemon.inside
    def test_who_touches_the_files_has_the_guests_uid_and_nothing_else(self):
        session = self.open(limits={"workspace": "64m"})
        self.put(session, "big", b"x" * (32 * MIB))
        uid = self.value(session, "int(open('/proc/self/uid_map').read().split()[1]) or 1")
        slow = self.daemon.raw()
        self.addCleanup(slow.close)
        slow.sendall(b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % self.path(session, "big").encode())
        slow.recv(100)
        filers = self.filers()
        self.assertTrue(filers)
        self.assertTrue(uid)
        for pid, facts in filers:
            self.assertGreaterEqual(int(facts["Uid"].split()[0]), 0x70000000)
            for caps in ("CapEff", "CapPrm", "CapInh"):
                self.assertEqual(int(facts[caps], 16), 0)
            self.assertEqual(facts["NoNewPrivs"], "1")
            self.assertEqual(facts["Seccomp"], "2")
            self.assertLessEqual(len(os.listdir("/proc/%s/fd" % pid)), 4)
        slow.close()
        self.daemon.ask("DELETE", "/v1/sessions/" + session)

        def gone():
            return not any(os.path.exists("/proc/" + pid) for pid, _ in filers)
        self.assertTrue(wait_until(gone), "a filer is left")
