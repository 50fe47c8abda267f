"""A notebook is executed by a real kernel: what a sandbox shows, it shows."""
import base64
import os
import pathlib
import sys

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

SOURCE = str(pathlib.Path(__file__).resolve().parents[1] / "src")
CELLS = [
    "import vial\nsession = vial.Sandbox().session(environment='python-data')",
    "session.run('''\nimport pandas as pd\npd.DataFrame({'city': ['Oslo', 'Rome'], 'size': [1, 3]})\n''')",
    "session.run('''\nimport matplotlib.pyplot as plt\nplt.plot([1, 2, 3])\nplt.show()\n''')",
    "session.run('6 * 7').value",
    "async with vial.AsyncSandbox().session() as other:\n    answer = await other.run('1/0')\nanswer.exception.type",
    "session.run('print(1)\\nfor n in (1, 2):\\n    plt.plot([n, 2])\\n    plt.show()\\n40 + 2')",
    "session.run('1/0')",
    "vial.run('while True: pass', timeout=0.2)",
    "vial.run('pass')",
    "session.close()",
]


def outputs(cell, kind):
    """The forms of this kind that a cell has shown; "stdout" and "stderr" are what it printed."""
    if kind in ("stdout", "stderr"):
        return "".join(out["text"] for out in cell["outputs"] if out.get("name") == kind)
    return [out["data"][kind] for out in cell["outputs"] if kind in out.get("data", {})]


def test_a_plot_and_a_table(sandbox, tmp_path, monkeypatch):
    if "python-data" not in [item["name"] for item in sandbox.environments()]:
        pytest.skip("the environment python-data is not built")
    monkeypatch.setenv("PYTHONPATH", SOURCE)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path))
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    manager = nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3",
                                      resources={"metadata": {"path": str(tmp_path)}})
    manager.create_kernel_manager()
    # This very Python, whatever kernels are installed.
    manager.km.kernel_spec.argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    manager.execute(env=dict(os.environ))
    _, table, plot, value, failed, several, error, timeout, nothing, _ = notebook.cells
    assert "<td>Oslo</td>" in outputs(table, "text/html")[0]
    assert base64.b64decode(outputs(plot, "image/png")[0]).startswith(b"\x89PNG")
    assert outputs(value, "text/plain") == ["42"]
    assert outputs(failed, "text/plain") == ["'ZeroDivisionError'"]
    assert outputs(several, "stdout") == "1\n" and len(outputs(several, "image/png")) == 2
    assert outputs(several, "text/plain")[-1] == "42"
    assert outputs(error, "stderr").endswith("ZeroDivisionError: division by zero\n") and not outputs(error, "stdout")
    assert outputs(timeout, "stderr") == "TimeoutError: the program ran out of time (timeout)\n"
    assert outputs(nothing, "text/plain")[0].startswith("Result(ok=True")
    nbformat.validate(notebook)
