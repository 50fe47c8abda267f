"""output - what a program printed, cut and laid out for a model."""
from __future__ import annotations

from typing import Mapping

CUT = "<output cut>"


def cut_output(text: str, max_characters: int) -> str:
    """At most so many characters, and a newline behind what is not empty."""
    if len(text) > max_characters:
        text = text[:max_characters] + CUT
    return text + "\n" if text else text


def format_code_output(execution_dict: Mapping[str, str], code_output_begin: str = "",
                       code_output_end: str = "", code_output_format: str = "llama") -> str:
    """The result of an execution as the model was taught to read it: "llama" or "qwen"."""
    stdout, stderr = execution_dict["stdout"], execution_dict["stderr"]
    if code_output_format == "llama":
        output = execution_dict["process_status"]
        if stdout:
            output += "\n[stdout]\n%s[/stdout]" % stdout
        if stderr:
            output += "\n[stderr]\n%s[/stderr]" % stderr
        return "%s\n\n%s\n%s\n\n" % (code_output_begin, output, code_output_end)
    if code_output_format == "qwen":
        return "%s%s%s%s\n" % (code_output_begin, stdout, stderr, code_output_end)
    raise ValueError("Unknown code_output_format: %s" % code_output_format)
