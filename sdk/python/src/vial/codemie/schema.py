"""schema - what a model is told about the tool."""
from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence

NAME = "code_executor"

LIBRARIES = (
    "pandas", "numpy", "matplotlib", "seaborn", "plotly", "openpyxl", "xlrd", "python-docx",
    "python-pptx", "PyPDF2", "markitdown", "pillow", "py7zr", "tabulate")

STANDARD = (
    "json", "datetime", "re", "math", "random", "collections", "itertools", "functools",
    "statistics", "copy", "csv", "base64", "hashlib", "hmac", "secrets", "string", "textwrap",
    "unicodedata", "difflib", "heapq", "bisect", "array", "enum", "decimal", "fractions", "typing",
    "dataclasses", "time")

DESCRIPTION = """Execute Python code for data analysis, plotting, calculations, or file processing.

UPLOADED FILES: they are listed at the top of the description of the code field, and lie in the
working directory. Use their EXACT names, with all brackets, parentheses and spaces.

LIBRARIES: %s
STANDARD LIBRARY: %s

FILE EXPORT: name files in export_files. Returns: File 'name': sandbox:/v1/files/...
Every execution is a fresh interpreter in an isolated sandbox with a time limit; files in the
working directory stay.""" % (", ".join(LIBRARIES), ", ".join(STANDARD))

_CODE = """Python code to execute in an isolated environment.

IMPORTANT CONSTRAINTS:
- Code MUST be Python only
- ONLY use pre-installed libraries or Python standard library modules; others cause import errors

Pre-installed Python libraries: %(libraries)s

SAFE standard library modules: %(standard)s

BLOCKED modules for security: %(blocked)s

PLOTS: save them with plt.savefig("my_plot.png"), and name the file in export_files; or call
plt.show(), and they are exported as image_0000.png and so on."""

_EXPORT = "List of file paths to export after code execution, relative to the working directory. " \
    "Files will be stored using file_repository."


def code_description(blocked: Sequence[str], file_names: Sequence[str]) -> str:
    text = _CODE % {"libraries": ", ".join(LIBRARIES), "standard": ", ".join(STANDARD),
                    "blocked": ", ".join(blocked) or "None (unrestricted mode)"}
    if file_names:
        files = ", ".join("'%s'" % name for name in file_names)
        text = ("AVAILABLE FILES IN WORKING DIRECTORY: %s\n"
                "IMPORTANT: Use these EXACT filenames (including brackets, spaces, parentheses) in "
                "your code.\n\n%s" % (files, text))
    return text


def input_schema(blocked: Sequence[str], file_names: Optional[List[str]] = None) -> Dict[str, Any]:
    """The tool's arguments, as a JSON schema."""
    return {
        "title": "CodeExecutorInput",
        "type": "object",
        "properties": {
            "code": {"type": "string", "description": code_description(blocked, file_names or [])},
            "export_files": {"type": "array", "items": {"type": "string"}, "default": None,
                             "nullable": True, "description": _EXPORT},
        },
        "required": ["code"],
    }
