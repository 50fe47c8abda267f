# JSON in and out: nesting, unicode, numbers at the edge, errors with a place.
import json

document = {"name": "Zoë", "tags": ["a", "b"], "deep": {"x": [1, 2.5, None, True, -1e-9]}, "n": 2**70}
text = json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False)
print(text)
print(json.loads(text) == document)
print(json.dumps("\u2028 \x00 \U0001f9ea / \\ \""), json.dumps([float("inf"), 1e400 - 1e400]))
for bad in ('{"a": }', "[1, 2", '"\x01"', "nul", '{"a" 1}'):
    try:
        json.loads(bad)
    except json.JSONDecodeError as error:
        print(error)
nested = json.loads("[" * 500 + "]" * 500)
depth = 0
while nested:
    nested, depth = nested[0], depth + 1
print(depth)
print(json.loads('{"pi": 3.14159265358979}', parse_float=lambda s: s[:6]))
print(json.dumps({1: "int", None: "none", 1.5: "float"}), json.dumps({"b": {3, 1}}, default=sorted))
