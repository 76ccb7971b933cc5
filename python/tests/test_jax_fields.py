"""External fields of trajectories in JAX, compared with the package's own fields and with JAX's own derivatives."""

from functools import partial
from types import SimpleNamespace
from typing import Any, Callable

import numpy as np
import pytest

import allpairs as ap

jax = pytest.importorskip("jax", reason="JAX is not installed")
jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp  # noqa: E402

import allpairs.jax as aj  # noqa: E402
from allpairs import _field_formulas  # noqa: E402

FIELDS: list[tuple[str, dict[str, float]]] = [
    ("point", {"mass": 2.0}),
    ("plummer", {"mass": 2.0, "scale": 0.7}),
    ("hernquist", {"mass": 2.0, "scale": 0.7}),
    ("nfw", {"mass": 2.0, "scale": 0.7}),
    ("miyamoto-nagai", {"mass": 2.0, "a": 0.8, "b": 0.3}),
    ("isochrone", {"mass": 2.0, "scale": 0.7}),
    ("logarithmic", {"speed": 1.2, "core": 0.3, "flattening": 0.8}),
    ("power-law", {"mass": 2.0, "cutoff": 1.5, "exponent": 1.1}),
]
EPS = 0.1


def bodies(n: int = 6) -> tuple[Any, Any, Any]:
    pos, vel = np.random.default_rng(n).normal(size=(2, n, 3))
    m = np.linspace(0.0, 0.3, n)
    return jnp.asarray(pos), jnp.asarray(vel), jnp.asarray(m)


def near(found: Any, expected: Any, *, error: float = 1e-12) -> None:
    found, expected = jax.tree.leaves(found), jax.tree.leaves(expected)
    assert len(found) == len(expected)
    for a, b in zip(found, expected):
        assert a.shape == b.shape
        assert np.abs(a - b).max(initial=0) <= error * (1 + np.abs(b).max(initial=0)), (a, b)


@pytest.mark.parametrize("name, parameters", FIELDS, ids=[name for name, _ in FIELDS])
def test_formulas_are_the_fields_of_simulations(name: str, parameters: dict[str, float]) -> None:
    points = np.random.default_rng(1).normal(size=(20, 3)) * np.geomspace(1e-3, 30, 20)[:, None]
    given = {**parameters, "x": 0.2, "y": -0.1, "z": 0.3}
    points = points + [0.2, -0.1, 0.3]

    def exact(given: dict[str, float]) -> np.ndarray:
        acc: np.ndarray = ap.field_at(points, field=str(aj.Field(name, **given)), G=1.5)[0]
        return acc

    def ours(given: dict[str, Any]) -> Any:
        return aj.Field(name, **given).acceleration(0.0, points, G=1.5)

    acc, by = ours(given), jax.jit(jax.jacfwd(ours))(given)
    assert np.abs(acc / exact(given) - 1).max() < 2e-12
    for key, value in given.items():
        h = 1e-4
        at = [exact({**given, key: value + shift * h}) for shift in (1, -1, 2, -2)]
        slope = (8 * (at[0] - at[1]) - (at[2] - at[3])) / (12 * h)
        far = slice(7, None)  # differences are poor near the centre
        assert np.abs(by[key] - slope)[far].max() < 1e-8 * np.abs(slope[far]).max(), key
    centre = jnp.array([0.2, -0.1, 0.3])
    found = jax.grad(lambda given: aj.Field(name, **given).acceleration(0.0, centre).sum())(given)
    assert all(bool(jnp.isfinite(part)) for part in found.values()) == (name != "point")


def gammainc(a: Any, x: Any) -> Any:
    """The function as PyTorch takes it."""
    xp = SimpleNamespace(**vars(jnp), lgamma=jax.scipy.special.gammaln)
    return _field_formulas.gammainc(xp, a, x, jnp.arange(_field_formulas.GAMMA_TERMS, dtype=float))


def test_formulas_take_many_systems_at_once() -> None:
    """PyTorch calls them so: components first, systems and bodies behind them."""
    xp = SimpleNamespace(**vars(jnp), gammainc=gammainc)
    points = jnp.asarray(np.random.default_rng(1).normal(size=(2, 5, 3)))
    for name, parameters in FIELDS:
        given = {**parameters, "x": 0.2, "y": -0.1, "z": 0.3}
        numbers = [jnp.array([value, 1.1 * value]) for value in (1.5, *given.values())]
        spread = [number[:, None] for number in numbers]
        found = _field_formulas.acceleration(xp, name, jnp.moveaxis(points, -1, 0), *spread)
        single = [
            aj.Field(name, **{key: number[i] for key, number in zip(given, numbers[1:])}).acceleration(0.0, points[i], G=numbers[0][i])
            for i in range(2)
        ]
        near(jnp.moveaxis(found, 0, -1), jnp.stack(single), error=1e-13)


def test_the_incomplete_gamma_function_and_its_derivatives() -> None:
    a, x = jnp.linspace(0.51, 1.5, 12)[:, None], jnp.geomspace(1e-6, 100, 200)
    exact = jax.scipy.special.gammainc
    assert np.abs(gammainc(a, x) / exact(a, x) - 1).max() < 1e-13
    every = [jax.vmap(jax.vmap(jax.grad(f, (0, 1)), (None, 0)), (0, None))(a[:, 0], x) for f in (gammainc, exact)]
    near(*every, error=1e-12)


def kicks_and_drifts(scheme: str) -> list[tuple[bool, float]]:
    w = 1 / (2 - 2 ** (1 / 3))
    leapfrog = [(True, 0.5), (False, 1.0), (True, 0.5)]
    return {
        "leapfrog": leapfrog,
        "leapfrog-dkd": [(False, 0.5), (True, 1.0), (False, 0.5)],
        "yoshida4": [(kicks, w * share) for w in (w, 1 - 2 * w, w) for kicks, share in leapfrog],
    }[scheme]


def losses(steps: int, scheme: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """A function of the end of a trajectory in a formula and a field of the user's, by the package and written out."""

    def ours(x: Any, v: Any, m: Any, dt: Any, eps: Any, G: Any, time: Any, mass: Any, scale: Any, k: Any) -> Any:
        halo = aj.Field("plummer", mass=mass, scale=scale, x=0.3)
        field = [halo, lambda t, x: -k * x * jnp.cos(3 * t)]
        x, v = aj.leapfrog(x, v, m, dt, steps, eps, G=G, field=field, time=time, scheme=scheme)
        return (x**2).sum() + jnp.sin(v).sum()

    def plain(x: Any, v: Any, m: Any, dt: Any, eps: Any, G: Any, time: Any, mass: Any, scale: Any, k: Any) -> Any:
        own = jnp.eye(len(x), dtype=bool)
        for _ in range(steps):
            for kicks, share in kicks_and_drifts(scheme):
                if kicks:
                    d = x[None] - x[:, None]
                    cubes = jnp.where(own, 0, jnp.where(own, 1, (d**2).sum(-1) + eps**2) ** -1.5)
                    at = x - jnp.array([0.3, 0, 0])
                    halo = mass * at * ((at**2).sum(-1) + scale**2)[:, None] ** -1.5
                    a = G * jnp.einsum("j,ij,ijk->ik", m, cubes, d) - G * halo - k * x * jnp.cos(3 * time)
                    v = v + share * dt * a
                else:
                    x, time = x + share * dt * v, time + share * dt
        return (x**2).sum() + jnp.sin(v).sum()

    return ours, plain


GIVEN = (0.05, EPS, 1.3, 0.7, 2.0, 1.1, 0.4)
ALL = tuple(range(10))


@pytest.mark.parametrize("scheme, steps", [("leapfrog", 0), ("leapfrog", 1), ("leapfrog", 4), ("leapfrog-dkd", 3), ("yoshida4", 3)])
def test_trajectories(scheme: str, steps: int) -> None:
    x, v, m = bodies()
    given = (x, v, m, *GIVEN)
    near(*[jax.jit(jax.value_and_grad(f, argnums=ALL))(*given) for f in losses(steps, scheme)])


def test_transformations() -> None:
    x, v, m = bodies(3)
    given = (x, v, m, *GIVEN)
    pair = losses(2, "leapfrog")
    along = (v, x, 0.1 * m, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
    near(*[jax.jit(lambda f=f: jax.jvp(f, given, along))() for f in pair])
    near(*[jax.jit(jax.jacfwd(jax.grad(f, argnums=(7, 9)), argnums=(0, 7)))(*given) for f in pair])
    near(*[jax.jit(jax.jacrev(jax.grad(f, argnums=(3, 8)), argnums=(1, 8)))(*given) for f in pair])
    masses = jnp.array([1.0, 2.0, 3.0])
    axes = (None,) * 7 + (0, None, 0)
    many = (*given[:7], masses, 1.1, masses / 5)
    near(*[jax.jit(jax.vmap(jax.grad(jax.checkpoint(f), argnums=(0, 7, 9)), axes))(*many) for f in pair])
    near(*[jax.jit(jax.grad(lambda masses, f=f: jax.vmap(f, axes)(*given[:7], masses, 1.1, masses).sum()))(masses) for f in pair])
    # At once, and with systems as leading dimensions.
    halo = aj.Field("nfw", mass=masses, scale=1.0)
    together = aj.leapfrog(jnp.stack([x, x, x]), jnp.stack([v, v, v]), m, 0.1, 3, EPS, field=halo)
    single = [aj.leapfrog(x, v, m, 0.1, 3, EPS, field=aj.Field("nfw", mass=mass, scale=1.0)) for mass in (1.0, 2.0, 3.0)]
    near(together, jax.tree.map(lambda *parts: jnp.stack(parts), *single))


def test_trajectories_are_those_of_simulations() -> None:
    x, v, m = bodies(20)
    for scheme in ("leapfrog", "leapfrog-dkd", "yoshida4", "yoshida6"):
        field = aj.Field("miyamoto-nagai", mass=3.0, a=0.5, b=0.2)
        ends = aj.leapfrog(x, v, m, 0.02, 10, EPS, G=1.5, field=field, scheme=scheme)
        sim = ap.Simulation(
            ap.Bodies(np.asarray(m), np.asarray(x), np.asarray(v)), field=str(field), softening=EPS, dt=0.02, G=1.5,
            integrator=scheme, accuracy="double", device="cpu",
        )  # fmt: skip
        sim.step(10)
        near(ends, (sim.bodies.pos, sim.bodies.vel), error=1e-11)


def test_memory_of_a_gradient_does_not_grow_with_steps() -> None:
    x, v, m = bodies(50)

    def memory(steps: int) -> int:
        def loss(mass: Any) -> Any:
            field = aj.Field("plummer", mass=mass, scale=1.0)
            return (aj.leapfrog(x, v, m, 0.01, steps, EPS, field=field)[0] ** 2).sum()

        compiled = jax.jit(jax.grad(loss)).lower(1.0).compile()
        found: int = compiled.memory_analysis().temp_size_in_bytes
        return found

    assert memory(10_000) <= memory(10) + 1000


def test_single_precision() -> None:
    x, v, m = bodies(30)

    def loss(dtype: Any, mass: Any) -> Any:
        field = aj.Field("plummer", mass=mass, scale=1.0)
        begun, moving, masses = (a.astype(dtype) for a in (x, v, m))
        return (aj.leapfrog(begun, moving, masses, 0.01, 50, EPS, field=field)[0] ** 2).sum()

    single, double = (jax.jit(jax.grad(partial(loss, dtype)))(dtype(2.0)) for dtype in (jnp.float32, jnp.float64))
    assert single.dtype == jnp.float32 and abs(single / double - 1) < 1e-4


def test_bad_arguments_are_refused_by_name() -> None:
    x, v, m = bodies()

    def run(field: Any, **more: Any) -> Any:
        return aj.leapfrog(x, v, m, 0.1, 2, EPS, field=field, **more)

    cases: list[tuple[type[Exception], str, Callable[[], Any]]] = [
        (ValueError, "name", lambda: aj.Field("plumer", mass=1.0, scale=1.0)),
        (ValueError, "name", lambda: aj.Field("tide", omega=1.0)),
        (TypeError, "name", lambda: aj.Field(["plummer"])),  # type: ignore[arg-type]
        (ValueError, "scale", lambda: aj.Field("plummer", mass=1.0)),
        (ValueError, "radius", lambda: aj.Field("plummer", mass=1.0, radius=1.0)),
        (ValueError, "scale", lambda: aj.Field("plummer", mass=1.0, scale=0.0)),
        (ValueError, "mass", lambda: aj.Field("plummer", mass=np.nan, scale=1.0)),
        (ValueError, "a", lambda: aj.Field("miyamoto-nagai", mass=1.0, a=-1.0, b=1.0)),
        (ValueError, "exponent", lambda: aj.Field("power-law", mass=1.0, cutoff=1.0, exponent=2.0)),
        (TypeError, "mass", lambda: aj.Field("point", mass="heavy")),
        (TypeError, "field", lambda: run("nfw:mass=1,scale=2")),
        (ValueError, "field", lambda: run(lambda t, x: x[:2])),
        (ValueError, "mass", lambda: run(aj.Field("point", mass=jnp.ones(3)))),
        (ValueError, "time", lambda: run(aj.Field("point", mass=1.0), time=jnp.ones(3))),
        (TypeError, "field", lambda: jax.jit(lambda k: run(lambda t, x: -k * x))(2)),
    ]
    for kind, argument, call in cases:
        with pytest.raises(kind, match=f"`{argument}`"):
            call()
    with pytest.raises(ValueError, match="depends on velocities"):
        aj.Field("tide", omega=1.0)
