"""yaml_subset - as much of YAML as policies need, for where PyYAML is not installed.

Mappings, lists of mappings or scalars, quoted and plain scalars, comments.
"""
from __future__ import annotations

import ast
import re
from typing import Any, Dict, List, Tuple

Line = Tuple[int, str]  # its indentation, and the rest

_KEY = re.compile(r"""^("[^"]*"|'[^']*'|[^\s'"#:\-][^:#]*):(?:\s+(.*))?$""")


def load(text: str) -> Any:
    """The document, by PyYAML if it is there.  ValueError: it is none."""
    try:
        import yaml
    except ImportError:
        return load_subset(text)
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as why:
        raise ValueError("Failed to parse YAML file: %s" % why) from why


def load_subset(text: str) -> Any:
    lines: List[Line] = []
    for raw in text.splitlines():
        bare = _without_comment(raw.rstrip())
        if bare.strip() and bare.strip() not in ("---", "..."):
            if "\t" in bare[:len(bare) - len(bare.lstrip())]:
                raise ValueError("Failed to parse YAML file: a tab in the indentation")
            lines.append((len(bare) - len(bare.lstrip(" ")), bare.strip()))
    if not lines:
        return None
    value, rest = _block(lines, lines[0][0])
    if rest:
        raise ValueError("Failed to parse YAML file: %r" % rest[0][1])
    return value


def _without_comment(line: str) -> str:
    quote = ""
    for place, char in enumerate(line):
        if quote:
            quote = "" if char == quote and line[place - 1:place] != "\\" else quote
        elif char in "\"'" and (place == 0 or line[place - 1] in " -:[,"):
            quote = char
        elif char == "#" and (place == 0 or line[place - 1] in " \t"):
            return line[:place].rstrip()
    return line


def _block(lines: List[Line], indent: int) -> Tuple[Any, List[Line]]:
    if lines[0][1].startswith("- ") or lines[0][1] == "-":
        return _list(lines, indent)
    if _KEY.match(lines[0][1]):
        return _mapping(lines, indent)
    return _scalar(lines[0][1]), lines[1:]


def _list(lines: List[Line], indent: int) -> Tuple[List[Any], List[Line]]:
    items: List[Any] = []
    while lines and lines[0][0] == indent and lines[0][1][:2] in ("- ", "-"):
        inside = lines[0][1][1:].lstrip()
        depth = indent + len(lines[0][1]) - len(inside)
        rest = lines[1:]
        if inside:
            item, lines = _block([(depth, inside), *rest], depth)
        elif rest and rest[0][0] > indent:
            item, lines = _block(rest, rest[0][0])
        else:
            item, lines = None, rest
        items.append(item)
    return items, lines


def _mapping(lines: List[Line], indent: int) -> Tuple[Dict[str, Any], List[Line]]:
    made: Dict[str, Any] = {}
    while lines and lines[0][0] == indent:
        match = _KEY.match(lines[0][1])
        if not match:
            raise ValueError("Failed to parse YAML file: %r" % lines[0][1])
        key, value = str(_scalar(match.group(1))), match.group(2)
        lines = lines[1:]
        if value:
            made[key] = _scalar(value)
        elif lines and (lines[0][0] > indent or
                        (lines[0][0] == indent and lines[0][1].startswith("- "))):
            made[key], lines = _block(lines, lines[0][0])
        else:
            made[key] = None
    return made, lines


def _scalar(text: str) -> Any:
    text = text.strip()
    if text[:1] == "'" and text[-1:] == "'" and len(text) > 1:
        return text[1:-1].replace("''", "'")
    if text[:1] == '"' and text[-1:] == '"' and len(text) > 1:
        return ast.literal_eval(text)
    if text in ("[]", "{}"):
        return [] if text == "[]" else {}
    if text[:1] in "[{&*!|>%@`":
        raise ValueError("Failed to parse YAML file: %r needs PyYAML" % text)
    if text in ("", "~", "null"):
        return None
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return int(text) if re.fullmatch(r"[-+]?\d+", text) else float(text)
    except ValueError:
        return text
