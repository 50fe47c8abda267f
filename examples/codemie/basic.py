"""The tool, configured by CODE_EXECUTOR_... variables."""
import tempfile

from vial.codemie import CodeExecutorTool, DirectoryFileRepository

with tempfile.TemporaryDirectory() as folder:
    file_repo = DirectoryFileRepository(folder)
    tool = CodeExecutorTool(
        file_repository=file_repo,
        user_id="user123",
    )
    result = tool.execute(code="print('Hello, World!')")
    print(result)
    print(tool.config.namespace, tool.config.execution_timeout, tool.config.memory_limit)
# prints:
# Hello, World!
# codemie-runtime 30.0 128Mi
