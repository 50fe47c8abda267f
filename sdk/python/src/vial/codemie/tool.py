"""tool - CodeExecutorTool: Python for a model, with files and a policy."""
from __future__ import annotations

import asyncio
import hashlib
import logging
import re
from typing import Any, Dict, List, Optional, Sequence, Union

from ..results import Result
from . import schema
from .config import CodeExecutorConfig, ExecutionMode
from .exceptions import ToolException
from .files import FileObject
from .manager import ExecutorSession, SandboxSessionManager
from .policy import get_codemie_security_policy, get_restricted_module_names
from .transfer import check_export_paths, export, upload

logger = logging.getLogger(__name__)

PICTURE = re.compile(r"image_\d{4}\.png")  # what plt.show() has made
NAME_MAX = 255  # bytes of a directory's name
NO_OUTPUT = "Code executed successfully with no output."
TIMED_OUT = "Code execution timed out after %s seconds. This may indicate an infinite loop or a " \
    "resource-intensive operation. Please review your code and consider optimizing it."


class CodeExecutorTool:
    """Runs Python code for a user, each time in a fresh interpreter and a sandbox of its own.

    The settings are those of the environment when it is constructed (CodeExecutorConfig).

    Args:
        file_repository: where exported files go; see FileRepository.
        user_id: whose working directory is used, and who owns exported files.
        input_files: what the working directory holds before the code runs.
        execution_mode: accepted; everything runs in a sandbox.
        config: settings, instead of the environment's.
    """

    def __init__(self, file_repository: Optional[Any] = None, user_id: Optional[str] = "",
                 input_files: Optional[Sequence[FileObject]] = None,
                 execution_mode: Optional[ExecutionMode] = None, *,
                 config: Optional[CodeExecutorConfig] = None) -> None:
        self.config = config or CodeExecutorConfig.from_env()
        if execution_mode is not None:
            self.config.execution_mode = ExecutionMode(execution_mode)
        self.file_repository = file_repository
        self.user_id = user_id or ""
        self.input_files = list(input_files or ())
        threshold, path = self.config.security_threshold, self.config.yaml_policy_path or None
        self.security_policy = get_codemie_security_policy(threshold, path)
        self.name = schema.NAME
        self.description = schema.DESCRIPTION
        self.args_schema = schema.input_schema(get_restricted_module_names(threshold, path),
                                               [file.name for file in self.input_files])

    # ---- calling it ----

    def execute(self, code: str, export_files: Optional[List[str]] = None) -> str:
        """Run code, and give back what it printed, and where the exported files are.

        Raises:
            ToolException: it was refused, failed, or took too long; the text is for the model.
        """
        try:
            return self._execute(code, export_files)
        except ToolException:
            raise
        except Exception as why:
            logger.error("Error executing code", exc_info=True)
            text = "%s: %s" % (type(why).__name__, str(why) or repr(why))
            raise ToolException("Error executing code: %s" % text) from why

    def invoke(self, input: Union[str, Dict[str, Any]], config: Any = None, **kwargs: Any) -> str:
        """execute(), as LangChain calls tools: with its arguments, or only the code."""
        return self.execute(**input) if isinstance(input, dict) else self.execute(input)

    async def ainvoke(self, input: Union[str, Dict[str, Any]], config: Any = None, **kwargs: Any
                      ) -> str:
        return await asyncio.to_thread(self.invoke, input)

    run = invoke

    def as_langchain_tool(self) -> Any:
        """A LangChain tool that does this; langchain-core must be installed."""
        from langchain_core.tools import StructuredTool

        def code_executor(code: str, export_files: Optional[List[str]] = None) -> str:
            return self.execute(code, export_files)

        return StructuredTool.from_function(
            func=code_executor, name=self.name, description=self.description,
            args_schema=self.args_schema, handle_tool_error=True)

    # ---- how it is done ----

    def _get_user_workdir(self) -> str:
        """Where the user's code runs."""
        if not self.user_id:
            return self.config.workdir_base
        safe = re.sub(r"[^A-Za-z0-9_.-]", "_", self.user_id)
        if not safe.strip("."):
            safe = "_" * len(safe)
        if len(safe) > NAME_MAX:
            mark = hashlib.sha256(self.user_id.encode("utf-8", "backslashreplace")).hexdigest()[:32]
            safe = "%s-%s" % (safe[:NAME_MAX - len(mark) - 1], mark)
        return "%s/%s" % (self.config.workdir_base, safe)

    def _execute(self, code: str, export_files: Optional[List[str]]) -> str:
        workdir = self._get_user_workdir()
        paths = check_export_paths(export_files, workdir)
        manager = SandboxSessionManager(self.config)
        with manager.lease(self.config) as session:
            directory = manager.directory(workdir, self.user_id)
            upload(self.input_files, directory, self.file_repository)
            self._check(session, code)
            result = session.run(code, self.config, workdir, directory,
                                 manager.environment(self.config.docker_image))
            text = self._format(result)
            shown = [file.path for file in result.files_changed if PICTURE.fullmatch(file.path)]
            paths += [path for path in shown if path not in paths]
            lines = export(paths, directory, workdir, self.file_repository, self.user_id)
        return "\n".join([text, *lines])

    def _check(self, session: ExecutorSession, code: str) -> None:
        is_safe, violations = session.is_safe(code, self.security_policy)
        if not is_safe:
            found = "\n".join("  \u2022 [%s] %s" % (v.severity.name, v.description)
                              for v in violations)
            raise ToolException(
                "Code failed security validation (%d violation(s) detected):\n%s\n\nPlease review "
                "your code and remove any restricted operations." % (len(violations), found))

    def _format(self, result: Result) -> str:
        if result.timed_out:
            raise ToolException(TIMED_OUT % self.config.execution_timeout)
        parts = [result.stdout.strip()] if result.stdout.strip() else []
        if result.oom:
            parts.append("Memory limit of %s exceeded." % self.config.memory_limit)
        if result.stderr:
            parts.append("STDERR:\n%s" % result.stderr)
        if result.exit_code != 0 or result.oom:
            raise ToolException("Code execution failed.\n\n%s" % "\n".join(parts))
        return "\n".join(parts) or NO_OUTPUT
