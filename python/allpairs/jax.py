"""Forces, potentials and trajectories that JAX can transform: jit, vmap, grad, jvp and what is made of them.

The package's own sums compute the values and their first derivatives, on the CPU or the GPU that arrays are on. For
second derivatives the sum is written out in JAX, in N² memory.
"""

from __future__ import annotations

import functools
import operator
from typing import Any, Callable, Sequence

try:
    import jax
except ImportError as error:
    raise ImportError("`allpairs.jax` needs JAX, which is not installed: pip install jax") from error
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from . import _native
from ._errors import ArgumentError, one_of
from ._jax_fields import Field, Traced, formula
from ._quantities import unitless
from ._schemes import SCHEMES, Stage

__all__ = ["Field", "accelerations", "field_at", "leapfrog", "potential"]

_Array = Any

for _name, _platform, _address in _native.xla_handlers():
    jax.ffi.register_ffi_target(f"allpairs_{_name}", jax.ffi.pycapsule(_address), platform=_platform)


def _refuse(*_: Any, **__: Any) -> Any:
    raise NotImplementedError(
        "allpairs.jax computes on CPUs and on NVIDIA's GPUs, and its arrays are on another platform here: put them on "
        "one with jax.device_put(pos, jax.devices('cpu')[0])"
    )


def _instantiated(tangents: Sequence[Any], like: Sequence[_Array]) -> list[_Array]:
    """Tangents, or cotangents, as arrays."""
    return [jnp.zeros_like(a) if type(t) is ad.Zero else t for t, a in zip(tangents, like)]


@functools.lru_cache(maxsize=1024)  # functions that are fields are other parameters each time
def _compiled(primitive: Any, params: tuple[tuple[str, Any], ...]) -> Callable[..., Any]:
    return jax.jit(lambda *arguments: primitive.bind(*arguments, **dict(params)))


def _batched(primitive: Any, arguments: Sequence[_Array], axes: Sequence[int | None], **params: Any) -> Any:
    """Independent systems are a leading dimension of all arguments."""
    size = next(a.shape[axis] for a, axis in zip(arguments, axes) if axis is not None)
    led = [
        jnp.broadcast_to(a, (size, *a.shape)) if axis is None else jnp.moveaxis(a, axis, 0)
        for a, axis in zip(arguments, axes)
    ]
    found = primitive.bind(*led, **params)
    return (found, [0] * len(found)) if primitive.multiple_results else (found, 0)


def _primitive(name: str, shapes: Callable[..., Any], lower: Callable[..., Any], multiple: bool) -> Any:
    """A primitive with all but its derivatives. `lower` gives the handler's name, of the parameters."""
    primitive = Primitive(f"allpairs_{name}")
    primitive.multiple_results = multiple

    def abstract(*avals: Any, **params: Any) -> Any:
        return [jax.core.ShapedArray(a.shape, a.dtype) for a in shapes(*avals, **params)] if multiple else (
            jax.core.ShapedArray(shapes(*avals, **params).shape, avals[0].dtype)
        )

    primitive.def_abstract_eval(abstract)
    primitive.def_impl(
        lambda *arguments, **params: _compiled(primitive, tuple(sorted(params.items())))(*arguments)
    )
    mlir.register_lowering(primitive, _refuse)
    mlir.register_lowering(primitive, lower, platform="cpu")
    mlir.register_lowering(primitive, lower, platform="cuda")
    batching.primitive_batchers[primitive] = functools.partial(_batched, primitive)
    return primitive


def _handler(name: Callable[..., str]) -> Callable[..., Any]:
    """Lowers a primitive to a handler of XLA's."""

    def lower(ctx: Any, *operands: Any, double: bool, **params: Any) -> Any:
        target = f"allpairs_{name(**params)}_{'double' if double else 'single'}"
        return jax.ffi.ffi_lowering(target)(ctx, *operands)

    return lower


def _separations(x: _Array, eps: _Array) -> tuple[_Array, _Array, _Array]:
    """Of all pairs: x_j − x_i, the squared softened distance, and whether it is a body with itself."""
    d = x[..., None, :, :] - x[..., :, None, :]
    own = jnp.eye(x.shape[-2], dtype=bool)
    return d, jnp.where(own, 1, (d**2).sum(-1) + eps[..., None, None] ** 2), own


def _force_written_out(x: _Array, m: _Array, eps: _Array) -> _Array:
    d, squared, own = _separations(x, eps)
    return jnp.einsum("...j,...ij,...ijk->...ik", m, jnp.where(own, 0, squared**-1.5), d)


def _potential_written_out(x: _Array, m: _Array, eps: _Array) -> _Array:
    _, squared, own = _separations(x, eps)
    return -jnp.einsum("...j,...ij->...i", m, jnp.where(own, 0, squared**-0.5))


def _sum(name: str, written_out: Callable[..., Any], of_bodies: Callable[..., Any], flags: bool) -> Any:
    """The primitive of a sum of x, m and eps. Its tangent and its cotangent are primitives too: each is the
    derivative or the transpose of another. With `flags`, derivatives that nobody asks for are left out."""
    tangent_name = "tangent" if name == "force" else f"{name}_tangent"
    pull_name = "pull" if name == "force" else f"{name}_pull"

    def pulled(x: Any, m: Any, eps: Any, _: Any, masses: bool, softening: bool, **__: Any) -> list[Any]:
        return [x, *([m] if masses else []), *([eps] if softening else [])]

    def suffixed(masses: bool, softening: bool) -> str:
        suffix = ("m" if masses else "") + ("e" if softening else "")
        return f"{pull_name}_{suffix}" if suffix and flags else pull_name

    value = _primitive(name, lambda x, m, *_, **__: of_bodies(x, m), _handler(lambda: name), False)
    tangent = _primitive(tangent_name, lambda x, m, *_, **__: of_bodies(x, m), _handler(lambda: tangent_name), False)
    pull = _primitive(pull_name, pulled, _handler(suffixed), True)

    def value_jvp(primals: Sequence[_Array], tangents: Sequence[Any], **params: Any) -> Any:
        return value.bind(*primals, **params), tangent.bind(*primals, *_instantiated(tangents, primals), **params)

    def tangent_written_out(x: _Array, m: _Array, eps: _Array, *direction: _Array) -> _Array:
        return jax.jvp(written_out, (x, m, eps), direction)[1]

    def tangent_jvp(primals: Sequence[_Array], tangents: Sequence[Any], **params: Any) -> Any:
        state, direction = primals[:3], primals[3:]
        rate = tangent.bind(*state, *_instantiated(tangents[3:], direction), **params)
        if any(type(t) is not ad.Zero for t in tangents[:3]):
            moved = _instantiated(tangents[:3], state)
            rate = rate + jax.jvp(lambda *state: tangent_written_out(*state, *direction), state, tuple(moved))[1]
        return tangent.bind(*primals, **params), rate

    def tangent_transpose(cotangent: Any, *operands: Any, **params: Any) -> list[Any]:
        asked = [ad.is_undefined_primal(a) for a in operands[3:]]
        if type(cotangent) is ad.Zero:
            return [None] * 6
        masses, softening = (asked[1], asked[2]) if flags else (True, True)
        found = iter(pull.bind(*operands[:3], cotangent, masses=masses, softening=softening, **params))
        by_position = next(found)
        by_mass = next(found) if masses else None
        by_softening = next(found) if softening else None
        parts = [by_position, by_mass, by_softening]
        return [None] * 3 + [part if wanted else None for part, wanted in zip(parts, asked)]

    def pull_jvp(primals: Sequence[_Array], tangents: Sequence[Any], masses: bool, softening: bool, **params: Any) -> Any:
        params = {"masses": masses, "softening": softening, **params}
        state, (lam,) = primals[:3], primals[3:]

        def pull_written_out(*state: _Array) -> list[_Array]:
            by_position, by_mass, by_softening = jax.vjp(written_out, *state)[1](lam)
            return [by_position, *([by_mass] if masses else []), *([by_softening] if softening else [])]

        rates = pull.bind(*state, *_instantiated(tangents[3:], [lam]), **params)
        if any(type(t) is not ad.Zero for t in tangents[:3]):
            moved = _instantiated(tangents[:3], state)
            more = jax.jvp(pull_written_out, state, tuple(moved))[1]
            rates = [a + b for a, b in zip(rates, more)]
        return pull.bind(*primals, **params), rates

    def pull_transpose(
        cotangents: Sequence[Any], x: _Array, m: _Array, eps: _Array, _: Any, masses: bool, softening: bool, **params: Any
    ) -> list[Any]:
        given = iter(cotangents)
        parts = [next(given), next(given) if masses else None, next(given) if softening else None]
        zero = [jnp.zeros_like(a) if t is None or type(t) is ad.Zero else t for t, a in zip(parts, (x, m, eps))]
        return [None, None, None, tangent.bind(x, m, eps, *zero, **params)]

    ad.primitive_jvps[value] = value_jvp
    ad.primitive_jvps[tangent] = tangent_jvp
    ad.primitive_jvps[pull] = pull_jvp
    ad.primitive_transposes[tangent] = tangent_transpose
    ad.primitive_transposes[pull] = pull_transpose
    return value


_force = _sum("force", _force_written_out, lambda x, m: x, flags=True)
_potential = _sum("potential", _potential_written_out, lambda x, m: m, flags=False)


def _array(argument: str, value: Any) -> _Array:
    unitless(argument, value)
    try:
        return jnp.asarray(value)
    except (TypeError, ValueError):
        raise TypeError(f"`{argument}` must be numbers or an array, not {type(value).__name__}") from None


def _float(argument: str, value: Any) -> _Array:
    """An array of float32 or float64."""
    array = _array(argument, value)
    if array.dtype not in (jnp.float32, jnp.float64):
        raise TypeError(f"`{argument}` must hold float32 or float64, not {array.dtype}")
    return array


def _like(argument: str, value: Any, pos: _Array, shape: tuple[int, ...]) -> _Array:
    """An array of the precision of the positions, spread to a shape."""
    array = _array(argument, value)
    if not (jnp.issubdtype(array.dtype, jnp.floating) or jnp.issubdtype(array.dtype, jnp.integer)):
        raise TypeError(f"`{argument}` must hold real numbers, not {array.dtype}")
    if array.dtype == jnp.float64 and pos.dtype == jnp.float32 and not array.weak_type:
        raise TypeError(f"`{argument}` is float64 and `pos` float32: convert one of them")
    try:
        return jnp.broadcast_to(array.astype(pos.dtype), shape)
    except ValueError:
        raise ValueError(f"`{argument}` must have the shape {shape}, not {array.shape}") from None


def _bodies(pos: Any, m: Any, eps: Any, accuracy: str | None) -> tuple[_Array, _Array, _Array, bool]:
    x = _float("pos", pos)
    if isinstance(eps, (int, float)) and not 0 <= eps < float("inf"):
        raise ValueError(f"`eps` must be ≥ 0 and finite, got {eps}")
    if x.ndim < 2 or x.shape[-1] != 3:
        raise ValueError(f"`pos` must have the shape (N, 3), not {x.shape}")
    mass = _array("m", m)
    if mass.ndim and mass.shape[-1] != x.shape[-2]:
        raise ValueError(f"`m` has {mass.shape[-1]} elements where there are {x.shape[-2]} bodies")
    return (
        x,
        _like("m", m, x, x.shape[:-1]),
        _like("eps", eps, x, x.shape[:-2]),
        _is_double(accuracy, x),
    )


def _is_double(accuracy: str | None, x: _Array) -> bool:
    if accuracy is None:
        return bool(x.dtype == jnp.float64)
    try:
        return one_of("accuracy", accuracy, _native.names()["accuracy"]) == "double"
    except ArgumentError as error:
        raise ValueError(str(error)) from None


def accelerations(
    pos: Any, m: Any, eps: Any = 0.0, *, G: Any = 1.0, accuracy: str | None = None
) -> jax.Array:
    """Accelerations of bodies by each other, with derivatives by `pos`, `m`, `eps` and `G`.

    Parameters
    ----------
    pos : array, shape (N, 3)
        Positions, of float32 or float64. Leading dimensions are independent systems, as `vmap` makes them.
    m : array, shape (N,), or number
        Masses; bodies without mass are test particles.
    eps : number
        Softening length ≥ 0. Without softening, bodies at the same place do not attract each other, and there
        is no derivative: the CPU refuses it, and on a GPU it is nan.
    G : number
    accuracy : {"double", "single", "fast"}, optional
        Precision of pairs: by default of the arrays.

    Returns
    -------
    array, shape (N, 3)
    """
    x, mass, softening, double = _bodies(pos, m, eps, accuracy)
    return _scaled("G", G, _force.bind(x, mass, softening, double=double))


def potential(
    pos: Any, m: Any, eps: Any = 0.0, *, G: Any = 1.0, accuracy: str | None = None
) -> jax.Array:
    """Potential at each body of all others, −G Σ m_j/d_ij; arguments and derivatives as of `accelerations`.

    Returns
    -------
    array, shape (N,)
    """
    x, mass, softening, double = _bodies(pos, m, eps, accuracy)
    return _scaled("G", G, _potential.bind(x, mass, softening, double=double))


def _scaled(argument: str, factor: Any, values: _Array) -> jax.Array:
    if isinstance(factor, (int, float)) and factor == 1:
        return values
    return _like(argument, factor, values, ()) * values


def field_at(
    points: Any, pos: Any, m: Any, eps: Any = 0.0, *, G: Any = 1.0, accuracy: str | None = None
) -> tuple[jax.Array, jax.Array]:
    """Accelerations and potentials that bodies cause at points, with derivatives by all of them.

    Points are computed as bodies without mass, so M points and N bodies take (M + N)² interactions.

    Parameters
    ----------
    points : array, shape (M, 3)
    pos, m, eps, G, accuracy
        As of `accelerations`.

    Returns
    -------
    acc : array, shape (M, 3)
    pot : array, shape (M,)
    """
    x, mass, softening, double = _bodies(pos, m, eps, accuracy)
    at = _float("points", points)
    if at.ndim < 2 or at.shape[-1] != 3 or at.shape[:-2] != x.shape[:-2]:
        raise ValueError(f"`points` must have the shape {(*x.shape[:-2], 'M', 3)}, not {at.shape}")
    if at.dtype != x.dtype:
        raise TypeError(f"`points` is {at.dtype} and `pos` {x.dtype}: convert one of them")
    all_x = jnp.concatenate([x, at], axis=-2)
    all_m = jnp.concatenate([mass, jnp.zeros(at.shape[:-1], x.dtype)], axis=-1)
    acc = _force.bind(all_x, all_m, softening, double=double)[..., x.shape[-2] :, :]
    pot = _potential.bind(all_x, all_m, softening, double=double)[..., x.shape[-2] :]
    return _scaled("G", G, acc), _scaled("G", G, pot)


class _Fields:
    """External fields as a parameter of a primitive: functions, each with its count of the numbers that follow."""

    def __init__(self, functions: Sequence[tuple[Callable[..., Any], int]]) -> None:
        self.functions = tuple(functions)

    def __hash__(self) -> int:
        return hash(self.functions)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Fields) and self.functions == other.functions

    def at(self, time: _Array, x: _Array, *numbers: _Array) -> _Array:
        """Accelerations at all positions of independent systems, which are leading dimensions of everything."""

        def at_one(time: _Array, x: _Array, *numbers: _Array) -> _Array:
            rest, sum = numbers, jnp.zeros_like(x)
            for function, count in self.functions:
                sum = sum + function(time, x, *rest[:count])
                rest = rest[count:]
            return sum

        at = jax.vmap(at_one, (None, 0, *[None] * len(numbers)))
        for _ in x.shape[:-2]:
            at = jax.vmap(at)
        return at(time, x, *numbers)


def _dot(one: _Array, other: _Array) -> _Array:
    """Scalar products of the vectors of all bodies, of each system."""
    return jnp.einsum("...ij,...ij->...", one, other)


class _Path:
    """Steps of independent systems, in operations of JAX. `more` is the time at the beginning and the numbers of
    fields, if there are fields."""

    def __init__(
        self,
        *more: _Array,
        m: _Array,
        eps: _Array,
        dt: _Array,
        steps: int,
        scheme: str,
        double: bool,
        fields: _Fields | None,
    ) -> None:
        self.m, self.eps, self.dt, self.more = m, eps, dt, more
        self.steps, self.scheme, self.double, self.fields = steps, SCHEMES[scheme], double, fields

    def _length(self, share: float) -> _Array:
        return (share * self.dt)[..., None, None]

    def _in_fields(self, at: _Array, dt: _Array, x: _Array, *more: _Array) -> _Array:
        """Accelerations by fields at a number of steps after the beginning."""
        start, *numbers = more
        assert self.fields is not None
        return self.fields.at(start + at * dt, x, *numbers)

    def _there(self, step: _Array, stages: Sequence[Stage], x: _Array, v: _Array) -> tuple[_Array, _Array]:
        for stage in stages:
            if stage.kicks:
                a = _force.bind(x, self.m, self.eps, double=self.double)
                if self.fields is not None:
                    a = a + self._in_fields(step + stage.at, self.dt, x, *self.more)
                v = v + self._length(stage.share) * a
            else:
                x = x + self._length(stage.share) * v
        return x, v

    def last(self, x: _Array, v: _Array, *, keeps_little: bool = False) -> tuple[_Array, _Array]:
        """The last state. With `keeps_little`, a gradient of this keeps the states of the steps and nothing more."""
        if self.steps == 0:
            return x, v
        stages = self.scheme.stages

        def step(state: tuple[_Array, _Array], number: _Array) -> tuple[tuple[_Array, _Array], None]:
            return self._there(number, self.scheme.joined, *state), None

        begun = self._there(jnp.zeros((), x.dtype), stages[:1], x, v)
        numbers = jnp.arange(self.steps - 1, dtype=x.dtype)
        state, _ = jax.lax.scan(jax.checkpoint(step) if keeps_little else step, begun, numbers)
        return self._there(jnp.asarray(self.steps - 1, x.dtype), stages[1:], *state)

    def _back(self, step: _Array, stages: Sequence[Stage], asked: Sequence[bool], state: _State) -> _State:
        x, v, by_x, by_v, by_m, by_eps, by_dt, by_more = state
        for stage in reversed(stages):
            h = self._length(stage.share)
            if not stage.kicks:
                by_dt = by_dt + stage.share * _dot(v, by_x)
                by_v = by_v + h * by_x
                x = x - h * v
                continue
            lam = h * by_v
            masses, softening = asked
            a, of_x, of_m, of_eps = _pulled(x, self.m, self.eps, lam, masses, softening, self.double)
            by_m, by_eps = by_m + of_m, by_eps + of_eps
            if self.fields is not None:
                at = functools.partial(self._in_fields, step + stage.at)
                of_fields, pull = jax.vjp(at, self.dt, x, *self.more)
                of_dt, of_x_too, *of_more = pull(lam)
                a, of_x, by_dt = a + of_fields, of_x + of_x_too, by_dt + of_dt
                by_more = tuple(sum + of for sum, of in zip(by_more, of_more))
            by_dt = by_dt + stage.share * _dot(a, by_v)
            by_x = by_x + of_x
            v = v - h * a
        return x, v, by_x, by_v, by_m, by_eps, by_dt, by_more

    def pull(
        self, x: _Array, v: _Array, by_x: _Array, by_v: _Array, masses: bool, softening: bool
    ) -> list[_Array]:
        """Derivatives by x, m, eps, v, dt and more, from the last state back and in the memory of one state."""
        zero = jnp.zeros_like
        state = (x, v, by_x, by_v, zero(self.m), zero(self.eps), zero(self.dt), tuple(map(zero, self.more)))
        if self.steps:
            asked = (masses, softening)
            stages = self.scheme.stages
            state = self._back(jnp.asarray(self.steps - 1, x.dtype), stages[1:], asked, state)

            def step(state: _State, number: _Array) -> tuple[_State, None]:
                return self._back(number, self.scheme.joined, asked, state), None

            numbers = jnp.arange(self.steps - 1, dtype=x.dtype)
            state, _ = jax.lax.scan(step, state, numbers, reverse=True)
            state = self._back(jnp.zeros((), x.dtype), stages[:1], asked, state)
        _, _, by_x, by_v, by_m, by_eps, by_dt, by_more = state
        return [by_x, by_m, by_eps, by_v, by_dt, *by_more]


_State = tuple[_Array, _Array, _Array, _Array, _Array, _Array, _Array, tuple[_Array, ...]]


def _pulled(
    x: _Array, m: _Array, eps: _Array, lam: _Array, masses: bool, softening: bool, double: bool
) -> tuple[_Array, _Array, _Array, _Array]:
    """Accelerations, and derivatives of Σ lam · acc by x, m and eps; 0 where they are not asked for."""
    a, pull = jax.vjp(
        lambda x, m, eps: _force.bind(
            x, m if masses else jax.lax.stop_gradient(m), eps if softening else jax.lax.stop_gradient(eps), double=double
        ),
        x,
        m,
        eps,
    )
    return a, *pull(lam)


def _last(*begun: _Array, **params: Any) -> tuple[_Array, _Array]:
    x, m, eps, v, dt, *more = begun
    return _Path(*more, m=m, eps=eps, dt=dt, **params).last(x, v)


def _last_whole(*begun: _Array, **params: Any) -> tuple[_Array, ...]:
    """The last state, with nothing that its precision would lose: the way there has the same."""
    ends = _last(*begun, **params)
    return *ends, *map(jnp.zeros_like, ends)


def _begun(*operands: _Array, **params: Any) -> list[_Array]:
    """Derivatives by the beginning: operands are the beginning, the last state and its cotangents."""
    x, m, eps, v, dt, *more = operands[:-6]
    last_x, last_v, _, _, by_x, by_v = operands[-6:]
    masses, softening = params.pop("masses"), params.pop("softening")
    path = _Path(*more, m=m, eps=eps, dt=dt, **params)
    if x.dtype == jnp.float64:
        return path.pull(last_x, last_v, by_x, by_v, masses, softening)
    # The last state has lost digits, so that it would lead back to another beginning.
    return _pull_written_out(*operands, masses=masses, softening=softening, **params)


def _lower_path(ctx: Any, *operands: Any, double: bool, **params: Any) -> Any:
    """Lowers a trajectory, or its cotangent: to a handler, of which an attribute says what is asked for, or with
    fields to operations of JAX."""
    if params["fields"] is not None:
        function = _begun if "masses" in params else _last_whole
        return mlir.lower_fun(function, multiple_results=True)(ctx, *operands, double=double, **params)
    numbers = [params["steps"], list(SCHEMES).index(params["scheme"])]
    numbers += [int(params.get("masses", False)), int(params.get("softening", False))]
    name = "trajectory_pull" if "masses" in params else "trajectory"
    target = f"allpairs_{name}_{'double' if double else 'single'}"
    return jax.ffi.ffi_lowering(target)(ctx, *operands, asked=np.array(numbers, np.int64))


# Operands are the beginning: x, m, eps, v, dt, and with fields the time and the fields' numbers. Results are the last x
# and v, and what their precision loses of both. Operands of the tangent and the cotangent are then these results, from
# which the way back begins, and the direction or cotangents of x and v.
_trajectory = _primitive("trajectory", lambda x, m, eps, v, *_, **__: [x, v, x, v], _lower_path, True)
_trajectory_pull = _primitive("trajectory_pull", lambda *all, **_: all[:-6], _lower_path, True)
_trajectory_tangent = Primitive("allpairs_trajectory_tangent")
_trajectory_tangent.multiple_results = True


def _trajectory_jvp(primals: Sequence[_Array], tangents: Sequence[Any], **params: Any) -> Any:
    ends = _trajectory.bind(*primals, **params)
    rates = _trajectory_tangent.bind(*primals, *ends, *_instantiated(tangents, primals), **params)
    return ends, [*rates, *map(jnp.zeros_like, ends[2:])]


def _tangent_written_out(*operands: _Array, **params: Any) -> list[_Array]:
    count = len(operands) // 2 - 2
    begun, direction = operands[:count], operands[count + 4 :]
    return list(jax.jvp(lambda *begun: _last(*begun, **params), begun, direction)[1])


def _tangent_jvp(primals: Sequence[_Array], tangents: Sequence[Any], **params: Any) -> Any:
    moved = _instantiated(tangents, primals)
    return jax.jvp(lambda *all: _tangent_written_out(*all, **params), tuple(primals), tuple(moved))


def _tangent_transpose(cotangents: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
    count = len(operands) // 2 + 2
    known, direction = operands[:count], operands[count:]
    asked = [ad.is_undefined_primal(a) for a in direction]
    given = _instantiated(cotangents, known[-4:-2])
    flags = {"masses": asked[1], "softening": asked[2]}
    found = _trajectory_pull.bind(*known, *given, **flags, **params)
    return [None] * count + [part if wanted else None for part, wanted in zip(found, asked)]


def _pull_written_out(*operands: _Array, **params: Any) -> list[_Array]:
    begun, lam = operands[:-6], operands[-2:]
    masses, softening = params.pop("masses"), params.pop("softening")

    def last(x: _Array, m: _Array, eps: _Array, v: _Array, dt: _Array, *more: _Array) -> Any:
        return _Path(*more, m=m, eps=eps, dt=dt, **params).last(x, v, keeps_little=True)

    found = jax.vjp(last, *begun)[1](lam)
    asked = [True, masses, softening, *[True] * (len(begun) - 3)]
    return [part if wanted else jnp.zeros_like(part) for part, wanted in zip(found, asked)]


def _pull_jvp(primals: Sequence[_Array], tangents: Sequence[Any], **params: Any) -> Any:
    moved = _instantiated(tangents, primals)
    rates = jax.jvp(lambda *all: _pull_written_out(*all, **params), tuple(primals), tuple(moved))[1]
    return _trajectory_pull.bind(*primals, **params), rates


def _pull_transpose(cotangents: Sequence[Any], *operands: Any, masses: bool, softening: bool, **params: Any) -> list[Any]:
    known = operands[:-2]
    asked = [True, masses, softening, *[True] * (len(known) - 7)]
    given = [
        c if wanted and type(c) is not ad.Zero else jnp.zeros_like(a) for c, a, wanted in zip(cotangents, known, asked)
    ]
    return [None] * len(known) + list(_trajectory_tangent.bind(*known, *given, **params))


ad.primitive_jvps[_trajectory] = _trajectory_jvp
ad.primitive_jvps[_trajectory_tangent] = _tangent_jvp
ad.primitive_jvps[_trajectory_pull] = _pull_jvp
ad.primitive_transposes[_trajectory_tangent] = _tangent_transpose
ad.primitive_transposes[_trajectory_pull] = _pull_transpose
_trajectory_tangent.def_abstract_eval(
    lambda x, m, eps, v, *_, **__: [jax.core.ShapedArray(a.shape, a.dtype) for a in (x, v)]
)
_trajectory_tangent.def_impl(
    lambda *arguments, **params: _compiled(_trajectory_tangent, tuple(sorted(params.items())))(*arguments)
)
mlir.register_lowering(_trajectory_tangent, mlir.lower_fun(_tangent_written_out, multiple_results=True))
batching.primitive_batchers[_trajectory_tangent] = functools.partial(_batched, _trajectory_tangent)


def leapfrog(
    pos: Any,
    vel: Any,
    m: Any,
    dt: Any,
    steps: int,
    eps: Any = 0.0,
    *,
    G: Any = 1.0,
    field: Any = None,
    time: Any = 0.0,
    scheme: str = "leapfrog",
    accuracy: str | None = None,
) -> tuple[jax.Array, jax.Array]:
    """Positions and velocities after some steps, with derivatives by everything that they begin with.

    A gradient takes the steps back, in the memory of one state. Forward mode and second derivatives
    write the steps out in JAX.

    Parameters
    ----------
    pos, vel : arrays, shape (N, 3)
    m : array, shape (N,), or number
    dt : number
        Length of a step.
    steps : int
    eps : number
        Softening length ≥ 0.
    G : number
    field : `Field`, callable or object, or a list of them, optional
        External fields: formulas, or functions of time and position (3,) that return an acceleration (3,) in
        operations of JAX. An object may have such a method `acceleration`. There are derivatives by parameters of
        formulas, and by all arrays that functions use.
    time : number
        Time at the beginning, for functions.
    scheme : {"leapfrog", "leapfrog-dkd", "yoshida4", "yoshida6"}
        Schemes that can be taken back. Hermite's schemes and block time steps cannot.
    accuracy : {"double", "single", "fast"}, optional
        Precision of pairs: by default of the arrays. The state on the way is float64.

    Returns
    -------
    pos, vel : arrays, shape (N, 3)
    """
    if scheme not in list(SCHEMES):
        why = " is not taken back step by step, which its gradient needs" if scheme in _native.names()["integrator"] else ""
        raise ValueError(f"`scheme` must be one of {', '.join(SCHEMES)}; {scheme!r}{why or ' is none of them'}")
    count = _count("steps", steps)
    if not 0 <= count < 1 << 31:
        raise ValueError(f"`steps` must be ≥ 0 and below 2**31, got {steps}")
    x, mass, softening, double = _bodies(pos, m, eps, accuracy)
    v = _float("vel", vel)
    if v.shape != x.shape:
        raise ValueError(f"`vel` must have the shape of `pos`, {x.shape}, not {v.shape}")
    if v.dtype != x.dtype:
        raise TypeError(f"`vel` is {v.dtype} and `pos` {x.dtype}: convert one of them")
    h = _like("dt", dt, x, x.shape[:-2])
    mass = _scaled("G", G, mass)
    fields, numbers = _fields(field, G, x)
    more = () if fields is None else (_like("time", time, x, x.shape[:-2]), *numbers)
    last_x, last_v, *_ = _trajectory.bind(
        x, mass, softening, v, h, *more, steps=count, scheme=scheme, double=double, fields=fields
    )
    return last_x, last_v


def _count(argument: str, value: Any) -> int:
    """A whole number, which must be known where JAX traces."""
    unitless(argument, value)
    try:
        return operator.index(value)
    except TypeError as error:
        error.args = (f"`{argument}` must be a whole number that JAX does not trace: {error}",)
        raise


def _fields(given: Any, G: Any, x: _Array) -> tuple[_Fields | None, list[_Array]]:
    """The argument `field`, and its numbers for each system."""
    if given is None:
        return None, []
    systems = x.shape[:-2]
    functions: list[tuple[Callable[..., Any], int]] = []
    numbers: list[_Array] = []
    for field in given if isinstance(given, (list, tuple)) else [given]:
        if isinstance(field, Field):
            own = [_like(key, value, x, systems) for key, value in [("G", G), *field.parameters.items()]]
            functions.append((formula(field.name), len(own)))
        elif callable(function := getattr(field, "acceleration", field)):
            traced = Traced(function, x)
            own = [jnp.broadcast_to(number, (*systems, *number.shape)) for number in traced.numbers]
            functions.append((traced.function(), len(own)))
        else:
            raise TypeError(
                "`field` must be a `Field`, a function of time and position, or an object with such a method "
                f"`acceleration`, not {type(field).__name__}: write a text as `Field('nfw', mass=1.0, scale=2.0)`"
            )
        numbers += own
    return _Fields(functions), numbers
