"""expect - what a case says of one answer, checked member by member."""
import json
import re

MILLION = "x" * 1000000


KNOWN = {"http_status", "json", "json_in", "json_regex", "json_not_regex", "json_len", "json_keys",
         "headers", "body_is_json", "max_seconds", "min_seconds", "total_max_seconds"}


def unknown(expect):
    return ["the case expects %s, which is unknown here" % key for key in set(expect) - KNOWN]


def fill(value, places):
    """The value with every {PLACE} in its strings replaced."""
    if isinstance(value, str):
        for place, text in places.items():
            value = value.replace(place, text)
        return value
    if isinstance(value, list):
        return [fill(item, places) for item in value]
    if isinstance(value, dict):
        return {fill(key, places): fill(item, places) for key, item in value.items()}
    return value


def short(value, most=160):
    text = repr(value)
    return text if len(text) <= most else text[:most - 20] + "...(%d)" % len(text)


def bounds(length, limits):
    return length >= limits.get("min", 0) and length <= limits.get("max", 1 << 60) and \
        length == limits.get("eq", length)


def check_members(got, expect):
    """Of a JSON object."""
    wrong = []
    for key, want in expect.get("json", {}).items():
        if key not in got or got[key] != want or type(got[key]) is not type(want):
            wrong.append("%s is %s, expected %s" % (key, short(got.get(key)), short(want)))
    for key, want in expect.get("json_in", {}).items():
        if got.get(key) not in want:
            wrong.append("%s is %s, expected one of %s" % (key, short(got.get(key)), want))
    for key, pattern in expect.get("json_regex", {}).items():
        if not isinstance(got.get(key), str) or not re.search(pattern, got[key]):
            wrong.append("%s is %s, does not match /%s/" % (key, short(got.get(key)), pattern))
    for key, pattern in expect.get("json_not_regex", {}).items():
        if isinstance(got.get(key), str) and re.search(pattern, got[key]):
            wrong.append("%s is %s, matches /%s/" % (key, short(got[key]), pattern))
    for key, limits in expect.get("json_len", {}).items():
        length = len(got[key]) if isinstance(got.get(key), (str, list)) else -1
        if not bounds(length, limits):
            wrong.append("%s has length %d, expected %s" % (key, length, limits))
    if "json_keys" in expect and sorted(got) != sorted(expect["json_keys"]):
        wrong.append("members are %s, expected %s" % (sorted(got), sorted(expect["json_keys"])))
    return wrong


def check_body(body, expect):
    if not expect.get("body_is_json", True):
        return []
    try:
        got = json.loads(body.decode("utf-8"))
    except ValueError as problem:
        return ["the body is no JSON (%s): %s" % (problem, short(body))]
    if not any(key.startswith("json") for key in expect):
        return []
    if not isinstance(got, dict):
        return ["the body is no object: %s" % short(body)]
    return check_members(got, expect)


def check_headers(headers, expect):
    wrong = []
    for name, want in expect.get("headers", {}).items():
        got = headers.get(name.lower())
        if got is None or (not re.search(want[1:], got) if want.startswith("~") else got != want):
            wrong.append("header %s is %r, expected %r" % (name, got, want))
    return wrong


def check_seconds(seconds, expect, slack):
    wrong = []
    if seconds > expect.get("max_seconds", seconds) * slack:
        wrong.append("took %.2f s, allowed %.2f" % (seconds, expect["max_seconds"]))
    if seconds < expect.get("min_seconds", 0):
        wrong.append("took only %.2f s, expected %.2f" % (seconds, expect["min_seconds"]))
    return wrong
