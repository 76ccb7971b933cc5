"""Initial conditions: one function for each generator of the program, and `make` for all by name."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _arrays, _native
from ._bodies import Bodies, Units, _Made
from ._errors import bad, flag, one_of
from ._quantities import si, unit_of


#: Options that are lengths: they may have a unit.
_LENGTHS = ("tidal-radius", "width", "pericentre", "separation", "closest-binary", "widest-binary")


def _text(argument: str, value: Any, dimension: str) -> str | None:
    """A length or a mass as the library reads it; quantities too."""
    if value is None or isinstance(value, str):
        return value
    if unit_of(value) is not None:
        number = _arrays.number(argument, si(argument, value, dimension))
        return f"{number!r}{'kg' if dimension == 'mass' else 'm'}"
    raise bad(argument, f"must have a unit, such as '1e5 Msun' or '3 pc', got {value!r}")


def make(
    name: str,
    *,
    seed: int = 0,
    of: str | None = None,
    masses: str | None = None,
    mass: Any = None,
    radius: Any = None,
    half_mass_radius: Any = None,
    units: str | Units | None = None,
    **options: Any,
) -> Bodies:
    """Initial conditions by name, as ``allpairs ic`` makes them: the same bits for the same options.

    Parameters
    ----------
    name : str
        ``"plummer"``, ``"king"``, ``"hernquist"``, ``"uniform-sphere"``, ``"cold-collapse"``,
        ``"disk-galaxy"``, ``"galaxy-collision"``, ``"kepler-ring"``, ``"two-body"``,
        ``"figure-eight"``, ``"sun-earth"``, ``"sun-earth-moon"``, ``"solar-system"`` or
        ``"many-galaxies"``.
    seed : int
        Seed of the random numbers.
    of : str, optional
        Initial conditions that make each system of many-galaxies.
    masses : {"kroupa", "salpeter", "flat"}, optional
        Mass function of the stars of a sphere, with the options `least_mass`, `greatest_mass`,
        `segregation`, and `binaries` with `closest_binary` and `widest_binary`; equal masses where
        not given.
    mass, radius : str or Quantity, optional
        Size of a model in N-body units: the mass and the length that are 1 in it, such as
        ``"1e5 Msun"`` and ``"3 pc"``. Bodies are then in pc, solar masses and km/s, or `units`.
    half_mass_radius : str or Quantity, optional
        Instead of `radius`: the radius that holds half of the mass of the bodies that are made.
    units : str or Units, optional
        Units to make them in.
    **options : float, str or Quantity
        Options of the generator, such as ``bodies=1000`` or ``w0=6``; see `generators`. Lengths, such as
        ``tidal_radius``, are in that which is 1 in the model, or with `radius` have units, as ``"5 pc"``.

    Returns
    -------
    Bodies

    Raises
    ------
    ArgumentError
        An unknown name or option (with the nearest), or a value out of range.
    """
    name = one_of("name", name, _native.names()["generator"])
    if of is not None:
        of = one_of("of", of, _native.names()["generator"])
    known = {option for _, _, parameters in _native.generators() for option, _, _ in parameters}
    given: list[tuple[str, Any]] = []
    for option, value in options.items():
        spelled = one_of("options", option, sorted(known))
        if spelled == "moon" and isinstance(value, bool):
            value = float(value)
        is_length = spelled in _LENGTHS and unit_of(value) is not None
        number = _text(option, value, "length") if is_length or isinstance(value, str) else _arrays.number(option, value)
        given.append((spelled, number))
    text = units.text if isinstance(units, Units) else units
    arrays, time, recorded = _native.generate(
        name,
        _arrays.count("seed", seed),
        of,
        masses,
        given,
        _text("mass", mass, "mass"),
        _text("radius", radius, "length"),
        _text("half_mass_radius", half_mass_radius, "length"),
        text,
    )
    bodies = Bodies._of(arrays, time, recorded, _Made(name, of))
    bodies._group = _groups(name, len(bodies), dict(given))
    return bodies


def _groups(name: str, n: int, options: dict[str, Any]) -> NDArray[np.int64]:
    """The system that each body belongs to: generators put the bodies of a system together, system by system."""
    defaults = dict((option, value) for made, _, all in _native.generators() if made == name for option, value, _ in all)
    if name == "many-galaxies":
        systems = int(options.get("systems", defaults["systems"]))
        return np.repeat(np.arange(systems, dtype=np.int64), n // systems)
    group = np.zeros(n, dtype=np.int64)
    if name == "galaxy-collision" and n:
        # Of the second galaxy are as many bodies as its share of the mass, rounded down, but not all.
        ratio = float(options.get("mass-ratio", defaults["mass-ratio"]))
        group[n - min(int(ratio / (1.0 + ratio) * n), n - 1) :] = 1
    return group


def generators() -> dict[str, dict[str, float]]:
    """Names of all initial conditions, with their options and what these are where not given."""
    return {
        name: {option.replace("-", "_"): default for option, default, _ in parameters}
        for name, _, parameters in _native.generators()
    }


def plummer(n: int, *, seed: int = 0, **size: Any) -> Bodies:
    """Plummer sphere of `n` bodies in equilibrium: G = M = 1, energy −1/4, virial radius 1.

    `size` is `mass`, `radius` (or `half_mass_radius`), `units`, `masses` and what goes with them, of
    `make`.
    """
    return make("plummer", bodies=n, seed=seed, **size)


def king(
    n: int, *, w0: float = 6.0, tidal_radius: Any = 0.0, seed: int = 0, **size: Any
) -> Bodies:
    """King model of `n` bodies with the central potential `w0`, in equilibrium, virial radius 1.

    Or with its edge at `tidal_radius`, if that is not 0: a number, or with `radius` a length such as
    ``"12 pc"``.
    """
    return make("king", bodies=n, w0=w0, tidal_radius=tidal_radius, seed=seed, **size)


def hernquist(n: int, *, seed: int = 0, **size: Any) -> Bodies:
    """Hernquist sphere of `n` bodies in equilibrium, virial radius 1."""
    return make("hernquist", bodies=n, seed=seed, **size)


def uniform_sphere(n: int, *, virial_ratio: float = 0.0, seed: int = 0, **size: Any) -> Bodies:
    """Homogeneous sphere of radius 1, at rest unless a virial ratio 2K/|U| is given."""
    return make("uniform-sphere", bodies=n, virial_ratio=virial_ratio, seed=seed, **size)


def cold_collapse(n: int, *, virial_ratio: float = 0.05, seed: int = 0, **size: Any) -> Bodies:
    """Sphere of density 1/r that falls together."""
    return make("cold-collapse", bodies=n, virial_ratio=virial_ratio, seed=seed, **size)


def disk_galaxy(n: int, *, toomre_q: float = 1.5, seed: int = 0, **size: Any) -> Bodies:
    """Spiral galaxy of `n` bodies in equilibrium: exponential disk, bulge and dark halo."""
    return make("disk-galaxy", bodies=n, toomre_q=toomre_q, seed=seed, **size)


def galaxy_collision(
    n: int,
    *,
    mass_ratio: float = 1.0,
    eccentricity: float = 1.0,
    pericentre: Any = 4.0,
    separation: Any = 30.0,
    inclination: float = 60.0,
    seed: int = 0,
    **size: Any,
) -> Bodies:
    """Two disk galaxies that meet; angles in degrees. `Bodies.group` is 0 in the first and 1 in the second.

    Lengths are in scale lengths of the first disk, or with `radius` have units, as ``"12 kpc"``.
    """
    return make(
        "galaxy-collision",
        bodies=n,
        mass_ratio=mass_ratio,
        eccentricity=eccentricity,
        pericentre=pericentre,
        separation=separation,
        inclination=inclination,
        seed=seed,
        **size,
    )


def kepler_ring(
    n: int, *, mass_ratio: float = 0.0, width: Any = 0.5, seed: int = 0, **size: Any
) -> Bodies:
    """Central mass with a ring of bodies on circular orbits, period 2π at radius 1."""
    return make("kepler-ring", bodies=n, mass_ratio=mass_ratio, width=width, seed=seed, **size)


def two_body(*, mass_ratio: float = 1.0, eccentricity: float = 0.0, **size: Any) -> Bodies:
    """Binary at apocentre, period 2π; with an eccentricity of 1 or more, at a pericentre of 1."""
    return make("two-body", mass_ratio=mass_ratio, eccentricity=eccentricity, **size)


def figure_eight(**size: Any) -> Bodies:
    """Three bodies of mass 1 that chase each other, period 6.3259."""
    return make("figure-eight", **size)


def sun_earth(*, units: str | Units | None = None) -> Bodies:
    """Sun and Earth on 1 January 2000, in au and solar masses with G = 1: a year is 2π."""
    return make("sun-earth", units=units)


def sun_earth_moon(*, units: str | Units | None = None) -> Bodies:
    """Sun, Earth and Moon on 1 January 2000, in au and solar masses with G = 1."""
    return make("sun-earth-moon", units=units)


def solar_system(
    *, epoch: float | None = None, moon: bool = False, units: str | Units | None = None
) -> Bodies:
    """Sun, planets and Pluto by JPL's DE423 at a Julian date (TDB), J2000 where not given.

    In au and solar masses with G = 1, unless `units` are given; ids are 0 Sun, 1 Mercury, …,
    9 Pluto. With `moon`, Earth and Moon are two bodies.
    """
    given: dict[str, Any] = {} if epoch is None else {"epoch": epoch}
    return make("solar-system", moon=float(flag("moon", moon)), units=units, **given)


def many_galaxies(
    systems: int = 8,
    *,
    each: int | None = None,
    of: str | None = None,
    spacing: float = 20.0,
    seed: int = 0,
    **options: Any,
) -> Bodies:
    """Systems side by side, each made by the generator `of` with these options. `Bodies.group` numbers them."""
    if each is not None:
        options["each"] = each
    return make("many-galaxies", systems=systems, spacing=spacing, of=of, seed=seed, **options)
