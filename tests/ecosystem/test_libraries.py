"""The libraries of python-data, by their own tests and plain use, inside a sandbox."""
import os
import pathlib
import shutil

import pytest

LIMITS = {"memory": "2g", "timeout": 900, "cpu-time": 900, "processes": 256, "workspace": "512m", "tmp": "512m", "files": 50000}


@pytest.fixture(scope="module")
def run(sandbox):
    if "python-data" not in [item["name"] for item in sandbox.environments()]:
        pytest.skip("the environment python-data is not built")

    def made(code, **more):
        result = sandbox.run(code, environment="python-data", limits=LIMITS, **more)
        assert result.ok, result.stderr[-2000:] + result.stdout[-2000:]
        return result.stdout
    return made


@pytest.fixture(scope="module")
def tools(tmp_path_factory):
    """What numpy's tests need and sandboxes do not have: pytest and hypothesis, as one file."""
    folder = os.environ.get("VIAL_TEST_LIBRARIES")
    if not folder:
        pytest.skip("VIAL_TEST_LIBRARIES names no directory with pytest and hypothesis")
    return pathlib.Path(shutil.make_archive(str(tmp_path_factory.mktemp("tools") / "tools"), "zip", folder))


@pytest.mark.parametrize("module", ["numpy.linalg", "numpy.random", "numpy.polynomial", "numpy.fft", "numpy.ma"])
def test_numpys_own(run, tools, module):
    said = run("""
import sys, zipfile
zipfile.ZipFile("tools.zip").extractall("/tmp/tools")
sys.path.insert(0, "/tmp/tools")
import numpy, pytest
sys.exit(pytest.main(["-q", "-m", "not slow", "-p", "no:cacheprovider", "--pyargs", %r]))
""" % module, files={"tools.zip": tools})
    assert " passed" in said and " failed" not in said


def test_pandas(run):
    assert run("""
import io
import numpy as np
import pandas as pd
frame = pd.DataFrame({"a": np.arange(1000), "b": np.arange(1000) % 7, "t": pd.date_range("2024", periods=1000, freq="h")})
grouped = frame.groupby("b")["a"].agg(["sum", "mean"])
assert grouped["sum"].sum() == frame["a"].sum()
assert frame.merge(grouped, left_on="b", right_index=True).shape == (1000, 5)
assert frame.set_index("t")["a"].resample("D").sum().sum() == 499500
text = io.StringIO()
frame.to_csv(text, index=False)
text.seek(0)
assert pd.read_csv(text).equals(pd.read_csv(io.StringIO(text.getvalue())))
frame.head(20).to_excel("x.xlsx", index=False)
assert pd.read_excel("x.xlsx")["a"].sum() == 190
assert frame.pivot_table(index="b", values="a", aggfunc="max").shape == (7, 1)
print("fine")
""") == "fine\n"


def test_pictures_and_documents(run):
    assert run("""
import io
import matplotlib.pyplot as plt
import numpy as np
import seaborn
import plotly.graph_objects as go
from PIL import Image
figure, axes = plt.subplots()
seaborn.lineplot(x=[1, 2, 3], y=[3, 1, 2], ax=axes)
picture = io.BytesIO()
figure.savefig(picture, format="png")
assert Image.open(io.BytesIO(picture.getvalue())).size[0] > 100
assert "plotly" in go.Figure(go.Bar(y=[1, 2])).to_html()
import docx, pptx, openpyxl, PyPDF2, py7zr, tabulate, xlrd
document = docx.Document()
document.add_paragraph("hello")
document.save("d.docx")
assert docx.Document("d.docx").paragraphs[0].text == "hello"
slides = pptx.Presentation()
slides.slides.add_slide(slides.slide_layouts[0]).shapes.title.text = "title"
slides.save("p.pptx")
from markitdown import MarkItDown
open("p.html", "w").write("<h1>hello</h1>")
assert MarkItDown().convert("p.html").text_content == "# hello"
assert MarkItDown().convert("d.docx").text_content == "hello"
with py7zr.SevenZipFile("a.7z", "w") as archive:
    archive.write("d.docx")
with py7zr.SevenZipFile("a.7z") as archive:
    assert archive.getnames() == ["d.docx"]
print(tabulate.tabulate([[1, 2]], headers=["a", "b"]).splitlines()[0])
""").startswith("  a    b")


def test_scipy_and_sympy(run):
    assert run("""
import scipy.integrate, scipy.optimize
print(round(scipy.integrate.quad(lambda x: x * x, 0, 3)[0], 6), round(scipy.optimize.brentq(lambda x: x - 2, 0, 5), 6))
""") == "9.0 2.0\n"
