"""Pictures, pages and charts."""

from pathlib import Path

import numpy as np
import pytest

import allpairs as ap


def test_images(tmp_path: Path) -> None:
    bodies = ap.disk_galaxy(500, seed=1)
    pixels = ap.image(bodies, ["xy", "xz"], size=(200, 100), path=tmp_path / "a.png")
    assert pixels.shape == (100, 200, 3) and pixels.dtype == np.uint8 and pixels.max() > 100
    assert (tmp_path / "a.png").read_bytes()[:4] == b"\x89PNG"
    with pytest.raises(ap.FileError):
        ap.image(bodies, size=(20, 20), path=tmp_path / "a.png")
    for wrong in ({"axes": "xx"}, {"colour_map": "red"}, {"select": "planets"}, {"weight": "x"}):
        with pytest.raises(ap.ArgumentError):
            ap.image(bodies, **wrong)  # type: ignore[arg-type]


def test_figures() -> None:
    pytest.importorskip("matplotlib")
    figure = ap.render(ap.plummer(200, mass="1e3Msun", radius="1pc"), ["xy", "xz"], size=100)
    assert len(figure.axes) == 3 and figure.axes[0].get_xlabel() == "x [pc]"
    assert figure._repr_png_().startswith(b"\x89PNG")
    bodies = ap.plummer(200, mass="1e3Msun", radius="1pc")
    in_pc, in_au = (ap.render(bodies, unit=unit, half_width=2.5, size=50).axes[0] for unit in ("pc", "au"))
    assert in_au.get_xlabel() == "x [au]"
    assert in_au.get_xlim()[1] == pytest.approx(648_000 / np.pi * in_pc.get_xlim()[1])
    bar, *_ = in_pc.lines
    assert np.diff(bar.get_xdata()) == pytest.approx(1.0) and in_pc.texts[0].get_text() == "1 pc"
    with pytest.raises(ap.ArgumentError, match="`unit`"):
        ap.render(bodies, unit="parsec")
    assert ap.render(ap.plummer(100), unit="r", size=50).axes[0].get_xlabel() == "x [r]"


def test_pages(tmp_path: Path) -> None:
    page = ap.view([ap.plummer(50), ap.plummer(50)], tmp_path / "a.html", title="two & two")
    assert (tmp_path / "a.html").read_text() == page.html and "two &amp; two" in page.html
    assert "srcdoc" in page._repr_html_()


def test_charts(tmp_path: Path) -> None:
    simulation = ap.Simulation(ap.plummer(50), softening=0.1, dt=0.05, device="cpu")
    with pytest.raises(ap.ArgumentError, match="`log` is empty"):
        ap.plot(simulation)
    simulation.integrate(1.0, every=0.25)
    charts = ap.plot(simulation, tmp_path / "charts")
    assert charts and all(svg.lstrip().startswith("<svg") for svg in charts.values())
    files = {path.stem for path in (tmp_path / "charts").iterdir()}
    assert files == set(charts)
    assert list(ap.plot(simulation.log)) == list(charts)
