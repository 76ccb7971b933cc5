"""The part of the package that is Rust (`native/`); users see what is made of it."""

import os
from typing import Callable, final

import numpy as np
from numpy.typing import NDArray

from ._simulation import Settings as _Settings

_Floats = NDArray[np.float64]
#: Positions, velocities, masses, ids and kinds.
_Arrays = tuple[_Floats, _Floats, _Floats, NDArray[np.uint64], NDArray[np.uint8]]

__all__ = [
    "InPlace",
    "Simulation",
    "__version__",
    "accelerations",
    "charts",
    "column_of_table",
    "convert",
    "defect",
    "devices",
    "energy",
    "field_at",
    "generate",
    "generators",
    "image",
    "kept_run",
    "load",
    "log_columns",
    "measure",
    "names",
    "odd_motion",
    "potentials",
    "pull",
    "run_program",
    "save",
    "shown_time",
    "stages",
    "sums",
    "sums_in_place",
    "trajectory",
    "trajectory_pull",
    "units",
    "view",
    "xla_handlers",
]

__version__: str

def names() -> dict[str, list[str]]: ...
def odd_motion(virial_ratio: float) -> str | None: ...
def devices() -> tuple[list[tuple[str, str]], str | None]: ...
def run_program(arguments: list[str]) -> int: ...
def defect() -> None: ...
def generate(
    name: str,
    seed: int,
    of: str | None,
    masses: str | None,
    parameters: list[tuple[str, float | str]],
    mass: str | None,
    radius: str | None,
    half_mass_radius: str | None,
    units: str | None,
) -> tuple[_Arrays, float, str | None]: ...
def generators() -> list[tuple[str, str, list[tuple[str, float, str]]]]: ...
def units(text: str) -> tuple[str, float, float, float, float, str]: ...
def shown_time(units: str, typical: float, asked: str | None) -> tuple[str, float]: ...
def measure(argument: str, text: str, dimension: str, units: str | None) -> float: ...
def convert(all: _Arrays, time: float, from_: str, to: str, /) -> tuple[_Arrays, float, str]: ...
def load(
    path: str | os.PathLike[str], name: str | None, physical: str | None
) -> tuple[_Arrays, float, str | None, str, list[str]]: ...
def save(
    path: str | os.PathLike[str],
    all: _Arrays,
    time: float,
    units: str | None,
    name: str | None,
    overwrite: bool,
) -> list[str]: ...
def accelerations(
    pos: _Floats,
    m: _Floats,
    eps: float,
    g: float,
    accuracy: str | None,
    device: str,
    kernel: str | None,
    vel: _Floats | None,
) -> tuple[_Floats, _Floats | None, str | None]: ...
def pull(
    pos: _Floats,
    m: _Floats,
    lam: _Floats,
    eps: float,
    g: float,
    accuracy: str,
    masses: bool,
    softening: bool,
    device: str,
) -> tuple[_Floats, _Floats, _Floats | None, float | None]: ...
def stages(integrator: str) -> list[tuple[bool, float]]: ...
def trajectory(
    pos: _Floats,
    vel: _Floats,
    m: _Floats,
    dt: float,
    steps: int,
    eps: float,
    g: float,
    scheme: str,
    accuracy: str,
) -> tuple[_Floats, _Floats]: ...
def trajectory_pull(
    pos: _Floats,
    vel: _Floats,
    m: _Floats,
    dt: float,
    steps: int,
    lam_pos: _Floats,
    lam_vel: _Floats,
    eps: float,
    g: float,
    scheme: str,
    accuracy: str,
    device: str,
) -> tuple[_Floats, _Floats, _Floats, float, float, float]: ...
def sums(
    name: str, double: bool, rounded: bool, shape: tuple[int, int], arguments: list[_Floats], asked: list[int]
) -> list[_Floats]: ...
def sums_in_place(
    name: str,
    double: bool,
    rounded: bool,
    shape: tuple[int, int],
    arguments: list[int],
    results: list[int],
    asked: list[int],
    device: str,
    stream: int,
) -> None: ...
def xla_handlers() -> list[tuple[str, str, int]]: ...
def potentials(pos: _Floats, m: _Floats, eps: float, g: float) -> _Floats: ...
def field_at(
    points: _Floats,
    pos: _Floats,
    m: _Floats,
    eps: float,
    g: float,
    accuracy: str | None,
    device: str,
) -> tuple[_Floats, _Floats]: ...
def energy(all: _Arrays, eps: float, g: float) -> tuple[float, float]: ...
def image(
    all: _Arrays,
    axes: list[str],
    size: list[int],
    colour_map: str,
    select: str,
    weight: str,
    half_width: float | None,
    centre: list[float] | None,
    decades: float,
    path: str | None,
    overwrite: bool,
) -> tuple[NDArray[np.uint8], list[float], float]: ...
def view(
    snapshots: list[tuple[_Arrays, float]], title: str, most_bodies: int, path: str, overwrite: bool
) -> None: ...
def charts(
    log: str, subtitle: str, units: str | None, folder: str | None, overwrite: bool
) -> list[tuple[str, str]]: ...

def log_columns(units: str | None, time: str | None) -> tuple[list[str], list[float]]: ...
def column_of_table(heading: str, units: str | None) -> tuple[str, float]: ...
def kept_run(folder: str) -> tuple[_Settings, bytes]: ...
@final
class InPlace:
    def __new__(
        cls,
        n: int,
        double: bool,
        device: str,
        kernel: str | None,
        extent: tuple[float, float, float],
        eps: float,
        g: float,
    ) -> InPlace: ...
    def buffers(self) -> tuple[int, int, int]: ...
    def prepare(
        self, extent: tuple[float, float, float], eps: float, g: float
    ) -> tuple[float, float, float, str] | None: ...
    def accelerate(self) -> None: ...
    def hold_up(self, stream: int) -> None: ...

@final
class Simulation:
    @staticmethod
    def begin(
        all: _Arrays, settings: _Settings, saved: bytes | None = None
    ) -> tuple[Simulation, _Settings, str, list[tuple[str, str, str]], list[str]]: ...
    def clock(self) -> tuple[float, int, float]: ...
    def followed_from(self) -> float | None: ...
    def interactions(self) -> float: ...
    def bodies(self) -> tuple[_Arrays, float]: ...
    def origin(self) -> list[list[float]] | None: ...
    def energy(self) -> tuple[float, float, float]: ...
    def sample(self, bound: float) -> tuple[int, list[float], bool]: ...
    def drifts(self) -> tuple[tuple[float, float] | None, tuple[float, float, str] | None]: ...
    def outrun(self) -> tuple[float, float, float, str] | None: ...
    def unwatched(self) -> str | None: ...
    @staticmethod
    def columns() -> list[str]: ...
    def step(self, steps: int, bound: float) -> int: ...
    def go_on(
        self,
        time: float,
        exactly: bool,
        bounds: tuple[float, int, float],
        look: Callable[[float], None],
    ) -> None: ...
    def go_back(self, time: float) -> None: ...
    def at(self, time: float) -> tuple[_Arrays, float]: ...
    def due(
        self, ids: list[int]
    ) -> list[
        tuple[
            int,
            float,
            list[float],
            list[float],
            float | None,
            tuple[int, float, float, float, float] | None,
        ]
        | None
    ]: ...
    def change(
        self,
        changes: list[tuple[int, float | None, list[float] | None, float | None, bool]],
    ) -> None: ...
    def events(
        self,
    ) -> list[
        tuple[
            int, float, str, tuple[int, int], tuple[float, float], list[float], float, str
        ]
    ]: ...
    def stopped_by(self) -> str | None: ...
    def radii(self) -> list[float] | None: ...
    def number(self) -> int: ...
    def kick(self, ids: NDArray[np.uint64] | None, dv: _Floats) -> None: ...
    def set(
        self,
        ids: NDArray[np.uint64],
        m: _Floats | None,
        pos: _Floats | None,
        vel: _Floats | None,
        radii: _Floats | None,
    ) -> None: ...
    def add(
        self, all: _Arrays, keeps_ids: bool, radii: _Floats | None
    ) -> NDArray[np.uint64]: ...
    def remove(self, ids: NDArray[np.uint64]) -> None: ...
    def brought(self) -> tuple[float, float, list[float], list[float]]: ...
    def saved(self) -> bytes: ...
    @staticmethod
    def bodies_of(saved: bytes) -> _Arrays: ...
    def close(self) -> None: ...
    def accelerations(self) -> _Floats: ...
