"""http_execute - requests to the daemon, and what comes back."""
import http.client
import json
import threading
import time
import urllib.parse

from expect import MILLION, check_body, check_headers, check_seconds, fill, unknown

HELLO = {"json": {"generated_code": "print('healthy')", "timeout": 10, "language": "python"}}
HEALTHY = {"http_status": 200, "json": {"process_status": "completed", "stdout": "healthy\n"},
           "max_seconds": 5}


class Client:
    """One connection, kept if asked."""

    def __init__(self, url):
        parts = urllib.parse.urlsplit(url)
        self.connection = http.client.HTTPConnection(parts.hostname, parts.port)

    def ask(self, request, patience, keep=False):
        """(status, headers, body, seconds, whether the server closed it), or OSError."""
        body, headers = None, {}
        if "raw" in request:
            body = request["raw"].encode("utf-8", "surrogatepass")
        elif request.get("json") is not None:
            body = json.dumps(request["json"]).encode()
        if body is not None:
            headers["Content-Type"] = "application/json"
        headers["Connection"] = "keep-alive" if keep else "close"
        headers.update(request.get("headers", {}))
        self.connection.timeout = patience
        if self.connection.sock:
            self.connection.sock.settimeout(patience)
        start = time.monotonic()
        self.connection.request(request.get("method", "POST"), request.get("path", "/execute"), body,
                                headers)
        response = self.connection.getresponse()
        data = response.read()
        seconds = time.monotonic() - start
        if not keep:
            self.connection.close()
        return (response.status, {key.lower(): value for key, value in response.getheaders()}, data,
                seconds, response.will_close)

    def close(self):
        self.connection.close()


class Adapter:
    def __init__(self, context):
        self.url, self.slack = context.url, context.slack
        self.places = {"{PORT}": str(urllib.parse.urlsplit(self.url).port), "{X1M}": MILLION}

    def close(self):
        pass

    def patience(self, request, expect):
        given = (request.get("json") or {})
        given = given.get("timeout") if isinstance(given, dict) else None
        usual = given if isinstance(given, (int, float)) and 0 <= given <= 60 else 12
        return max(usual + 8, expect.get("max_seconds", 0) + 5) * self.slack

    def ask(self, client, request, expect, keep=False, more=0.0):
        """(what is wrong, whether the connection was closed)."""
        try:
            status, headers, body, seconds, closed = client.ask(
                request, self.patience(request, expect) + more, keep)
        except (OSError, http.client.HTTPException) as problem:
            client.close()
            return ["no answer: %s: %s" % (type(problem).__name__, problem)], True
        allowed = expect.get("http_status", status)
        wrong = unknown(expect)
        if status not in (allowed if isinstance(allowed, list) else [allowed]):
            wrong.append("HTTP status %d, expected %s" % (status, allowed))
        wrong += check_body(body, expect) + check_headers(headers, expect) + \
            check_seconds(seconds, expect, self.slack)
        return wrong, closed

    def once(self, request, expect, more=0.0):
        client = Client(self.url)
        try:
            return self.ask(client, request, expect, more=more)[0]
        finally:
            client.close()

    def steps(self, case):
        wrong, client = [], Client(self.url)
        keep = bool(case.get("keep_alive"))
        for number, step in enumerate(case["steps"], 1):
            time.sleep(step.get("sleep_before", 0))
            step = {"path": case.get("path", "/execute"), **fill(step, self.places)}
            problems, closed = self.ask(client, step, step.get("expect", {}), keep)
            if keep and closed and number < len(case["steps"]):
                problems.append("the connection was not kept")
            wrong += ["step %d: %s" % (number, problem) for problem in problems]
        client.close()
        return wrong

    def crowd(self, case, expect):
        count, answers = case["concurrency"], {}

        def one(number):
            places = {**self.places, "{i}": str(number)}
            answers[number] = self.once(fill(case, places), fill(expect, places), more=count / 2)
        start = time.monotonic()
        threads = [threading.Thread(target=one, args=(i,)) for i in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        seconds = time.monotonic() - start
        wrong = ["request %d of %d: %s" % (i, count, "; ".join(answers.get(i, ["it failed"])))
                 for i in range(count) if answers.get(i, True)][:3]
        if seconds > expect.get("total_max_seconds", seconds) * self.slack:
            wrong.append("%d requests took %.2f s, allowed %.2f" % (
                count, seconds, expect["total_max_seconds"]))
        return wrong

    def run(self, case):
        request, expect = case["input"], case["expect"]
        if "steps" in request:
            wrong = self.steps(request)
        elif request.get("concurrency"):
            wrong = self.crowd(request, expect)
        else:
            wrong = self.once(fill(request, self.places), fill(expect, self.places))
        if request.get("then_healthy"):
            wrong += ["afterwards: " + problem for problem in self.once(HELLO, HEALTHY)]
        return wrong
