"""Direct-summation gravitational N-body simulation, on CPUs and NVIDIA GPUs.

Examples
--------
>>> import allpairs as ap
>>> sim = ap.Simulation(ap.plummer(1000, seed=1), softening=0.05, dt=0.01)
>>> sim.integrate(1.0).t
1.0
"""

from ._bodies import Bodies, Energy, Kind, Units, concatenate, convert, load, save
from ._errors import (
    AllpairsError,
    ArgumentError,
    ClosedError,
    ComputeError,
    DeviceError,
    FileError,
    InternalError,
)
from ._forces import (
    Pull,
    TrajectoryPull,
    accelerations,
    circular_velocity,
    field_at,
    potential,
    pull,
    pull_leapfrog,
)
from ._generators import (
    cold_collapse,
    disk_galaxy,
    figure_eight,
    galaxy_collision,
    generators,
    hernquist,
    kepler_ring,
    king,
    make,
    many_galaxies,
    plummer,
    solar_system,
    sun_earth,
    sun_earth_moon,
    two_body,
    uniform_sphere,
)
from ._integrators import (
    DampedEuler,
    Euler,
    Hermite4,
    Hermite6,
    Integrator,
    Leapfrog,
    LeapfrogDKD,
    Yoshida4,
    Yoshida6,
)
from ._native import __version__
from ._orbits import Elements, orbit
from ._pictures import Charts, Page, image, plot, render, view
from ._scheduled import Change, DueBody, Partner
from ._series import Series, movie, series
from ._simulation import LOG, Batch, Brought, Simulation, batch, resume


def devices() -> dict[str, str]:
    """GPUs of this machine by the name that `device` takes; empty where there is none."""
    from . import _native

    return dict(_native.devices()[0])


def kernels() -> list[str]:
    """Names of all kernels, as ``allpairs list`` explains them."""
    from . import _native

    return _native.names()["kernel"]


__all__ = [
    "LOG",
    "AllpairsError",
    "ArgumentError",
    "Batch",
    "Bodies",
    "Brought",
    "Change",
    "Charts",
    "ClosedError",
    "ComputeError",
    "DampedEuler",
    "DeviceError",
    "DueBody",
    "Elements",
    "Energy",
    "Euler",
    "FileError",
    "Hermite4",
    "Hermite6",
    "Integrator",
    "InternalError",
    "Kind",
    "Leapfrog",
    "LeapfrogDKD",
    "Page",
    "Partner",
    "Pull",
    "Series",
    "Simulation",
    "TrajectoryPull",
    "Units",
    "Yoshida4",
    "Yoshida6",
    "__version__",
    "accelerations",
    "batch",
    "circular_velocity",
    "cold_collapse",
    "concatenate",
    "convert",
    "devices",
    "disk_galaxy",
    "field_at",
    "figure_eight",
    "galaxy_collision",
    "generators",
    "hernquist",
    "image",
    "kepler_ring",
    "kernels",
    "king",
    "load",
    "make",
    "many_galaxies",
    "movie",
    "orbit",
    "plot",
    "plummer",
    "potential",
    "pull",
    "pull_leapfrog",
    "render",
    "resume",
    "save",
    "series",
    "solar_system",
    "sun_earth",
    "sun_earth_moon",
    "two_body",
    "uniform_sphere",
    "view",
]
