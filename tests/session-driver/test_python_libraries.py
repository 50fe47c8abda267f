"""The Python driver with libraries that people plot and compute with, and other Pythons."""
import base64
import glob
import os
import subprocess
import sys
import tempfile
import time
import unittest

from test_python import VIAL, Case, start


def data_python():
    """The python-data environment's interpreter, or why there is none."""
    try:
        lines = subprocess.run([VIAL, "env", "show", "python-data"], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, timeout=20).stdout.decode().splitlines()
    except (OSError, subprocess.TimeoutExpired):
        return None, "%s does not answer" % VIAL
    tool = dict(line.split("\t", 1) for line in lines if "\t" in line).get("tool")
    if not tool or not os.access(tool, os.X_OK):
        return None, "the environment python-data is not built"
    return tool, None


class Libraries(Case):
    @classmethod
    def setUpClass(cls):
        tool, why = data_python()
        if why:
            raise unittest.SkipTest(why)
        cls.folder_of_class = tempfile.TemporaryDirectory(prefix="vial-session-")
        cls.addClassCleanup(cls.folder_of_class.cleanup)
        cls.session = start(tool, cwd=cls.folder_of_class.name)
        cls.addClassCleanup(cls.session.close)

    def setUp(self):
        self.session = type(self).session

    def is_png(self, text):
        return base64.b64decode(text).startswith(b"\x89PNG\r\n")

    def test_numpy(self):
        self.assertEqual(self.value("import numpy as np\nnp.float64(0.5)"), 0.5)
        self.assertEqual(self.value("[np.int64(3), np.bool_(True), np.float32(0.5)]"), [3, True, 0.5])
        self.assertEqual(self.text("np.arange(3)"), "array([0, 1, 2])")
        self.assertEqual(self.text("np.float64('nan')"), "np.float64(nan)")
        self.assertEqual(self.calls_with("cb(np.int64(3))"), 3)

    def calls_with(self, code):
        return self.value(code, handlers={"cb": lambda value: value})

    def test_pandas(self):
        told = self.run_step("import pandas as pd\npd.DataFrame({'a': [1, 2], 'b': ['x', None]})")
        told = told.result["value"]
        self.assertEqual(told["type"], "DataFrame")
        self.assertIn("<table", told["data"]["text/html"])
        self.assertEqual(told["data"]["application/json"],
                         {"columns": ["a", "b"], "index": [0, 1], "data": [[1, "x"], [2, None]]})
        told = self.run_step("pd.Series([1, 2], name='s')").result["value"]
        self.assertEqual(told["data"]["application/json"]["data"], [1, 2])
        step = self.run_step("display(pd.DataFrame({'a': [1]}))\nfrom IPython.display import HTML, display\n"
                             "display(HTML('<b>'))")
        self.assertIn("text/html", step.displays[0])
        self.assertEqual(step.displays[1]["text/html"], "<b>")

    def test_matplotlib(self):
        step = self.run_step("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nNone")
        self.assertEqual([list(data) for data in step.displays], [["image/png"]])
        self.assertTrue(self.is_png(step.displays[0]["image/png"]))
        self.assertEqual(self.value("plt.get_fignums()"), [])
        step = self.run_step("plt.plot([1])\nplt.show()\nplt.figure()\nplt.show()\nplt.close('all')\nNone")
        self.assertEqual((len(step.displays), step.stderr), (2, ""))
        step = self.run_step("import matplotlib\nmatplotlib.use('Agg')\nfig, ax = plt.subplots()\nfig")
        self.assertEqual(step.displays, [])
        self.assertTrue(self.is_png(step.result["value"]["data"]["image/png"]))
        step = self.run_step("plt.plot([1])\nNone", figures=False)
        self.assertEqual(step.displays, [])
        step = self.run_step("plt.plot([2])\n1 / 0")
        self.assertEqual(len(step.displays), 1)

    def test_plotly(self):
        step = self.run_step("import plotly.graph_objects as go\nf = go.Figure(go.Bar(y=[1, 2]))\nf.show()\nf")
        data = step.result["value"]["data"]
        self.assertEqual(data["application/vnd.plotly.v1+json"]["data"][0]["type"], "bar")
        self.assertIn("<div", data["text/html"])
        self.assertEqual(step.displays[0]["application/vnd.plotly.v1+json"],
                         data["application/vnd.plotly.v1+json"])

    def test_pillow(self):
        step = self.run_step("from PIL import Image\ni = Image.new('RGB', (2, 2))\ni.show()\ni")
        self.assertTrue(self.is_png(step.result["value"]["data"]["image/png"]))
        self.assertTrue(self.is_png(step.displays[0]["image/png"]))

    def test_sympy(self):
        self.assertIn("text/latex", self.run_step(
            "import sympy\nsympy.Symbol('x') ** 2").result["value"]["data"])


class Versions(unittest.TestCase):
    def test_other_pythons(self):
        """The same, in a few words, with every Python that is here."""
        found = sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python3")))
        pythons = [path for path in found
                   if int(path.split("/")[-3].split(".")[1]) >= 8]
        for python in pythons or [sys.executable]:
            with self.subTest(python), start(python) as session:
                self.assertEqual(session.run("x = [i for i in range(3)]\nreturn await cb(x)",
                                             mode="function", handlers={"cb": lambda x: x}
                                             ).result["value"]["json"], [0, 1, 2])
                self.assertIn("NameError", str(session.run("i").result))
                session.start("while True: pass")
                time.sleep(0.1)
                self.assertTrue(session.finish_interrupted().result["interrupted"])
                step = session.run("open('/etc/passwd')", policy={"profile": "default"})
                self.assertEqual(step.result["exception"]["type"], "PermissionError")
                step = session.run("import os")
                self.assertEqual(step.result["exception"]["message"], "Import 'os' not allowed")
                self.assertEqual(session.run("exit(3)").result["exit_code"], 3)
