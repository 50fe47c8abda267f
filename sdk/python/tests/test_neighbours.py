"""With what others made: LangChain, and notebooks.  Skipped where they are not installed."""
import os

import pytest


def test_a_langchain_tool():
    tools = pytest.importorskip("langchain_core.tools")
    from vial.codemie import CodeExecutorTool, DirectoryFileRepository, ToolException
    assert ToolException is tools.ToolException
    made = CodeExecutorTool(DirectoryFileRepository(), "user").as_langchain_tool()
    assert isinstance(made, tools.BaseTool) and made.name == "code_executor"
    assert made.invoke({"code": "print(42)"}) == "42"
    assert "Code failed security validation" in made.invoke({"code": "import os"})
    call = {"type": "tool_call", "id": "1", "name": made.name, "args": {"code": "print(7)"}}
    assert made.invoke(call).content == "7"


def test_a_notebook(daemon):
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    import vial
    there = [item["name"] for item in vial.Sandbox(daemon).environments()]
    if "python-data" not in there:
        pytest.skip("the environment python-data is not built")
    cells = [
        "import vial\nsession = vial.Sandbox().session(environment='python-data')",
        "session.run('import pandas as pd; pd.DataFrame({\"a\": [1, 2]})')",
        "session.run('import matplotlib.pyplot as plt; plt.plot([1, 2]); None')",
        "async def f():\n    async with vial.AsyncSandbox().session() as s:\n        return (await s.run('6 * 7')).value\nawait f()",
        "session.close()"]
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    os.environ["VIAL_SOCKET"] = daemon
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    outputs = [{mime for output in cell.outputs for mime in output.get("data", {})}
               for cell in notebook.cells]
    assert "text/html" in outputs[1]
    assert "image/png" in outputs[2]
    assert notebook.cells[3].outputs[0]["data"]["text/plain"] == "42"
