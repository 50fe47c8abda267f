"""debugger - reports for an AutoDebugger."""
from __future__ import annotations

from typing import Any, Dict, Optional

from .models import ExecutionResult

SUGGESTION = "Code execution exceeded time limit. Consider optimizing or increasing timeout."


class AutoDebuggerIntegration:
    """What a debugger wants to know about an execution."""

    @staticmethod
    def create_debug_report(result: ExecutionResult) -> Dict[str, Any]:
        """Everything, as a dictionary."""
        report: Dict[str, Any] = {
            "status": "success" if result.success else "failure",
            "exit_code": result.exit_code,
            "execution_time": result.execution_time,
            "timestamp": result.timestamp.isoformat(),
            "language": result.language,
            "container_id": result.container_id,
            "output": {"stdout": result.stdout, "stderr": result.stderr},
            "resource_usage": result.resource_usage,
        }
        if result.timeout:
            report["error_type"] = "timeout"
            report["error_message"] = result.error_message
        elif result.error_message:
            report["error_type"] = "execution_error"
            report["error_message"] = result.error_message
        if result.output_files:
            report["output_files"] = result.output_files
        return report

    @staticmethod
    def analyze_error(result: ExecutionResult) -> Dict[str, Any]:
        """What kind of error it is."""
        analysis: Dict[str, Any] = {"is_error": not result.success, "error_type": "unknown"}
        if result.timeout:
            analysis.update(error_type="timeout", suggestion=SUGGESTION)
        elif result.exit_code != 0:
            analysis["error_type"] = "execution_failure"
            if "Traceback" in result.stderr:
                analysis["error_type"] = "python_exception"
                exception = _exception_line(result.stderr)
                if exception is not None:
                    analysis["exception"] = exception
        elif result.error_message:
            analysis.update(error_type="sandbox_error", error=result.error_message)
        return analysis


def _exception_line(stderr: str) -> Optional[str]:
    """The last line with a colon that is not indented; of an exception without a message, its name.

    What stands before the last traceback, and its head, are not about the exception.
    """
    lines = [line for line in stderr[stderr.rindex("Traceback"):].split("\n")[1:]
             if line.strip() and not line.startswith(" ")]
    said = [line for line in lines if ":" in line] or lines
    return said[-1].strip() if said else None
