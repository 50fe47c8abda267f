"""languages - the table of languages; entries may be added.

`extension` names the main file, `language` is vial's name of it if that is another one. `image` is
a container image: where an environment of the server is made of it, code runs in that; the images
that stand here need not be there.
"""
from __future__ import annotations

from typing import Dict

_PYTHON = {"image": "python:3.11-slim", "extension": ".py", "runtime_name": "Python 3.11",
           "description": "Python 3.11 with pip", "language": "python"}
_NODE = {"image": "node:18-alpine", "extension": ".js", "runtime_name": "Node.js 18",
         "description": "Node.js 18 with npm", "language": "javascript"}
_BASH = {"image": "ubuntu:22.04", "extension": ".sh", "runtime_name": "Bash 5",
         "description": "Ubuntu 22.04 with bash", "language": "bash"}

LANGUAGE_CONFIGS: Dict[str, Dict[str, str]] = {
    "python": _PYTHON,
    "python3": _PYTHON,
    "javascript": _NODE,
    "js": _NODE,
    "bash": _BASH,
    "sh": _BASH,
    "ruby": {"image": "ruby:3.2-alpine", "extension": ".rb", "runtime_name": "Ruby 3.2",
             "description": "Ruby 3.2 with gems", "language": "ruby"},
    "go": {"image": "golang:1.21-alpine", "extension": ".go", "runtime_name": "Go 1.21",
           "description": "Go 1.21 compiler", "language": "go"},
}

USUAL_IMAGES = {name: config["image"] for name, config in LANGUAGE_CONFIGS.items()}
