"""contract - what the server says, held against docs/openapi.json: all of it, and nothing else."""
import functools
import json
import os
import re

import jsonschema

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
COMPONENTS = "#/components/schemas/"


def strict(node):
    """The same, but what is not described is not allowed."""
    if isinstance(node, list):
        return [strict(item) for item in node]
    if not isinstance(node, dict):
        return node
    made = {key: strict(value) for key, value in node.items()}
    if "properties" in made and isinstance(made["properties"], dict):
        made.setdefault("additionalProperties", False)
    return made


@functools.lru_cache(None)
def document():
    with open(os.path.join(ROOT, "docs/openapi.json"), encoding="utf-8") as file:
        return json.load(file)


@functools.lru_cache(None)
def _validator(name):
    made = {"$ref": COMPONENTS + name, "components": {"schemas": strict(document()["components"]["schemas"])}}
    return jsonschema.Draft202012Validator(made)


def check(name, value):
    """Raises if it is not what the schema of this name says."""
    for error in _validator(name).iter_errors(value):
        inner = jsonschema.exceptions.best_match([error]) or error
        raise AssertionError("not a %s: %s: %s" % (name, "/".join(map(str, inner.absolute_path)),
                                                   inner.message[:500]))


@functools.lru_cache(None)
def _patterns():
    return [(re.compile(re.sub(r"{\w+}", "[^/]+", path.replace("{path}", ".+")) + "$"), operations)
            for path, operations in document()["paths"].items()]


def check_answer(method, path, status, answer):
    """One answer of the server, by what was asked."""
    path = path.split("?", 1)[0]
    for pattern, operations in _patterns():
        if pattern.match(path) and method.lower() in operations:
            responses = operations[method.lower()]["responses"]
            content = responses.get(str(status), responses["default"])["content"]
            schema = content.get("application/json", {}).get("schema")
            if schema:
                check(schema["$ref"][len(COMPONENTS):], answer)
            return
