"""executor - programs that call tools: only what they print and return goes back to the model."""
from __future__ import annotations

import asyncio
import inspect
import logging
import textwrap
import time
import uuid
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Dict, List, Mapping, Optional, Union

from ..aio import AsyncSandbox
from . import stubs
from .environment import SandboxEnvironment, create_sandbox
from .models import ResourceLimits

SYNTAX = "Syntax error:"


class SecurityError(Exception):
    """A tool may not be used in this way."""


@dataclass
class ToolParameter:
    name: str
    type: str = "string"
    description: str = ""
    required: bool = False


@dataclass
class ToolDefinition:
    """A tool: `function` is called with its parameters by name, and may be asynchronous."""

    name: str
    function: Optional[Callable[..., Any]] = None
    type: str = "function"
    description: str = ""
    parameters: List[ToolParameter] = field(default_factory=list)
    domain: str = "general"


class ToolCatalog:
    """Tools by name."""

    def __init__(self, tools: Optional[Mapping[str, Any]] = None, source: str = "",
                 version: str = "1.0") -> None:
        self.tools: Dict[str, Any] = dict(tools or {})
        self.source, self.version = source, version

    def add_tool(self, tool: Any) -> None:
        self.tools[tool.name] = tool


Catalog = Union[ToolCatalog, Mapping[str, Callable[..., Any]], Any]


class ProgrammaticToolExecutor:
    """Runs code in which every tool is `async def name(**parameters)`.

    Args:
        tool_catalog: an object with `tools`, a mapping of names to definitions (ToolDefinition, or
            the original's); or a mapping of names to functions.
        timeout: of the code, in seconds.
        max_tool_calls: how many calls one execution may make.
        tool_runner: calls tools that have no `function` of their own: `await f(tool, parameters)`.
        enable_stubs: code may also `from tools.DOMAIN import NAME, NameInput`, and call
            `await NAME(NameInput(...))`, which gives an object with result, success and error.
        stub_dir, use_sandbox: accepted; no files are written for stubs, and nothing runs outside
            of a sandbox.
    """

    def __init__(self, tool_catalog: Catalog, timeout: Union[int, float] = 30,
                 max_tool_calls: int = 100, logger: Optional[logging.Logger] = None,
                 enable_stubs: bool = True, stub_dir: Optional[Any] = None,
                 use_sandbox: bool = True, sandbox_limits: Optional[ResourceLimits] = None, *,
                 tool_runner: Optional[Callable[[Any, Dict[str, Any]], Any]] = None,
                 client: Optional[AsyncSandbox] = None) -> None:
        self.tool_catalog: Any = tool_catalog if hasattr(tool_catalog, "tools") \
            else ToolCatalog({name: ToolDefinition(name, function)
                              for name, function in tool_catalog.items()})
        self.timeout = timeout
        self.max_tool_calls = max_tool_calls
        self.logger = logger or logging.getLogger(__name__)
        self.enable_stubs = enable_stubs
        self.stub_dir = stub_dir
        self.use_sandbox = use_sandbox
        self.tool_runner = tool_runner
        self.tool_call_count = 0
        self.tool_call_log: List[Dict[str, Any]] = []
        self.execution_id = "ptc_%s" % uuid.uuid4().hex[:8]
        limits = replace(sandbox_limits or ResourceLimits())
        limits.max_tool_calls = max_tool_calls * 2 + 1000  # ours is counted here, with its own text
        self.sandbox = SandboxEnvironment(limits, client=client) if client \
            else create_sandbox(limits=limits)
        self.sandbox.prepare("import json\n")
        self.stubs_generated = enable_stubs
        if enable_stubs:
            self.sandbox.prepare(stubs.prelude(self.tool_catalog.tools.values()))

    async def execute(self, code: str, context: Optional[Mapping[str, Any]] = None
                      ) -> Dict[str, Any]:
        """Run the code, with the names of `context` and the tools.

        Returns:
            `output` (what it printed), `result` (what it returned), `tool_calls`,
            `execution_time`, `error` (None, or a text) and `execution_id`.
        """
        start = time.monotonic()
        self.tool_call_count = 0
        self.tool_call_log = []
        self.sandbox.limits.max_duration = self.timeout
        names: Dict[str, Any] = dict(context or {})
        for name, tool in self.tool_catalog.tools.items():
            names[name] = self._wrap(tool, "code_execution")
            if self.enable_stubs:
                names[stubs.PREFIX + name] = self._wrap(tool, "stub_import")
        result = await self.sandbox.execute(textwrap.dedent(code), names)
        return {"output": result.stdout, "result": result.output, "tool_calls": self.tool_call_log,
                "execution_time": time.monotonic() - start, "execution_id": self.execution_id,
                "error": None if result.success else _error(result.error_type, result.error)}

    # ---- tools ----

    def _wrap(self, tool: Any, caller: str) -> Callable[..., Any]:
        async def call(**parameters: Any) -> Any:
            required = {p.name for p in getattr(tool, "parameters", ()) if p.required}
            missing = required - set(parameters)
            if missing:
                raise ValueError("%s: Missing required parameters: %s" % (tool.name, missing))
            if self.tool_call_count >= self.max_tool_calls:
                raise RuntimeError("Exceeded max tool calls (%d). Consider optimizing your code or "
                                   "increasing the limit." % self.max_tool_calls)
            self.tool_call_count += 1
            return await self._record(tool, parameters, caller)

        # Errors name it; before Python 3.10, by its code.
        call.__name__ = call.__qualname__ = tool.name
        call.__code__ = call.__code__.replace(co_name=tool.name)
        return call

    async def _record(self, tool: Any, parameters: Dict[str, Any], caller: str) -> Any:
        record: Dict[str, Any] = {
            "tool": tool.name, "type": getattr(tool, "type", "function"), "parameters": parameters,
            "timestamp": time.time(),
            "caller": {"type": caller, "execution_id": self.execution_id,
                       "tool_id": "tool_call_%d" % self.tool_call_count}}
        self.tool_call_log.append(record)
        error = None
        try:
            value = await self._execute_tool(tool, parameters)
            record["result_size"] = len(str(value))
            return value
        except Exception as why:
            error = str(why)
            raise
        finally:
            record["completed_at"] = time.time()
            record["duration"] = record["completed_at"] - record["timestamp"]
            record["error"] = error

    async def _execute_tool(self, tool: Any, parameters: Dict[str, Any]) -> Any:
        if getattr(tool, "type", "function") == "code_exec":
            raise SecurityError("Nested code execution is not allowed. Move code_exec logic into "
                                "programmatic calling instead.")
        function = getattr(tool, "function", None)
        if function is None and self.tool_runner is None:
            raise ValueError("Unknown tool type: %s" % getattr(tool, "type", None))
        if function is None:
            assert self.tool_runner is not None
            value = self.tool_runner(tool, parameters)
        elif inspect.iscoroutinefunction(function):
            value = function(**parameters)
        else:
            value = await asyncio.to_thread(function, **parameters)
        return await value if inspect.isawaitable(value) else value

    def search_tools(self, query: str) -> List[str]:
        """Names of tools that have the words in their name or description."""
        words = query.lower()
        return [name for name, tool in self.tool_catalog.tools.items()
                if words in name.lower()
                or words in str(getattr(tool, "description", "") or "").lower()]

    def get_tools_directory_tree(self) -> Optional[str]:
        """The modules that code can import tools from; None without stubs."""
        return stubs.tree(self.tool_catalog.tools.values()) if self.enable_stubs else None

    def cleanup(self) -> None:
        """Nothing: stubs go with their sandbox."""


def _error(kind: Optional[str], message: Optional[str]) -> str:
    if kind == "SecurityError":
        text = message or "Sandbox security violation"
        if SYNTAX in text:
            text = "SyntaxError: " + text.split(SYNTAX, 1)[1].strip()
        return "Security violation: " + text
    if kind and message:
        return "%s: %s" % (kind, message)
    return kind or message or "Execution failed"


async def execute_programmatic_code(code: str, tool_catalog: Catalog,
                                    context: Optional[Mapping[str, Any]] = None,
                                    timeout: Union[int, float] = 30) -> Dict[str, Any]:
    """One execution of a ProgrammaticToolExecutor."""
    executor = ProgrammaticToolExecutor(tool_catalog, timeout=timeout)
    try:
        return await executor.execute(code, context)
    finally:
        await executor.sandbox.aclose()
