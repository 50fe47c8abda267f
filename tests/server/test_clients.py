"""Programs that others wrote ask the server: curl, requests, httpx.  A browser: test_browser."""
import importlib
import json
import os
import subprocess
import sys
import tempfile
import unittest

import daemon

BODY = {"language": "sh", "code": "echo one; echo two >&2; exit 3"}


sys.path.append("/usr/lib/python3/dist-packages")  # Debian's, whichever Python runs this


def module(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


requests, httpx = module("requests"), module("httpx")


class Clients(daemon.Case):
    @property
    def url(self):
        return "http://127.0.0.1:%d" % self.daemon.port

    def assert_ran(self, answer):
        result = answer["result"]
        self.assertEqual((result["stdout"], result["stderr"], result["exit_code"]), ("one\n", "two\n", 3))

    def session(self):
        return self.daemon.ask("POST", "/v1/sessions", {"language": "bash"})[1]["id"]

    def test_curl(self):
        def curl(*words, **options):
            return subprocess.run(["curl", "-sS", "--fail-with-body", "--max-time", "60", *words], check=True,
                                  capture_output=True, **options).stdout
        self.assert_ran(json.loads(curl(self.url + "/v1/runs", "--json", json.dumps(BODY))))
        self.assert_ran(json.loads(curl("--unix-socket", self.daemon.path, "http://localhost/v1/runs",
                                        "-H", "Content-Type: application/json", "-H", "Expect: 100-continue",
                                        "--data-binary", "@-", input=json.dumps(BODY).encode())))
        lines = curl("-N", "-H", "Accept: application/x-ndjson", self.url + "/v1/runs", "--json",
                     json.dumps(BODY)).splitlines()
        self.assert_ran(json.loads(lines[-1]))
        with tempfile.NamedTemporaryFile() as file:
            file.write(os.urandom(3 << 20))
            file.flush()
            place = "%s/v1/sessions/%s/files/a/b" % (self.url, self.session())
            curl("-T", file.name, place)
            curl("-T", "-", place + "-chunked", input=b"x" * 100000)  # of a length that it does not say
            self.assertEqual(curl("-r", "100-199", place), open(file.name, "rb").read()[100:200])
            self.assertEqual(len(curl(place + "-chunked")), 100000)

    @unittest.skipUnless(requests, "requests is not installed")
    def test_requests(self):
        with requests.Session() as talk:
            for _ in range(3):  # over one connection
                answer = talk.post(self.url + "/v1/runs", json=BODY, timeout=60)
                self.assertEqual(answer.status_code, 200)
                self.assert_ran(answer.json())
            refused = talk.post(self.url + "/v1/runs", json={"language": "no"}, timeout=60)
            self.assertEqual((refused.status_code, refused.json()["error"]["code"]), (400, "invalid"))
            with talk.post(self.url + "/v1/runs", json=BODY, stream=True, timeout=60,
                           headers={"Accept": "application/x-ndjson"}) as stream:
                self.assert_ran(json.loads(list(stream.iter_lines())[-1]))

    @unittest.skipUnless(httpx, "httpx is not installed")
    def test_httpx(self):
        over_socket = httpx.HTTPTransport(uds=self.daemon.path)
        for client, url in ((httpx.Client(timeout=60), self.url),
                            (httpx.Client(timeout=60, transport=over_socket), "http://localhost")):
            with client:
                self.assert_ran(client.post(url + "/v1/runs", json=BODY).json())
                with client.stream("POST", url + "/v1/runs", json=BODY,
                                   headers={"Accept": "text/event-stream"}) as stream:
                    data = [line[5:] for line in stream.iter_lines() if line.startswith("data:")]
                self.assert_ran(json.loads(data[-1]))
                place = "%s/v1/sessions/%s/files/c" % (url, self.session())
                self.assertEqual(client.put(place, content=(b"%d " % n for n in range(1000))).status_code, 201)
                self.assertEqual(client.get(place).text.split()[-1], "999")
