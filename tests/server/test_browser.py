"""A browser's fetch(): what pages of ours may ask, and what those of others may not."""
import contextlib
import http.server
import itertools
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import unittest

import daemon
from daemon import PATIENCE_S

BROWSER = shutil.which("chromium")
RUN = {"language": "sh", "code": "echo from a browser"}
# What a page gets to know of an answer, or that it gets none.
FETCH = """(async () => {
    try {
        const answer = await fetch(%s, %s);
        return [answer.type, answer.status, await answer.text()];
    } catch (why) { return ["refused", 0, String(why)]; }
})()"""


class Browser:
    """Chromium by its debugging pipe: messages that end in a NUL."""

    def __init__(self, stack):
        home = stack.enter_context(tempfile.TemporaryDirectory(prefix="vial-browser-", ignore_cleanup_errors=True))
        to_read, to_write = os.pipe(), os.pipe()
        for end in (to_read[0], to_write[1]):
            os.set_inheritable(end, True)
        # It reads from 3 and writes to 4, whatever these are here.
        words = ["sh", "-c", 'exec 3<&"$0" 4>&"$1"; shift; exec "$@"', str(to_read[0]), str(to_write[1]), BROWSER,
                 "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                 "--user-data-dir=" + home, "--remote-debugging-pipe", "about:blank"]
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, pass_fds=(to_read[0], to_write[1]),
                                        env={**os.environ, "HOME": home, "TMPDIR": home},
                                        start_new_session=True)
        stack.callback(self.process.wait)
        stack.callback(self.kill)
        patience = threading.Timer(4 * PATIENCE_S, self.kill)  # whoever waits for it finds its end
        patience.start()
        stack.callback(patience.cancel)
        os.close(to_read[0])
        os.close(to_write[1])
        self.orders = stack.enter_context(os.fdopen(to_read[1], "wb", buffering=0))
        self.answers = stack.enter_context(os.fdopen(to_write[0], "rb"))
        self.numbers = itertools.count(1)

    def kill(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def _next(self):
        text = bytearray()
        while True:
            byte = self.answers.read(1)
            if byte in (b"", b"\0"):
                return json.loads(text)
            text += byte

    def ask(self, method, session=None, **params):
        number = next(self.numbers)
        order = {"id": number, "method": method, "params": params, **({"sessionId": session} if session else {})}
        self.orders.write(json.dumps(order).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(answer["error"])
                return answer["result"]

    def open(self, url):
        """A page; what it is asked is run as its own script would be."""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        page = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.ask("Page.enable", page)
        self.ask("Page.navigate", page, url=url)
        while self.evaluate(page, "location.href !== 'about:blank' && document.readyState") != "complete":
            pass
        return page

    def evaluate(self, page, code):
        return self.ask("Runtime.evaluate", page, expression=code, awaitPromise=True,
                        returnByValue=True)["result"].get("value")

    def fetch(self, page, url, **options):
        return self.evaluate(page, FETCH % (json.dumps(url), json.dumps(options)))


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<p>a page of somebody else's")

    def log_message(self, *_):
        pass


@unittest.skipUnless(BROWSER, "chromium is not installed")
class Pages(daemon.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.stack = contextlib.ExitStack()
        cls.browser = Browser(cls.stack)
        cls.ours = "http://localhost:%d" % cls.daemon.port

    @classmethod
    def tearDownClass(cls):
        cls.stack.close()
        super().tearDownClass()

    def ran(self):
        return self.daemon.ask("GET", "/v1/history")[1]["records"]

    def test_a_page_of_ours_may_ask(self):
        page = self.browser.open(self.ours + "/healthz")
        kind, status, text = self.browser.fetch(page, "/v1/runs", method="POST", body=json.dumps(RUN),
                                                headers={"Content-Type": "application/json"})
        self.assertEqual((kind, status), ("basic", 200), text)
        self.assertEqual(json.loads(text)["result"]["stdout"], "from a browser\n")
        kind, status, text = self.browser.fetch(page, "/v1/runs", method="POST", body=json.dumps(RUN), headers={
            "Content-Type": "application/json", "Accept": "application/x-ndjson"})
        self.assertEqual([json.loads(line)["event"] for line in text.splitlines()][-1], "result", text)

    def test_a_page_of_others_may_not(self):
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page) as other:
            threading.Thread(target=other.serve_forever, daemon=True).start()
            before = len(self.ran())
            page = self.browser.open("http://127.0.0.1:%d/" % other.server_address[1])
            body = json.dumps(RUN)
            for name in ("localhost", "127.0.0.1"):
                url = "http://%s:%d" % (name, self.daemon.port)
                for path, options in (
                        ("/v1/runs", {"method": "POST", "body": body, "headers": {"Content-Type": "application/json"}}),
                        ("/v1/runs", {"method": "POST", "body": body}),  # text/plain: a browser does not ask before
                        ("/v1/runs", {"method": "POST", "body": body, "mode": "no-cors"}),
                        ("/execute", {"method": "POST", "mode": "no-cors", "body": json.dumps(
                            {"generated_code": "print(1)", "timeout": 5, "language": "python"})}),
                        ("/v1/history", {}), ("/v1/history", {"mode": "no-cors"})):
                    kind, status, text = self.browser.fetch(page, url + path, **options)
                    self.assertIn(kind, ("refused", "opaque"), (path, options, status, text))
                    self.assertNotIn("stdout", text)
            other.shutdown()
        self.assertEqual(len(self.ran()), before)
        self.assertEqual(self.daemon.runs(), [])
