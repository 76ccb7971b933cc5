"""Arguments that may have units: here alone a quantity becomes numbers.

A quantity is a value of astropy, unyt or pint, or of any class like theirs. It has a unit, and a method that
converts it. Everything else that has a unit is refused by the name of the argument, and nothing loses its unit
on the way.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, Callable, Iterator

import numpy as np

from . import _native
from ._errors import ArgumentError, bad, one_of

if TYPE_CHECKING:
    from ._bodies import Units

#: Units of SI by dimension, and the powers of length, mass and time that they are made of.
_SI: dict[str, tuple[str, tuple[int, int, int]]] = {
    "length": ("m", (1, 0, 0)),
    "mass": ("kg", (0, 1, 0)),
    "time": ("s", (0, 0, 1)),
    "speed": ("m/s", (1, 0, -1)),
    "acceleration": ("m/s**2", (1, 0, -2)),
    "jerk": ("m/s**3", (1, 0, -3)),
    "potential": ("m**2/s**2", (2, 0, -2)),
    "constant of gravity": ("m**3/(kg*s**2)", (3, -1, -2)),
    "angle": ("rad", (0, 0, 0)),
}
#: Units of results of the functions on arrays, by dimension, for numbers in pc, Msun and km/s.
_RESULTS = {
    "speed": "km/s",
    "acceleration": "km**2/(s**2*pc)",
    "jerk": "km**3/(s**3*pc**2)",
    "potential": "km**2/s**2",
}
#: Units of angles in texts, in radians.
_ANGLES = {
    "rad": 1.0,
    **dict.fromkeys(("deg", "°"), math.pi / 180.0),
    "arcmin": math.pi / 10_800.0,
    "arcsec": math.pi / 648_000.0,
}
#: Dimensions of which a text such as "0.5 pc" is read.
_TEXTS = ("length", "mass", "time")


def unit_of(value: Any) -> str | None:
    """The unit of a value or of the first element of a list that has one, in words; None if there is none."""
    return next((unit for unit in map(_own_unit, _leaves(value)) if unit is not None), None)


def _own_unit(value: Any) -> str | None:
    """The unit of a value that is no list, in words."""
    if value is None or isinstance(value, (str, int, float)):
        return None
    named: Any = getattr(value, "attrs", None)  # of h5py and xarray
    for name in ("unit", "units"):
        unit = getattr(value, name, None)
        if unit is None and hasattr(named, "get"):
            unit = named.get(name)
        # A number of another library may have such an attribute, and no unit.
        if unit is None or callable(unit) and not hasattr(unit, "is_equivalent"):
            continue
        text = unit.decode(errors="replace") if isinstance(unit, bytes) else str(unit)
        return None if text in ("", "dimensionless", "NoUnit()", "1") else text
    return None


def _listed(value: Any) -> Any:
    """Elements of a list, and of an array of objects, which may be quantities; None for everything else."""
    if isinstance(value, (list, tuple)):
        return value
    is_array = getattr(value, "dtype", None) == object and hasattr(value, "tolist")
    elements = value.tolist() if is_array else None
    return elements if isinstance(elements, list) else None


def _leaves(value: Any) -> Iterator[Any]:
    """The elements of nested lists, and a value that is no list itself. Of a list of numbers alone one stands for all."""
    elements = _listed(value)
    if elements is None:
        yield value
    elif {int, float}.issuperset(map(type, elements)):
        yield next(filter(None, elements), 0)
    else:
        for element in elements:
            yield from _leaves(element)


def looked_at(argument: str, value: Any) -> None:
    """Refuses values that would lose more than a unit as numbers: the mask of masked ones, and the frame of coordinates."""
    for leaf in _leaves(value):
        if isinstance(leaf, (str, int, float)):
            continue
        kind = type(leaf).__name__
        mask = getattr(leaf, "mask", None)  # a method of pandas is called so, too
        if isinstance(mask, (bool, np.bool_, np.ndarray)) and np.any(mask):
            raise bad(argument, f"has masked elements ({kind}): fill them, or leave the masked bodies out")
        if hasattr(leaf, "represent_as"):  # astropy's coordinates
            way = ".cartesian.xyz.T" if hasattr(leaf, "cartesian") else ".to_cartesian().xyz.T"
            raise bad(argument, f"is a {kind}: give its numbers with their unit, `{way}`")


def plain(argument: str, value: Any, dimension: str, units: Units | None) -> Any:
    """Numbers of a quantity or a text, in `units`; a value without a unit as it is.

    Lists may have quantities and texts as elements, and so may arrays of objects.
    """
    if isinstance(value, str):
        return _of_text(argument, value, dimension, units)
    elements = _listed(value)
    if elements is not None:
        return [plain(argument, each, dimension, units) for each in elements] if _has_elements(elements) else value
    unit = unit_of(value)
    if unit is None:
        return value
    if units is None:
        raise bad(argument, "has a unit, and the bodies have none: give a number")
    _, size = in_si(dimension, units)
    return si(argument, value, dimension) / size


def in_si(dimension: str, units: Units) -> tuple[str, float]:
    """The unit of SI for a dimension, and the size of the same unit of `units` in it."""
    unit, (length, mass, time) = _SI[dimension]
    return unit, units.length**length * units.mass**mass * units.time**time


def si(argument: str, value: Any, dimension: str) -> Any:
    """Numbers of a quantity in the unit of SI."""
    looked_at(argument, value)
    unit, _ = _SI[dimension]
    # Arrays of swiftsimio: the factor is 1 at a = 1, and for what does not grow with space.
    if getattr(value, "comoving", False) and getattr(getattr(value, "cosmo_factor", None), "a_factor", None) != 1:
        raise bad(argument, "is comoving, and bodies are in physical units: call `.to_physical()` of it")
    converts = getattr(value, "to_value", None) or getattr(value, "m_as", None)
    if converts is None and hasattr(value, "to") and hasattr(value, "value"):
        converts = lambda unit: value.to(unit).value  # noqa: E731
    if converts is None:
        own = "`.in_units(…)` of it, as plain numbers" if hasattr(value, "in_units") else "numbers"
        raise bad(
            argument,
            f"has the unit {unit_of(value)} and cannot convert it ({type(value).__name__}): give {own}, or a quantity "
            "of astropy, unyt or pint",
        )
    try:
        return converts(unit)
    except Exception as error:
        article = "an" if dimension[0] in "aeiou" else "a"
        raise bad(argument, f"is not {article} {dimension}: {error}") from error


#: Dimensions of numbers of a simulation, as powers of length, mass and time, and units in which they are given.
_RECORDED: dict[str, tuple[tuple[int, int, int], str]] = {
    **dict.fromkeys(("t", "time", "dt", "step_shortest", "step10", "step50", "step90"), ((0, 0, 1), "Myr")),
    **dict.fromkeys(("kinetic", "potential", "energy"), ((2, 1, -2), "Msun km2 / s2")),
    **dict.fromkeys(("px", "py", "pz"), ((1, 1, -1), "Msun km / s")),
    **dict.fromkeys(("lx", "ly", "lz"), ((2, 1, -1), "Msun pc km / s")),
    **dict.fromkeys(("cx", "cy", "cz", "r10", "r50", "r90", "softening", "origin", "events.pos"), ((1, 0, 0), "pc")),
    **dict.fromkeys(("origin_velocity", "events.speed"), ((1, 0, -1), "km / s")),
    "events.time": ((0, 0, 1), "Myr"),
    "events.mass": ((0, 1, 0), "Msun"),
    **dict.fromkeys(("energy_drift", "virial_ratio"), ((0, 0, 0), "")),
}


#: Units of time that suit units of length, if the system has none with a name.
_TIMES_OF_LENGTHS = {"m": "s", "cm": "s", "km": "s", "au": "yr", "pc": "Myr", "kpc": "Myr", "Mpc": "Gyr"}


def _own_units(units: Units) -> tuple[str, str]:
    """Names of the units of length and time that a system is told in: pc and Myr if it has none with a name."""
    names = units.names.split(", ")
    length = next((name for name in names if name in _TIMES_OF_LENGTHS), "pc")
    time = next((name for name in names if name in ("s", "day", "yr", "Myr", "Gyr")), _TIMES_OF_LENGTHS[length])
    return length, time


def time_unit(units: Units | None) -> str | None:
    """Name of the unit in which times of a system are given."""
    return None if units is None else _own_units(units)[1]


def recorded(name: str, values: Callable[[str], Any], units: Units | None) -> Any:
    """A number of a simulation, or a column of its log, as an astropy quantity."""
    from astropy import units as u

    if name not in _RECORDED:
        one_of("name", name, _RECORDED)
    if units is None:
        raise ArgumentError("these bodies have no units: make them with `units`")
    (length, mass, time), unit = _RECORDED[name]
    size = units.length**length * units.mass**mass * units.time**time
    if unit in ("pc", "Myr"):
        unit = _own_units(units)[unit == "Myr"]
    return (values(name) * size * u.Unit(f"m{length} kg{mass} s{time}")).to(u.Unit(unit))


def first_quantity(value: Any) -> Any:
    """The first quantity in nested lists; None if there is none."""
    return next((leaf for leaf in _leaves(value) if _own_unit(leaf) is not None), None)


def result_like(given: Any, numbers: Any, dimension: str) -> Any:
    """Numbers in pc, Msun and km/s as a quantity of the library of another one."""
    # Classes above it too: its own may be of one dimension, as astropy's `Distance` is.
    for quantity in type(given).__mro__:
        try:
            made = quantity(numbers, _RESULTS[dimension])
        except Exception:
            continue
        if unit_of(made) is not None:
            return made
    raise bad("units", f"is needed: results cannot be made as {type(given).__name__}, so name the units of their numbers")


def unitless(argument: str, value: Any) -> None:
    """Refuses a value with a unit where no unit can be taken."""
    looked_at(argument, value)
    unit = unit_of(value)
    if unit is not None:
        raise bad(argument, f"has the unit {unit}, which is not converted here: give plain numbers")


def in_radians(argument: str, value: Any) -> Any:
    """Angles in radians: of numbers, quantities and texts such as "30 deg", also in lists."""
    if isinstance(value, str):
        found = re.fullmatch(r"\s*(.*?)\s*([a-z]+|°)\s*", value)
        try:
            return float(found[1]) * _ANGLES[found[2]] if found else float(value)
        except (ValueError, KeyError) as error:
            raise bad(argument, f"is not an angle: {value!r}; write one such as '30 deg' or '0.5 rad'") from error
    elements = _listed(value)
    if elements is not None and _has_elements(elements):
        return [in_radians(argument, element) for element in elements]
    return value if unit_of(value) is None else si(argument, value, "angle")


def has_unit(value: Any) -> bool:
    """Returns whether a value has a unit, or an element of a list. Texts have one that have digits and are no number."""

    def has(leaf: Any) -> bool:
        if isinstance(leaf, str):
            return _number_in(leaf) is None and any(map(str.isdigit, leaf))
        return _own_unit(leaf) is not None

    return any(map(has, _leaves(value)))


def lacks_unit(value: Any) -> bool:
    """Returns whether a value is a number without a unit, or an element of a list. A zero has any unit."""

    def lacks(leaf: Any) -> bool:
        number = _number_in(leaf) if isinstance(leaf, str) else leaf
        if number is None or _own_unit(number) is not None:
            return False
        return not (isinstance(number, (int, float)) and number == 0)

    return any(map(lacks, _leaves(value)))


def _has_elements(values: Any) -> bool:
    """Returns whether elements of a list are texts or have units."""
    return any(isinstance(leaf, str) or _own_unit(leaf) is not None for leaf in _leaves(values))


def _number_in(text: str) -> float | None:
    """The number that a text is, if it has no unit."""
    try:
        return float(text)
    except ValueError:
        return None


def _of_text(argument: str, text: str, dimension: str, units: Units | None) -> float:
    number = _number_in(text)
    if number is not None:
        return number
    if dimension not in _TEXTS:
        raise bad(
            argument,
            f"is the text {text!r}, and units are read from texts for lengths, masses and times alone: give numbers, or "
            "a quantity",
        )
    known = None if units is None else units.text
    # The library reads a unit with its number, of which masses must be more than 0.
    zero = re.fullmatch(r"\s*[-+]?(?:0+\.?0*|\.0+)\s*([A-Za-z].*)", text) if dimension == "mass" else None
    try:
        return 0.0 * _native.measure(argument, zero[1], dimension, known) if zero else _native.measure(argument, text, dimension, known)
    except ArgumentError as error:
        error.argument = argument
        raise
