"""sessions - sessions of a daemon, for tests: steps, streams of them, guests that forge."""
import concurrent.futures
import contextlib
import glob
import json
import os
import re

import daemon
from daemon import wait_until

STREAM = {"Accept": "application/x-ndjson"}
LANGUAGES = ("python", "javascript", "ruby", "bash")

# What a guest needs to speak for its driver: the channel, and the id of this step.
FORGE = """
import os, stat, json, sys, time
chan = [fd for fd in range(3, 1024) if os.path.exists('/proc/self/fd/%d' % fd)
        and stat.S_ISSOCK(os.fstat(fd).st_mode)][0]
def say(data):
    data = data if isinstance(data, bytes) else json.dumps(data).encode()
    view = memoryview(data + b'\\n')
    while view: view = view[os.write(chan, view):]
"""


class Stream:
    """A step whose events come line by line."""

    def __init__(self, case, session, code, **more):
        self.daemon = case.daemon
        self.connection = case.daemon.connect()
        case.addCleanup(self.connection.close)
        self.connection.request("POST", "/v1/sessions/%s/runs" % session,
                                json.dumps(dict(more, code=code)),
                                dict(STREAM, **{"Content-Type": "application/json"}))
        self.response = self.connection.getresponse()
        case.assertEqual(self.response.status, 200)
        start = self.next()
        case.assertEqual(start["event"], "start")
        self.id = start["id"]

    def next(self):
        """The next event that is not about its way there."""
        while True:
            line = self.response.readline()
            event = json.loads(line) if line else None
            if event is None or event["event"] not in daemon.PROGRESS:
                return event

    def answer(self, call, **body):
        return self.daemon.ask("POST", "/v1/runs/%s/calls/%d" % (self.id, call), body)

    def finish(self, handlers=None):
        """(result, other events); `handlers` answer calls."""
        events = []
        while True:
            event = self.next()
            if event is None or event["event"] in ("result", "error"):
                return event and event.get("result", event), events
            events.append(event)
            if event["event"] == "call" and handlers:
                value = handlers[event["name"]](*event["args"], **event["kwargs"])
                self.answer(event["call"], value=value)

    def hang_up(self):
        self.response.close()
        self.connection.close()


class Case(daemon.Case):
    options = ("--armed", "2")

    def tearDown(self):
        for session in self.daemon.ask("GET", "/v1/sessions")[1]["sessions"]:
            self.daemon.ask("DELETE", "/v1/sessions/" + session["id"])

    def at_rest(self):
        """How many processes and descriptors the keeper has when it rests: slots are made ahead."""
        keeper, seen = self.daemon.process.pid, []

        def look():
            """But descriptors of groups, leases and networks, some of which wait for the next sandbox."""
            with open("/proc/%d/task/%d/children" % (keeper, keeper), encoding="ascii") as file:
                processes = len(file.read().split())
            descriptors = 0
            for entry in glob.glob("/proc/%d/fd/*" % keeper):
                with contextlib.suppress(FileNotFoundError):  # closed meanwhile
                    descriptors += not re.search(r"/cgroup|/leases$|^net:", os.readlink(entry))
            seen.append((processes, descriptors))
            return len(seen) > 20 and len(set(seen[-20:])) == 1

        self.assertTrue(wait_until(look), seen[-20:])
        return seen[-1]

    def wait_at_rest(self, before):
        """Until it has no more than it had: the last of a sandbox may go long after its answer."""
        seen = []

        def is_so():
            seen.append(self.at_rest())
            return seen[-1][0] <= before[0] and seen[-1][1] <= before[1] + 4
        self.assertTrue(wait_until(is_so), (before, seen[-1:]))

    def open(self, language="python", **more):
        status, answer, _ = self.daemon.ask("POST", "/v1/sessions", dict(more, language=language))
        self.assertEqual(status, 201, answer)
        return answer["id"]

    def post(self, session, what, body=None):
        return self.daemon.ask("POST", "/v1/sessions/%s/%s" % (session, what), body)

    def step(self, session, code, **more):
        status, answer, _ = self.post(session, "runs", dict(more, code=code))
        self.assertEqual(status, 200, answer)
        self.assertEqual(answer["session"], session)
        return answer["result"]

    def value(self, session, code, **more):
        result = self.step(session, code, **more)
        self.assertIsNotNone(result["value"], result)
        return result["value"].get("json", result["value"].get("text"))

    def look(self, session):
        return self.daemon.ask("GET", "/v1/sessions/" + session)

    def later(self, session, code, **more):
        """A step that somebody else waits for: a function that returns its result."""
        pool = concurrent.futures.ThreadPoolExecutor(1)
        future = pool.submit(self.step, session, code, **more)
        self.addCleanup(pool.shutdown)
        return lambda: future.result(daemon.PATIENCE_S)

    def wait_running(self, session):
        self.assertTrue(wait_until(lambda: self.look(session)[1]["state"] == "running"))

    def hold(self, session, code=""):
        """A Python step, under way until let_go: however long it takes to look at what waits for it."""
        stream = Stream(self, session, code + "\nimport time; print('up', flush=True); time.sleep(60)", timeout=60)
        self.assertEqual(stream.next()["data"][:2], "up")  # the end of the line may come by itself
        return stream

    def let_go(self, session, stream):
        self.assertEqual(self.post(session, "interrupt")[1], {"interrupted": True})
        self.assertEqual(stream.finish()[0]["state"], "kept")

    def put_file(self, session, name):
        """What a thread inside waits for, to act when no step is under way."""
        self.assertEqual(self.daemon.ask("PUT", "/v1/sessions/%s/files/%s" % (session, name), "x")[0], 201)

    def wait_for_file(self, session, name):
        self.assertTrue(wait_until(lambda: name in [entry["path"] for entry in self.daemon.ask(
            "GET", "/v1/sessions/%s/files" % session)[1]["entries"]]))
