"""tool - the code execution tool, as a function for agents."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Awaitable, Callable, Dict, Optional

from .sandbox import DEFAULT_URI, MAX_OUTPUT_CHARACTERS, TIMEOUT_S, get_sandbox

DESCRIPTION = """Executes the provided 'generated_code' in a python sandbox environment and returns
a dictionary containing stdout, stderr, and the execution status, as well as a session_id. The
session_id can be used to append to code that was previously executed."""


@dataclass
class CodeExecutionToolConfig:
    """How the tool reaches its sandbox."""

    uri: str = DEFAULT_URI
    sandbox_type: str = "local"
    timeout: float = TIMEOUT_S
    max_output_characters: int = MAX_OUTPUT_CHARACTERS


Tool = Callable[..., Awaitable[Dict[str, Any]]]


def code_execution_tool(config: Optional[CodeExecutionToolConfig] = None) -> Tool:
    """The tool: an asynchronous function of `generated_code`, and of a `session_id` if the
    variables of an earlier call are wanted."""
    settings = config or CodeExecutionToolConfig()
    uri = settings.uri if settings.uri != DEFAULT_URI else None
    sandbox = get_sandbox(settings.sandbox_type, uri=uri)

    async def execute_code(generated_code: str, session_id: Optional[str] = None
                           ) -> Dict[str, Any]:
        return await sandbox.execute_code(
            generated_code, timeout=settings.timeout, language="python",
            max_output_characters=settings.max_output_characters, session_id=session_id)

    execute_code.__doc__ = DESCRIPTION
    return execute_code
