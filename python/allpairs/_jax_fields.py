"""External fields for trajectories in JAX: formulas with derivatives by their parameters, and functions of the user's."""

from __future__ import annotations

import functools
import math
from typing import Any, Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from ._quantities import unitless

_Array = Any
#: A function of a position, and of the numbers of a field.
Function = Callable[..., _Array]


def _length(x: _Array) -> tuple[_Array, _Array]:
    """Distance from the centre, 1 there; and whether it is the centre, where roots have no derivative."""
    squared = (x**2).sum()
    centre = squared == 0
    return jnp.sqrt(jnp.where(centre, 1, squared)), centre


def _radial(of_mass: Function) -> Function:
    """A field by its mass within r over r³; none at the centre."""

    def acceleration(x: _Array, *numbers: _Array) -> _Array:
        r, centre = _length(x)
        return jnp.where(centre, 0, -of_mass(r, *numbers)) * x

    return acceleration


def _point(x: _Array, gm: _Array) -> _Array:
    return -gm * x * (x**2).sum() ** -1.5


def _plummer(x: _Array, gm: _Array, scale: _Array) -> _Array:
    return -gm * x * ((x**2).sum() + scale**2) ** -1.5


def _nfw(r: _Array, gm: _Array, scale: _Array) -> _Array:
    u = r / scale
    # ln(1 + u) − u/(1 + u) cancels at small u; its series is Σ (−1)ⁿ (n − 1)/n uⁿ.
    is_small = u < 0.1
    near, far = jnp.where(is_small, u, 0.1), jnp.where(is_small, 1.0, u)
    series = sum((-1) ** n * (n - 1) / n * near ** (n - 3) for n in range(20, 1, -1))
    return gm / scale**3 * jnp.where(is_small, series, (jnp.log1p(far) - far / (1 + far)) / far**3)


def _miyamoto_nagai(x: _Array, gm: _Array, a: _Array, b: _Array) -> _Array:
    s = jnp.sqrt(x[2] ** 2 + b**2)
    pull = gm * (x[0] ** 2 + x[1] ** 2 + (a + s) ** 2) ** -1.5
    return -pull * x * jnp.stack([jnp.ones_like(s), jnp.ones_like(s), (a + s) / s])


def _isochrone(x: _Array, gm: _Array, scale: _Array) -> _Array:
    s = jnp.sqrt((x**2).sum() + scale**2)
    return -gm * x / (s * (scale + s) ** 2)


def _logarithmic(x: _Array, speed: _Array, core: _Array, flattening: _Array) -> _Array:
    flat = jnp.stack([jnp.ones_like(flattening), jnp.ones_like(flattening), flattening**-2])
    squared = (flat * x**2).sum() + core**2
    centre = squared == 0
    return jnp.where(centre, 0, -(speed**2)) * flat * x / jnp.where(centre, 1, squared)


def _power_law(r: _Array, gm: _Array, cutoff: _Array, exponent: _Array) -> _Array:
    return gm * jax.scipy.special.gammainc(1.5 - 0.5 * exponent, (r / cutoff) ** 2) / r**3


#: Accelerations by formulas, with the names and the defaults of parameters: the names of `ap.Simulation`. The first
#: parameter of most is a mass, which counts with G.
_FORMULAS: dict[str, tuple[Function, dict[str, float | None]]] = {
    "point": (_point, {"mass": None}),
    "plummer": (_plummer, {"mass": None, "scale": None}),
    "hernquist": (_radial(lambda r, gm, scale: gm / (r * (r + scale) ** 2)), {"mass": None, "scale": None}),
    "nfw": (_radial(_nfw), {"mass": None, "scale": None}),
    "miyamoto-nagai": (_miyamoto_nagai, {"mass": None, "a": None, "b": None}),
    "isochrone": (_isochrone, {"mass": None, "scale": None}),
    "logarithmic": (_logarithmic, {"speed": None, "core": 0.0, "flattening": 1.0}),
    "power-law": (_radial(_power_law), {"mass": None, "cutoff": None, "exponent": None}),
}
_CENTRE = {"x": 0.0, "y": 0.0, "z": 0.0}
_POSITIVE = ("scale", "b", "cutoff", "flattening")
_NOT_NEGATIVE = ("a", "core")


@jax.tree_util.register_pytree_node_class
class Field:
    """A field by its formula, with derivatives by all its parameters.

    Parameters
    ----------
    name : {"point", "plummer", "hernquist", "nfw", "miyamoto-nagai", "isochrone", "logarithmic", "power-law"}
        Name of the formula, as of the fields of `allpairs.Simulation`.
    **parameters : numbers
        Parameters of the formula, such as `mass` and `scale`, in the units of the bodies. `x`, `y` and `z` are the
        centre, 0 by default. Arrays are parameters of independent systems.

    Raises
    ------
    ValueError
        A formula or a parameter that does not exist, one that is missing, or a number that makes no sense.
    """

    def __init__(self, name: str, **parameters: Any) -> None:
        if not isinstance(name, str):
            raise TypeError(f"`name` must be a text, not {type(name).__name__}")
        if name in ("tide", "1pn"):
            raise ValueError(f"`name`: the field {name} depends on velocities, and such steps cannot be taken back")
        if name not in _FORMULAS:
            raise ValueError(f"`name` must be one of {', '.join(_FORMULAS)}, not {name!r}")
        allowed = {**_FORMULAS[name][1], **_CENTRE}
        for key, value in parameters.items():
            if key not in allowed:
                raise ValueError(f"`{key}` is no parameter of the field {name}: it has {', '.join(allowed)}")
            _check(name, key, value)
        given = {**allowed, **parameters}
        for key, value in given.items():
            if value is None:
                raise ValueError(f"`{key}` is needed for the field {name}")
        self.name = name
        self.parameters: dict[str, Any] = given

    def acceleration(self, time: Any, pos: Any, G: Any = 1.0) -> jax.Array:
        """Accelerations (…, 3) at positions (…, 3); the time is not used."""
        unitless("pos", pos)
        unitless("G", G)
        numbers = [jnp.asarray(G), *map(jnp.asarray, self.parameters.values())]
        at = jnp.vectorize(lambda x: formula(self.name)(time, x, *numbers), signature="(k)->(k)")
        found: jax.Array = at(jnp.asarray(pos))
        return found

    def tree_flatten(self) -> tuple[tuple[Any, ...], tuple[str, tuple[str, ...]]]:
        return tuple(self.parameters.values()), (self.name, tuple(self.parameters))

    @classmethod
    def tree_unflatten(cls, form: tuple[str, tuple[str, ...]], parameters: Sequence[Any]) -> Field:
        made = object.__new__(cls)
        made.name = form[0]
        made.parameters = dict(zip(form[1], parameters))
        return made

    def __repr__(self) -> str:
        return f"Field({', '.join([repr(self.name), *(f'{key}={value}' for key, value in self.parameters.items())])})"

    def __str__(self) -> str:
        """The field in the words of `allpairs.Simulation`."""
        return f"{self.name}:{','.join(f'{key}={float(value)!r}' for key, value in self.parameters.items())}"


def _check(name: str, key: str, value: Any) -> None:
    """Refuses numbers that make no sense, where they are numbers already."""
    if isinstance(value, jax.core.Tracer):
        return
    unitless(key, value)
    try:
        numbers = [float(number) for number in np.asarray(value, dtype=float).flat]
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


@functools.lru_cache(maxsize=None)
def formula(name: str) -> Function:
    """The acceleration (3,) by a formula, of the time, a position (3,), G and all parameters in their order."""
    function, parameters = _FORMULAS[name]

    def acceleration(_: _Array, pos: _Array, G: _Array, *numbers: _Array) -> _Array:
        own, centre = list(numbers[:-3]), jnp.stack(jnp.broadcast_arrays(*numbers[-3:]))
        if "mass" in parameters:
            own[0] = G * own[0]
        return function(pos - centre, *own)

    return acceleration


class Traced:
    """A field that is a function of the user's: its operations, and the arrays that JAX traces in its closure."""

    def __init__(self, function: Callable[[Any, Any], Any], pos: _Array) -> None:
        example = jax.ShapeDtypeStruct((), pos.dtype), jax.ShapeDtypeStruct((3,), pos.dtype)
        closed = jax.make_jaxpr(lambda time, pos: jnp.asarray(function(time, pos)))(*example)
        (found,) = closed.out_avals
        if found.shape != (3,) or not jnp.issubdtype(found.dtype, jnp.floating):
            raise ValueError(f"`field` must return an acceleration of shape (3,), not {found.str_short()}")
        consts = closed.consts
        self.is_traced = [isinstance(const, jax.core.Tracer) for const in consts]
        self.fixed = [const for const, traced in zip(consts, self.is_traced) if not traced]
        self.numbers = [const for const, traced in zip(consts, self.is_traced) if traced]
        for const in self.numbers:
            if not jnp.issubdtype(const.dtype, jnp.floating):
                raise TypeError(f"`field` uses an array of {const.dtype} that JAX traces: use floating-point numbers")
        self.jaxpr = closed.jaxpr
        self.dtype = pos.dtype

    def function(self) -> Function:
        """The acceleration, of the time, a position and the traced arrays."""
        jaxpr, fixed, is_traced, dtype = self.jaxpr, self.fixed, self.is_traced, self.dtype

        def acceleration(time: _Array, pos: _Array, *numbers: _Array) -> _Array:
            own, others = iter(fixed), iter(numbers)
            consts = [next(others) if traced else next(own) for traced in is_traced]
            (found,) = jax.core.eval_jaxpr(jaxpr, consts, time, pos)
            return found.astype(dtype)

        return acceleration
