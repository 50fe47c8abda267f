"""stubs - tools as modules: `from tools.DOMAIN import NAME, NameInput`.

The original writes such modules as files, for models to explore.  Here they are made in the
sandbox, and call the executor as the tools' own names do.
"""
from __future__ import annotations

import os
from typing import Any, Dict, Iterable, List

PREFIX = "__stub_"  # of the name by which a stub calls its tool
DOMAIN = "general"  # of tools that have none

_GUEST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "guest", "make_stubs.py")


def domain_of(tool: Any) -> str:
    return str(getattr(tool, "domain", None) or DOMAIN)


def _told(tool: Any) -> Dict[str, Any]:
    parameters = list(getattr(tool, "parameters", None) or ())
    return {"name": tool.name, "domain": domain_of(tool), "call": PREFIX + tool.name,
            "description": str(getattr(tool, "description", "") or ""),
            "fields": [p.name for p in parameters],
            "required": [p.name for p in parameters if p.required]}


def _can_be_imported(tool: Any) -> bool:
    return bool(tool.name.isidentifier() and domain_of(tool).isidentifier())


def prelude(tools: Iterable[Any]) -> str:
    """What makes them, for the sandbox to run before any code."""
    told = [_told(tool) for tool in tools if _can_be_imported(tool)]
    with open(_GUEST, encoding="utf-8") as file:
        return "%s\nmake_stubs(%r, globals())\ndel make_stubs\n" % (file.read(), told)


def tree(tools: Iterable[Any]) -> str:
    """The modules there are, as a directory would show them."""
    by_domain: Dict[str, List[str]] = {}
    for tool in tools:
        if _can_be_imported(tool):
            by_domain.setdefault(domain_of(tool), []).append(tool.name)
    lines = ["tools/"]
    for domain in sorted(by_domain):
        lines += ["  %s/" % domain, *("    %s.py" % name for name in sorted(by_domain[domain]))]
    return "\n".join(lines)
