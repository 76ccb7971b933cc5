"""The Python code of the documents runs, block after block."""

import re
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["README.md", "docs/python.md", "docs/gradients.md", "docs/amuse.md", "python/README.md"])
def test_code_of_documents_runs(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / name).read_text(), re.M | re.S)
    assert blocks, name
    if any("import jax" in block for block in blocks):
        pytest.importorskip("jax", reason="JAX is not installed")
    names: dict[str, object] = {}
    with warnings.catch_warnings():
        # An example with steps that are too long is a bad one.
        warnings.filterwarnings("error", message=".*the energy has drifted")
        for block in blocks:
            exec(compile(block, name, "exec"), names)
