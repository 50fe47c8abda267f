"""The examples in examples/: each ends with what it prints."""
import contextlib
import io
import os
import pathlib
import runpy
import shutil
import subprocess

import pytest

from vial.agentfly import env

ROOT = pathlib.Path(__file__).resolve().parents[3] / "examples"
MARK = "# prints:\n"
NEEDS = {"integration.py": "requests"}


def find():
    return sorted(str(path.relative_to(ROOT)) for origin in ROOT.iterdir() if origin.is_dir()
                  for path in origin.iterdir() if MARK in path.read_text(encoding="utf-8"))


def promised(path):
    lines = path.read_text(encoding="utf-8").split(MARK, 1)[1].splitlines()
    return "".join(line[2:] + "\n" for line in lines)


def test_every_origin_has_some():
    names = find()
    for origin in ("agentfly", "toolweaver", "nemo", "claw", "codemie"):
        assert [name for name in names if name.startswith(origin)]


@pytest.mark.parametrize("name", find())
def test_example(name, url, monkeypatch):
    path = ROOT / name
    monkeypatch.setenv("SANDBOX_URL", url)
    monkeypatch.setattr(env, "STEP_S", 1.0)  # instead of ten seconds
    if path.suffix == ".sh":
        if not shutil.which("jq") or not shutil.which("curl"):
            pytest.skip("curl and jq are not installed")
        said = subprocess.run([path], check=True, capture_output=True, text=True, env=os.environ).stdout
        said = "".join(line + "\n" for line in said.splitlines() if line)
    else:
        pytest.importorskip(NEEDS.get(path.name, "vial"))
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):
            runpy.run_path(str(path), run_name="__main__")
        said = shown.getvalue()
    assert said == promised(path)
