"""Other people's programs, driving sandboxes through ours."""
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples" / "smolagents"))


@pytest.fixture(scope="session")
def sandbox():
    import vial
    with vial.Sandbox() as made:
        yield made
