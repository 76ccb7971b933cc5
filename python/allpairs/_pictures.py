"""Pictures, pages that turn, and charts; all drawn by the library."""

from __future__ import annotations

import math
import os
import tempfile
from functools import partial
from html import escape
from io import BytesIO
from pathlib import Path
from typing import Any, Sequence

import numpy as np
from numpy.typing import NDArray

from . import _arrays, _native
from ._bodies import Bodies, in_units_of, measured, time_in_words
from ._errors import AllpairsError, Named, bad, flag, one_of
from ._quantities import plain
from ._simulation import LOG, Simulation

_AXES = {"xy": (0, 1), "xz": (0, 2), "yz": (1, 2)}
_PC = 648_000 / math.pi * 149_597_870_700.0
#: Units of lengths in metres.
_LENGTHS = {"m": 1.0, "au": 149_597_870_700.0, "pc": _PC, "kpc": 1e3 * _PC, "Mpc": 1e6 * _PC}


def _bodies(bodies: Bodies | Simulation) -> Bodies:
    if isinstance(bodies, Simulation):
        return bodies.bodies
    if not isinstance(bodies, Bodies):
        raise bad("bodies", f"must be Bodies or a Simulation, not {type(bodies).__name__}")
    return bodies


def image(
    bodies: Bodies | Simulation,
    axes: str | Sequence[str] = "xy",
    *,
    size: tuple[int, int] | None = None,
    colour_map: str = "inferno",
    select: str = "luminous",
    weight: str = "count",
    half_width: Any = None,
    centre: Any = None,
    decades: float = 3.0,
    path: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
) -> NDArray[np.uint8]:
    """The surface density as pixels, as ``allpairs render`` draws it.

    Parameters
    ----------
    bodies : Bodies or Simulation
    axes : str or sequence of str
        The panels from left to right: ``"xy"``, ``"xz"``, ``"yz"``.
    size : (int, int), optional
        Width and height in pixels; 800 a panel where not given.
    colour_map : str
        inferno, magma, plasma, viridis, cividis, cubehelix, turbo or grey.
    select : str
        Bodies to draw: luminous, all, gas, dark or star.
    weight : {"count", "mass"}
    half_width, centre : float and (3,), or texts or quantities, optional
        Region that is shown, in the unit of the positions; chosen from the bodies where not given.
    decades : float
        Powers of ten between the brightest and the darkest shades.
    path : path_like, optional
        A PNG file to write as well.

    Returns
    -------
    ndarray of uint8, shape (height, width, 3)
    """
    panels = [axes] if isinstance(axes, str) else list(axes)
    return _image(
        _bodies(bodies), panels, size, colour_map, select, weight, half_width, centre, decades, path,
        overwrite,
    )[0]


def _image(
    bodies: Bodies,
    axes: list[str],
    size: tuple[int, int] | None,
    colour_map: str,
    select: str,
    weight: str,
    half_width: Any,
    centre: Any,
    decades: float,
    path: str | os.PathLike[str] | None,
    overwrite: bool,
) -> tuple[NDArray[np.uint8], list[float], float]:
    axes = [one_of("axes", panel, _AXES) for panel in axes]
    width, height = size or (800 * len(axes), 800)
    middle = None if centre is None else _arrays.floats("centre", plain("centre", centre, "length", bodies.units))
    if middle is not None and middle.shape != (3,):
        raise bad("centre", f"must be three numbers, not an array of the shape {middle.shape}")
    half = None if half_width is None else measured("half_width", half_width, bodies.units, "length")
    return _native.image(
        bodies._native(), axes, [_arrays.count("size", width), _arrays.count("size", height)],
        colour_map, select, weight, half, None if middle is None else middle.tolist(), _arrays.number("decades", decades),
        None if path is None else os.fspath(path), flag("overwrite", overwrite),
    )


def render(
    bodies: Bodies | Simulation,
    axes: str | Sequence[str] = "xy",
    *,
    unit: str | None = None,
    size: int = 600,
    colour_map: str = "inferno",
    select: str = "luminous",
    weight: str = "count",
    half_width: Any = None,
    centre: Any = None,
    decades: float = 3.0,
) -> Any:
    """A matplotlib figure of the surface density, with axes, a scale bar and a colour bar.

    For other parameters see `image`, which needs no matplotlib.

    Parameters
    ----------
    bodies : Bodies or Simulation
    axes : str or sequence of str
        The panels: ``"xy"``, ``"xz"``, ``"yz"``.
    unit : str, optional
        Unit of the axes. Of bodies that have units m, au, pc, kpc or Mpc, to which lengths are
        converted, and where not given theirs if it is one of these; of others only a label.
    size : int
        Pixels of a panel.

    Returns
    -------
    matplotlib.figure.Figure
    """
    try:
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import Normalize
        from matplotlib.figure import Figure
    except ImportError as error:
        raise AllpairsError("render needs matplotlib (pip install matplotlib); `image` does not") from error
    shown = _bodies(bodies)
    panels = [axes] if isinstance(axes, str) else list(axes)
    factor = 1.0
    if shown.units is not None:
        length = shown.units.length
        if unit is None:
            unit = next((n for n, s in _LENGTHS.items() if abs(length / s - 1) < 1e-4), None)
        else:
            unit = one_of("unit", unit, _LENGTHS) if unit not in _LENGTHS else unit
            factor = length / _LENGTHS[unit]
    figure = Figure(figsize=(4.6 * len(panels) + 0.9, 4.4), layout="constrained")
    plots = figure.subplots(1, len(panels), squeeze=False)[0]
    middle, half = centre, half_width
    for plot, panel in zip(plots, panels):
        pixels, middle, half = _image(
            shown, [panel], (size, size), colour_map, select, weight, half, middle, decades, None, False
        )
        first, second = _AXES[one_of("axes", panel, _AXES)]
        x, y, width = factor * middle[first], factor * middle[second], factor * half
        plot.imshow(pixels, extent=(x - width, x + width, y - width, y + width))
        _scale_bar(plot, (x - 0.92 * width, y - 0.9 * width), width, unit)
        suffix = f" [{unit}]" if unit else ""
        plot.set_xlabel("xyz"[first] + suffix)
        plot.set_ylabel("xyz"[second] + suffix)
    plots[0].set_title(f"t = {time_in_words(shown.time, shown.units)}", loc="left", fontsize=10)
    ours = {"grey": "gray"}
    scale = ScalarMappable(Normalize(-decades, 0.0), ours.get(colour_map, colour_map))
    figure.colorbar(scale, ax=list(plots), label="lg surface density / brightest")
    # Notebooks show figures by themselves only after pyplot was imported.
    setattr(figure, "_repr_png_", partial(_png, figure))
    return figure


def _png(figure: Any) -> bytes:
    """Bytes of a figure as a PNG file."""
    file = BytesIO()
    figure.savefig(file, format="png")
    return file.getvalue()


def _scale_bar(plot: Any, corner: tuple[float, float], half: float, unit: str | None) -> None:
    """A bar of 1, 2 or 5 powers of ten, at most half a half width long."""
    power = 10.0 ** math.floor(math.log10(0.5 * half))
    length = max(digit * power for digit in (1, 2, 5) if digit * power <= 0.5 * half)
    x, y = corner
    plot.plot([x, x + length], [y, y], color="white", linewidth=2.5, solid_capstyle="butt")
    text = f"{length:g} {unit}" if unit else f"{length:g}"
    plot.text(x + 0.5 * length, y + 0.03 * half, text, color="white", ha="center", va="bottom", fontsize=9)


def in_one_unit(snapshots: Sequence[Bodies]) -> list[Bodies]:
    """Snapshots in the units of the first, as one picture shows them."""
    return [in_units_of("snapshots", bodies, snapshots[0].units) for bodies in snapshots]


class Page(Named):
    """A page that turns, zooms and plays bodies in a browser; notebooks show it."""

    html: str

    def __init__(self, html: str) -> None:
        self.html = html

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{escape(self.html)}" width="100%" height="560" style="border:0" '
            'sandbox="allow-scripts"></iframe>'
        )

    def __repr__(self) -> str:
        return f"<Page: {len(self.html) / 1e6:.1f} MB of HTML>"


def view(
    snapshots: Bodies | Simulation | Sequence[Bodies],
    path: str | os.PathLike[str] | None = None,
    *,
    title: str = "Allpairs",
    most_bodies: int = 20_000,
    overwrite: bool = False,
) -> Page:
    """A page that turns, zooms and plays snapshots, with no network access.

    Parameters
    ----------
    snapshots : Bodies, Simulation or sequence of Bodies
        In the order of time.
    path : path_like, optional
        HTML file to write as well.
    most_bodies : int
        Bodies to show of each, at most.
    """
    if isinstance(snapshots, (Bodies, Simulation)):
        snapshots = [_bodies(snapshots)]
    shown = [(bodies._native(), bodies.time) for bodies in in_one_unit([_bodies(each) for each in snapshots])]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "page.html"
        _native.view(shown, title, _arrays.count("most_bodies", most_bodies, 1), os.fspath(file), False)
        if path is not None:
            _native.view(shown, title, most_bodies, os.fspath(path), flag("overwrite", overwrite))
        return Page(file.read_text(encoding="utf-8"))


class Charts(Named, dict[str, str]):
    """Charts by name, as SVG; notebooks show them."""

    def _repr_html_(self) -> str:
        return "".join(f"<div>{svg}</div>" for svg in self.values())


def plot(
    log: Simulation | NDArray[Any] | str | os.PathLike[str],
    folder: str | os.PathLike[str] | None = None,
    *,
    overwrite: bool = False,
) -> Charts:
    """Charts of a run: energy drift, energies, virial ratio, Lagrangian radii and momentum.

    Parameters
    ----------
    log : Simulation, structured array or path_like
        A simulation that was integrated with `every`, its `log`, or a diagnostics.csv of the
        program.
    folder : path_like, optional
        Folder to write them to as PNG and SVG as well.

    Returns
    -------
    Charts
        SVG texts by the charts' names.
    """
    if isinstance(log, (str, os.PathLike)):
        text, title, units = Path(log).read_text(encoding="utf-8"), os.fspath(log), None
    else:
        units = log._settings["units"] if isinstance(log, Simulation) else None
        rows = log.log if isinstance(log, Simulation) else np.atleast_1d(log)
        if rows.dtype != LOG:
            raise bad("log", "must be a Simulation, its `log`, or the path of a diagnostics.csv")
        if not len(rows):
            raise bad("log", "is empty: integrate with `every` to record one")
        lines = [",".join(map(repr, row.item())) for row in rows]
        text = "\n".join([",".join(LOG.names or ()), *lines, ""])
        title = f"{len(rows)} looks"
    if folder is not None:
        Path(folder).mkdir(parents=True, exist_ok=True)
    target = None if folder is None else os.fspath(folder)
    return Charts(_native.charts(text, title, units, target, flag("overwrite", overwrite)))
