"""The document of the interface, and whether it is true."""
import json
import os
import re
import subprocess
import sys

import jsonschema

import contract
import daemon


def members_told(answer):
    """Those that a refusal of an unknown one lists."""
    told = answer[1]["error"]["hint"]
    return set(re.findall(r"\w+", re.sub(r"^there (are|is) |,? and what a run has$", "", told))) - {"and"}


class Document(daemon.Case):
    def schema(self, name):
        return contract.document()["components"]["schemas"][name]

    def refused(self, path, body):
        answer = self.daemon.ask("POST", path, body)
        self.assert_refused(answer, 400, "invalid", next(iter(body)), "there is no such member")
        return members_told(answer)

    def test_it_is_what_the_sources_say(self):
        done = subprocess.run([sys.executable, os.path.join(contract.ROOT, "tools/openapi"), "--check"],
                              capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_it_is_served(self):
        status, answer, headers = self.daemon.ask("GET", "/v1/openapi.json")
        self.assertEqual((status, headers["Content-Type"]), (200, "application/json"))
        self.assertEqual(answer, contract.document())

    def test_it_is_well_formed(self):
        made = contract.document()
        self.assertEqual(made["openapi"], "3.1.0")
        for schema in made["components"]["schemas"].values():
            jsonschema.Draft202012Validator.check_schema(schema)
        names = re.findall(r'"\$ref": "#/components/schemas/(\w+)"', json.dumps(made))
        self.assertEqual(set(names) - set(made["components"]["schemas"]), set())
        ids = []
        for path, operations in made["paths"].items():
            for method, operation in operations.items():
                ids.append(operation["operationId"])
                given = {p["name"] for p in operation.get("parameters", ()) if p["in"] == "path"}
                self.assertEqual(given, set(re.findall(r"{(\w+)}", path)))
                self.assertIn("default", operation["responses"])
                self.assertIn(method, ("get", "put", "post", "delete", "patch"))
        self.assertEqual(len(ids), len(set(ids)))

    def test_every_member_that_is_known_is_there_and_no_other(self):
        run = self.refused("/v1/runs", {"nosuch": 1})
        self.assertEqual(run, set(self.schema("Run")["properties"]))
        batch = self.refused("/v1/batch", {"nosuch": 1})
        self.assertEqual(batch | run, set(self.schema("Batch")["properties"]))
        answer = self.daemon.ask("POST", "/v1/batch", {"runs": [{"nosuch": 1}]})
        self.assertEqual(members_told(answer) | run, set(self.schema("BatchRun")["properties"]))
        self.assertEqual(self.refused("/v1/sessions", {"nosuch": 1}),
                         set(self.schema("SessionRequest")["properties"]))
        answer = self.daemon.ask("POST", "/v1/runs", {"language": "python", "code": "",
                                                      "files": [{"path": "a", "nosuch": 1}]})
        self.assertEqual(set(re.findall(r"path|content(?:_base64)?", answer[1]["error"]["hint"])),
                         set(self.schema("File")["properties"]))

    def test_members_of_steps(self):
        _, session, _ = self.daemon.ask("POST", "/v1/sessions", {"language": "python"})
        path = "/v1/sessions/" + session["id"]
        self.assertEqual(self.refused(path + "/runs", {"nosuch": 1}),
                         set(self.schema("Step")["properties"]))
        self.assertEqual(self.refused(path + "/extend", {"nosuch": 1}),
                         set(self.schema("Extension")["properties"]))
        self.daemon.ask("DELETE", path)

    def test_limits(self):
        """Each can be given, at both of its ends, and no other."""
        for name, limit in self.schema("Limits")["properties"].items():
            number = limit["anyOf"][0]
            for value, status in ((number["minimum"] - 1, 400), (number["maximum"] * 2, 400)):
                answer = self.daemon.ask("POST", "/v1/sessions", {"language": "c", "limits": {name: value}})
                self.assertEqual((answer[0], answer[1]["error"]["field"]), (status, "limits." + name))
            for value in (number["minimum"], number["maximum"]):
                answer = self.daemon.ask("POST", "/v1/sessions", {"language": "c", "limits": {name: value}})
                self.assertEqual(answer[1]["error"]["field"], "language", answer)  # it has no sessions

    def test_what_is_streamed(self):
        def events(path, body):
            made = self.daemon.connect()
            self.addCleanup(made.close)
            made.request("POST", path, json.dumps(body), {"Content-Type": "application/json",
                                                          "Accept": "application/x-ndjson"})
            return [json.loads(line) for line in made.getresponse()]

        _, session, _ = self.daemon.ask("POST", "/v1/sessions", {"language": "python"})
        seen = set()
        for path, name, body in (
                ("/v1/runs", "RunEvent", {"language": "python", "code": "import os\nprint(1)\nos.write(2, b'\\xff')\n1/0"}),
                ("/v1/batch", "BatchEvent", {"language": "python", "code": "print(1)",
                                             "runs": [{"expected": "2"}, {"expected": "1"}]}),
                ("/v1/sessions/%s/runs" % session["id"], "StepEvent",
                 {"code": "display({'a': 1})\nprint(2)\n{'x': [1, None]}"}),
                ("/v1/sessions/%s/runs" % session["id"], "StepEvent",
                 {"code": "try:\n  1/0\nexcept Exception as e:\n  raise ValueError('x') from e"})):
            for event in events(path, body):
                seen.add((name, event["event"]))
                contract.check(name, event)
        self.daemon.ask("DELETE", "/v1/sessions/" + session["id"])
        self.assertTrue({("RunEvent", "output"), ("BatchEvent", "summary"), ("BatchEvent", "run"),
                         ("StepEvent", "display"), ("StepEvent", "result")} <= seen, seen)
