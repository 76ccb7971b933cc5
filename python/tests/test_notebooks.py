"""The notebooks run, cell after cell."""

import json
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))
#: The modules that notebooks need besides numpy and matplotlib, and the packages that have them.
NEEDS = {"stars": ("cosmic", "cosmic-popsynth"), "image": ("jax", "jax"), "stream": ("jax", "jax")}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run(path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import matplotlib.pyplot

    if path.stem in NEEDS:
        module, package = NEEDS[path.stem]
        pytest.importorskip(module, reason=f"the notebook {path.stem} needs `pip install {package}`")
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    assert len(cells) >= 3
    names: dict[str, object] = {}
    for cell in cells:
        exec(compile("".join(cell["source"]), path.name, "exec"), names)
    matplotlib.pyplot.close("all")


def test_there_are_notebooks() -> None:
    assert len(NOTEBOOKS) == 7 and NEEDS.keys() <= {path.stem for path in NOTEBOOKS}
