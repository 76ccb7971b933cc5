"""External fields for trajectories in JAX: formulas with derivatives by their parameters, and functions of the user's."""

from __future__ import annotations

import functools
from typing import Any, Callable, Sequence

import jax
import jax.numpy as jnp

from . import _field_formulas
from ._field_formulas import NamedField
from ._quantities import unitless

_Array = Any
#: A function of a position, and of the numbers of a field.
Function = Callable[..., _Array]


class _Operations:
    """Operations of JAX that formulas are made of."""

    gammainc = staticmethod(jax.scipy.special.gammainc)
    log1p = staticmethod(jnp.log1p)
    ones_like = staticmethod(jnp.ones_like)
    sqrt = staticmethod(jnp.sqrt)
    stack = staticmethod(jnp.stack)
    where = staticmethod(jnp.where)


@jax.tree_util.register_pytree_node_class
class Field(NamedField):
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

    @staticmethod
    def _is_unread(value: Any) -> bool:
        return isinstance(value, jax.core.Tracer)


@functools.lru_cache(maxsize=None)
def formula(name: str) -> Function:
    """The acceleration (3,) by a formula, of the time, a position (3,), G and all parameters in their order."""

    def acceleration(_: _Array, pos: _Array, G: _Array, *numbers: _Array) -> _Array:
        return _field_formulas.acceleration(_Operations, name, pos, G, *numbers)

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
