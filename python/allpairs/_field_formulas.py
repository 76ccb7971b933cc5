"""Formulas of external fields that JAX and PyTorch differentiate, with their names, parameters and checks.

A formula takes the operations of its library as `xp`. Positions have their three components first, and any dimensions
behind them, to which the numbers of a field are spread.
"""

from __future__ import annotations

import math
from typing import Any, Callable

import numpy as np

from ._quantities import unitless

_Array = Any
#: A function of operations, positions and the numbers of a field.
_Formula = Callable[..., _Array]


def _length(xp: Any, x: _Array) -> tuple[_Array, _Array]:
    """Distances from the centre, 1 there; and whether it is the centre, where roots have no derivative."""
    squared = (x**2).sum(0)
    centre = squared == 0
    return xp.sqrt(xp.where(centre, 1.0, squared)), centre


def _radial(of_mass: _Formula) -> _Formula:
    """A field by its mass within r over r³; none at the centre."""

    def acceleration(xp: Any, x: _Array, *numbers: _Array) -> _Array:
        r, centre = _length(xp, x)
        return xp.where(centre, 0.0, -of_mass(xp, r, *numbers)) * x

    return acceleration


def _point(_: Any, x: _Array, gm: _Array) -> _Array:
    return -gm * x * (x**2).sum(0) ** -1.5


def _plummer(_: Any, x: _Array, gm: _Array, scale: _Array) -> _Array:
    return -gm * x * ((x**2).sum(0) + scale**2) ** -1.5


def _hernquist(_: Any, r: _Array, gm: _Array, scale: _Array) -> _Array:
    return gm / (r * (r + scale) ** 2)


def _nfw(xp: Any, r: _Array, gm: _Array, scale: _Array) -> _Array:
    u = r / scale
    # ln(1 + u) − u/(1 + u) cancels at small u; its series is Σ (−1)ⁿ (n − 1)/n uⁿ.
    is_small = u < 0.1
    near, far = xp.where(is_small, u, 0.1), xp.where(is_small, 1.0, u)
    series = sum((-1) ** n * (n - 1) / n * near ** (n - 3) for n in range(20, 1, -1))
    return gm / scale**3 * xp.where(is_small, series, (xp.log1p(far) - far / (1 + far)) / far**3)


def _miyamoto_nagai(xp: Any, x: _Array, gm: _Array, a: _Array, b: _Array) -> _Array:
    s = xp.sqrt(x[2] ** 2 + b**2)
    pull = gm * (x[0] ** 2 + x[1] ** 2 + (a + s) ** 2) ** -1.5
    return -pull * x * xp.stack([xp.ones_like(s), xp.ones_like(s), (a + s) / s])


def _isochrone(xp: Any, x: _Array, gm: _Array, scale: _Array) -> _Array:
    s = xp.sqrt((x**2).sum(0) + scale**2)
    return -gm * x / (s * (scale + s) ** 2)


def _logarithmic(xp: Any, x: _Array, speed: _Array, core: _Array, flattening: _Array) -> _Array:
    flat = xp.stack([xp.ones_like(flattening), xp.ones_like(flattening), flattening**-2])
    squared = (flat * x**2).sum(0) + core**2
    centre = squared == 0
    return xp.where(centre, 0.0, -(speed**2)) * flat * x / xp.where(centre, 1.0, squared)


def _power_law(xp: Any, r: _Array, gm: _Array, cutoff: _Array, exponent: _Array) -> _Array:
    return gm * xp.gammainc(1.5 - 0.5 * exponent, (r / cutoff) ** 2) / r**3


#: Accelerations by formulas, with the names and the defaults of parameters: the names of `ap.Simulation`. The first
#: parameter of most is a mass, which counts with G.
FORMULAS: dict[str, tuple[_Formula, dict[str, float | None]]] = {
    "point": (_point, {"mass": None}),
    "plummer": (_plummer, {"mass": None, "scale": None}),
    "hernquist": (_radial(_hernquist), {"mass": None, "scale": None}),
    "nfw": (_radial(_nfw), {"mass": None, "scale": None}),
    "miyamoto-nagai": (_miyamoto_nagai, {"mass": None, "a": None, "b": None}),
    "isochrone": (_isochrone, {"mass": None, "scale": None}),
    "logarithmic": (_logarithmic, {"speed": None, "core": 0.0, "flattening": 1.0}),
    "power-law": (_radial(_power_law), {"mass": None, "cutoff": None, "exponent": None}),
}
_CENTRE = {"x": 0.0, "y": 0.0, "z": 0.0}
_POSITIVE = ("scale", "b", "cutoff", "flattening")
_NOT_NEGATIVE = ("a", "core")

#: Terms of the series of an incomplete gamma function: below 40, less than 1e-18 of it remains.
GAMMA_TERMS = 112


def gammainc(xp: Any, a: _Array, x: _Array, orders: _Array) -> _Array:
    """The regularised incomplete gamma function P(a, x) in float64, with derivatives by both, for 0 < a < 2 and x > 0.

    It is the sum of xᵃ⁺ⁿ e⁻ˣ/Γ(a + n + 1), which are positive. `orders` counts n from 0 to `GAMMA_TERMS` − 1.
    """
    is_near = x < 40  # beyond, 1 − P is less than an ulp
    near = xp.where(is_near, x, 1.0)[..., None]
    power = a[..., None] + orders
    series = xp.exp(power * xp.log(near) - near - xp.lgamma(power + 1)).sum(-1)
    return xp.where(is_near, series, 1.0)


def acceleration(xp: Any, name: str, x: _Array, G: _Array, *numbers: _Array) -> _Array:
    """Accelerations (3, …) by a formula at positions (3, …), of G and all parameters in their order."""
    function, parameters = FORMULAS[name]
    own, centre = list(numbers[:-3]), xp.stack(numbers[-3:])
    if "mass" in parameters:
        own[0] = G * own[0]
    return function(xp, x - centre, *own)


class NamedField:
    """A formula by its name, with numbers or arrays of a library as its parameters."""

    def __init__(self, name: str, **parameters: Any) -> None:
        if not isinstance(name, str):
            raise TypeError(f"`name` must be a text, not {type(name).__name__}")
        if name in ("tide", "1pn"):
            raise ValueError(f"`name`: the field {name} depends on velocities, and such steps cannot be taken back")
        if name not in FORMULAS:
            raise ValueError(f"`name` must be one of {', '.join(FORMULAS)}, not {name!r}")
        allowed = {**FORMULAS[name][1], **_CENTRE}
        for key, value in parameters.items():
            if key not in allowed:
                raise ValueError(f"`{key}` is no parameter of the field {name}: it has {', '.join(allowed)}")
            if not self._is_unread(value):
                _check(name, key, value)
        given = {**allowed, **parameters}
        for key, value in given.items():
            if value is None:
                raise ValueError(f"`{key}` is needed for the field {name}")
        self.name = name
        self.parameters: dict[str, Any] = given

    @staticmethod
    def _is_unread(value: Any) -> bool:
        """Returns whether the numbers of a parameter are not looked at."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"Field({', '.join([repr(self.name), *(f'{key}={value}' for key, value in self.parameters.items())])})"

    def __str__(self) -> str:
        """The field in the words of `allpairs.Simulation`."""
        return f"{self.name}:{','.join(f'{key}={float(value)!r}' for key, value in self.parameters.items())}"


def _check(name: str, key: str, value: Any) -> None:
    """Refuses numbers that make no sense."""
    unitless(key, value)
    try:
        given = [value] if isinstance(value, (int, float)) else np.asarray(value, dtype=float).flat
        numbers = [float(number) for number in given]
    except (TypeError, ValueError):
        raise TypeError(f"`{key}` of the field {name} must be a number, not {value!r}") from None
    for number in numbers:
        if not math.isfinite(number):
            raise ValueError(f"`{key}` of the field {name} must be finite, not {number}")
        if (key in _POSITIVE and number <= 0) or (key in _NOT_NEGATIVE and number < 0):
            sign = ">" if key in _POSITIVE else "≥"
            raise ValueError(f"`{key}` of the field {name} must be {sign} 0, not {number}")
        if key == "exponent" and not 0 <= number < 2:
            raise ValueError(f"`{key}` of the field {name} must be ≥ 0 and < 2, not {number}")
