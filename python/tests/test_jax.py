"""Forces, potentials and trajectories in JAX, compared with JAX's own derivatives of sums that are written out."""

from functools import partial
from typing import Any, Callable

import astropy.units as u
import numpy as np
import pytest
import unyt

import allpairs as ap

jax = pytest.importorskip("jax", reason="JAX is not installed")
jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp  # noqa: E402

import allpairs.jax as aj  # noqa: E402

Sum = Callable[..., Any]
N, EPS = 12, 0.1


def bodies(n: int = N, seed: int = 1) -> tuple[Any, Any, Any]:
    random = np.random.default_rng(seed)
    m = random.uniform(0.5, 1.5, n) / n
    m[2] = 0
    pos, vel = random.normal(size=(2, n, 3))
    return jnp.asarray(pos), jnp.asarray(m), jnp.asarray(vel)


def pairs(x: Any, eps: Any) -> tuple[Any, Any]:
    d = x[None] - x[:, None]
    own = jnp.eye(len(x), dtype=bool)
    return d, jnp.where(own, 0, jnp.where(own, 1, (d**2).sum(-1) + eps**2) ** -0.5)


def accelerations(x: Any, m: Any, eps: Any = 0.0, *, G: Any = 1.0) -> Any:
    d, inverse = pairs(x, eps)
    return G * jnp.einsum("j,ij,ijk->ik", m, inverse**3, d)


def potential(x: Any, m: Any, eps: Any = 0.0, *, G: Any = 1.0) -> Any:
    return -G * pairs(x, eps)[1] @ m


def leapfrog(
    x: Any, v: Any, m: Any, dt: Any, steps: int, eps: Any = 0.0, *, G: Any = 1.0, scheme: str = "leapfrog"
) -> Any:
    kinds = {"leapfrog": [("kick", 0.5), ("drift", 1.0), ("kick", 0.5)]}
    kinds["leapfrog-dkd"] = [("drift", 0.5), ("kick", 1.0), ("drift", 0.5)]
    w = 1 / (2 - 2 ** (1 / 3))
    kinds["yoshida4"] = [(kind, w * c) for w in (w, 1 - 2 * w, w) for kind, c in kinds["leapfrog"]]
    for _ in range(steps):
        for kind, share in kinds[scheme]:
            if kind == "kick":
                v = v + share * dt * accelerations(x, m, eps, G=G)
            else:
                x = x + share * dt * v
    return x, v


SUMS: list[tuple[Sum, Sum]] = [(aj.accelerations, accelerations), (aj.potential, potential)]
both = pytest.mark.parametrize("ours, plain", SUMS, ids=["accelerations", "potential"])


def near(found: Any, expected: Any, *, error: float = 1e-12) -> None:
    found, expected = jax.tree.leaves(found), jax.tree.leaves(expected)
    assert len(found) == len(expected)
    for a, b in zip(found, expected):
        a, b = np.asarray(a), np.asarray(b)
        assert a.shape == b.shape and a.dtype == b.dtype
        assert np.abs(a - b).max(initial=0) <= error * (1 + np.abs(b).max(initial=0)), (a, b)


def values(f: Sum) -> Sum:
    """A function of all arguments with one number as result."""
    return lambda x, m, eps, G: (jnp.sin(f(x, m, eps, G=G)) ** 2).sum()


@both
@pytest.mark.parametrize("eps", [0.0, EPS])
def test_values_and_first_derivatives(ours: Sum, plain: Sum, eps: float) -> None:
    x, m, v = bodies()
    given = (x, m, eps, 1.7)
    for wrapped in (lambda f: f, jax.jit):
        near(wrapped(ours)(x, m, eps), plain(x, m, eps))
        near(wrapped(values(ours))(*given), values(plain)(*given))
        for argnums in (0, 1, 3, (0, 1), (0, 1, 2, 3)):
            if eps == 0 and argnums == (0, 1, 2, 3):
                continue
            gradient = partial(jax.grad, argnums=argnums)
            near(wrapped(gradient(values(ours)))(*given), gradient(values(plain))(*given))
    directions = (v, 0.1 * m, 0.2, 0.3)
    along = [jax.jvp(values(f), given, directions) for f in (ours, plain)]
    near(*along)
    near(*[jax.jvp(lambda m, f=f: f(x, m, eps), (m,), (m[::-1],)) for f in (ours, plain)])
    near(*[jax.jacfwd(f)(x, m, eps) for f in (ours, plain)])
    near(*[jax.jacrev(f, argnums=(0, 1))(x, m, eps) for f in (ours, plain)])
    near(*[jax.checkpoint(jax.grad(values(f)))(*given) for f in (ours, plain)])


@both
def test_second_derivatives(ours: Sum, plain: Sum) -> None:
    x, m, v = bodies(5)
    given = (x, m, EPS, 1.7)
    near(*[jax.hessian(values(f))(*given) for f in (ours, plain)], error=1e-11)
    near(*[jax.jit(jax.hessian(values(f), argnums=(0, 1, 2)))(*given) for f in (ours, plain)], error=1e-11)

    def forward_over_reverse(f: Sum) -> Any:
        return jax.jvp(lambda x: jax.grad(values(f))(x, *given[1:]), (x,), (v,))[1]

    def reverse_over_forward(f: Sum) -> Any:
        return jax.grad(lambda x: jax.jvp(lambda x: values(f)(x, *given[1:]), (x,), (v,))[1])(x)

    def reverse_over_reverse(f: Sum) -> Any:
        return jax.grad(lambda x: (jax.grad(values(f))(x, *given[1:]) * v).sum())(x)

    for product in (forward_over_reverse, reverse_over_forward, reverse_over_reverse):
        near(product(ours), product(plain), error=1e-11)


@both
def test_vmap_is_independent_systems(ours: Sum, plain: Sum) -> None:
    many = [bodies(seed=seed) for seed in range(6)]
    x, m, v = (jnp.stack(parts) for parts in zip(*many))
    eps = jnp.linspace(0.1, 0.3, 6)
    near(jax.vmap(ours)(x, m, eps), jax.vmap(plain)(x, m, eps))
    near(ours(x, m, eps), jax.vmap(plain)(x, m, eps))
    near(jax.vmap(ours, (0, None, None))(x, m[0], EPS), jax.vmap(plain, (0, None, None))(x, m[0], EPS))
    near(jax.vmap(ours, (None, 1, None))(x[0], m.T, EPS), jax.vmap(plain, (None, 1, None))(x[0], m.T, EPS))
    for axes in [(0, 0, 0, None), (0, None, None, 0)]:
        given = tuple(a if axis == 0 else a[0] for a, axis in zip((x, m, eps, eps), axes))
        near(*[jax.jit(jax.vmap(jax.grad(values(f), argnums=(0, 1, 2)), axes))(*given) for f in (ours, plain)])
    nested = [jax.vmap(jax.vmap(f, (0, None, None)), (None, 0, 0))(x, m, eps) for f in (ours, plain)]
    near(*nested)
    assert nested[0].shape[:2] == (6, 6)
    # Enough bodies for several threads, and one system after another.
    big, mass, _ = bodies(400)
    batch = jnp.stack([big, big + 1, 2 * big])
    near(jax.vmap(ours, (0, None, None))(batch, mass, EPS), jnp.stack([plain(b, mass, EPS) for b in batch]), error=1e-11)


def test_within_scan_and_loops() -> None:
    x, m, v = bodies()

    def path(f: Sum) -> Sum:
        def energy(x: Any) -> Any:
            def step(state: Any, _: Any) -> Any:
                x, v = state
                v = v + 0.01 * f(x, m, EPS)
                return (x + 0.01 * v, v), None

            return (jax.lax.scan(jax.checkpoint(step), (x, v), None, length=20)[0][0] ** 2).sum()

        return energy

    near(*[jax.jit(jax.value_and_grad(path(f)))(x) for f in (aj.accelerations, accelerations)])


@pytest.mark.parametrize("accuracy, error", [(None, 3e-6), ("single", 3e-6), ("double", 2e-7)])
def test_single_precision(accuracy: str | None, error: float) -> None:
    x, m, _ = bodies(60)
    single = (x.astype(jnp.float32), m.astype(jnp.float32), 0.2)
    found = aj.accelerations(*single, accuracy=accuracy)
    near(found, accelerations(x, m, 0.2).astype(jnp.float32), error=error)
    loss = lambda f, **more: lambda x, m: (f(x, m, 0.2, **more) ** 2).sum()  # noqa: E731
    found = jax.grad(loss(aj.accelerations, accuracy=accuracy), argnums=(0, 1))(*single[:2])
    exact = jax.grad(loss(accelerations), argnums=(0, 1))(x, m)
    near(found, jax.tree.map(lambda a: a.astype(jnp.float32), exact), error=10 * error)
    assert aj.accelerations(x, m, 0.2, accuracy="single").dtype == jnp.float64


def test_fields_at_points() -> None:
    x, m, v = bodies()

    def plain(points: Any, x: Any, m: Any, eps: Any) -> Any:
        d = x[None] - points[:, None]
        inverse = ((d**2).sum(-1) + eps**2) ** -0.5
        return jnp.einsum("j,ij,ijk->ik", m, inverse**3, d), -inverse @ m

    near(aj.field_at(v, x, m, EPS), plain(v, x, m, EPS))
    loss = lambda f: lambda *all: sum((part**2).sum() for part in f(*all))  # noqa: E731
    given = (v[:7], x, m, EPS)
    near(*[jax.grad(loss(f), argnums=(0, 1, 2, 3))(*given) for f in (aj.field_at, plain)])
    acc, pot = ap.field_at(np.asarray(v), np.asarray(x), np.asarray(m), EPS)
    near(aj.field_at(v, x, m, EPS), (acc, pot))


@pytest.mark.parametrize("scheme", ["leapfrog", "leapfrog-dkd", "yoshida4"])
@pytest.mark.parametrize("steps", [0, 1, 2, 9])
def test_trajectories(scheme: str, steps: int) -> None:
    x, m, v = bodies()
    given = (x, v, m, 0.02, EPS, 1.3)

    def loss(f: Sum) -> Sum:
        def of(x: Any, v: Any, m: Any, dt: Any, eps: Any, G: Any) -> Any:
            x, v = f(x, v, m, dt, steps, eps, G=G, scheme=scheme)
            return (x**2).sum() + jnp.sin(v).sum()

        return of

    ours, plain = loss(aj.leapfrog), loss(leapfrog)
    near(*[f(x, v, m, 0.02, steps, EPS, scheme=scheme) for f in (aj.leapfrog, leapfrog)])
    all = (0, 1, 2, 3, 4, 5)
    near(jax.grad(ours, argnums=all)(*given), jax.grad(plain, argnums=all)(*given))
    near(jax.jit(jax.grad(ours))(*given), jax.grad(plain)(*given))
    directions = (v, x, 0.1 * m, 0.1, 0.2, 0.3)
    near(*[jax.jvp(f, given, directions) for f in (ours, plain)])
    if steps == 2:
        near(*[jax.jacfwd(jax.grad(f, argnums=(0, 2)), argnums=(0, 3))(*given) for f in (ours, plain)], error=1e-11)
        near(*[jax.jacrev(jax.grad(f, argnums=(1, 4)), argnums=(0, 1))(*given) for f in (ours, plain)], error=1e-11)
    many = jnp.stack([x, x + 0.1, 1.1 * x])
    batch = (0, None, None, None, None, None)
    near(*[jax.vmap(jax.grad(f, argnums=(0, 2)), batch)(many, *given[1:]) for f in (ours, plain)])


def test_long_gradients_and_single_precision() -> None:
    x, m, v = bodies(100)
    single = tuple(a.astype(jnp.float32) for a in (x, v, m))

    def loss(x: Any, v: Any, m: Any) -> Any:
        return (aj.leapfrog(x, v, m, 0.01, 100, 0.05)[0] ** 2).sum()

    def plain(x: Any, v: Any, m: Any) -> Any:
        def step(state: Any, _: Any) -> Any:
            x, v = state
            return leapfrog(x, v, m, 0.01, 1, 0.05), None

        return (jax.lax.scan(step, (x, v), None, length=100)[0][0] ** 2).sum()

    exact = jax.jit(jax.grad(plain, argnums=(0, 1, 2)))(x, v, m)
    near(jax.grad(loss, argnums=(0, 1, 2))(x, v, m), exact)
    near(jax.grad(loss, argnums=(0, 1, 2))(*single), jax.tree.map(lambda a: a.astype(jnp.float32), exact), error=1e-4)


def test_bad_arguments_are_refused_by_name() -> None:
    x, m, v = bodies()
    cases: list[tuple[type[Exception], str, Callable[[], Any]]] = [
        (ValueError, "pos", lambda: aj.accelerations(x[:, :2], m)),
        (TypeError, "pos", lambda: aj.accelerations(x.astype(int), m)),
        (TypeError, "pos", lambda: aj.accelerations(x.astype(complex), m)),
        (ValueError, "m", lambda: aj.accelerations(x, m[:4])),
        (TypeError, "m", lambda: aj.accelerations(x.astype(jnp.float32), m)),
        (TypeError, "m", lambda: aj.accelerations(x, m.astype(bool))),
        (ValueError, "eps", lambda: aj.accelerations(x, m, x)),
        (ValueError, "accuracy", lambda: aj.accelerations(x, m, accuracy="high")),
        (ValueError, "G", lambda: aj.potential(x, m, G=m)),
        (ValueError, "points", lambda: aj.field_at(x[0], x, m)),
        (ValueError, "vel", lambda: aj.leapfrog(x, v[:3], m, 0.1, 3)),
        (TypeError, "vel", lambda: aj.leapfrog(x, v.astype(jnp.float32), m, 0.1, 3)),
        (ValueError, "steps", lambda: aj.leapfrog(x, v, m, 0.1, -1)),
        (TypeError, "steps", lambda: aj.leapfrog(x, v, m, 0.1, 1.5)),  # type: ignore[arg-type]
        (TypeError, "pos", lambda: aj.accelerations(None, m)),
        (TypeError, "m", lambda: aj.accelerations(x, None)),
        (TypeError, "eps", lambda: aj.accelerations(x, m, "soft")),
        (TypeError, "G", lambda: aj.accelerations(x, m, G="strong")),
        (TypeError, "vel", lambda: aj.leapfrog(x, None, m, 0.1, 3)),
        (ValueError, "scheme", lambda: aj.leapfrog(x, v, m, 0.1, 3, scheme="hermite4")),
        (ValueError, "dt", lambda: aj.leapfrog(x, v, m, m, 3)),
        (jax.errors.TracerIntegerConversionError, "steps", lambda: jax.jit(aj.leapfrog)(x, v, m, 0.1, 3)),
    ]
    for kind, argument, call in cases:
        with pytest.raises(kind, match=f"`{argument}`"):
            call()
    with pytest.raises(ValueError, match="Hermite|taken back"):
        aj.leapfrog(x, v, m, 0.1, 3, scheme="hermite4")


@pytest.mark.parametrize("quantity", [u.Quantity, unyt.unyt_array, lambda value, unit: [u.Quantity(value, unit)]])
def test_quantities_are_refused_by_name(quantity: Callable[[Any, str], Any]) -> None:
    x, m, v = bodies()
    kpc, msun, one = quantity(np.asarray(x), "kpc"), quantity(np.asarray(m), "Msun"), quantity(1.0, "pc")
    cases: list[tuple[str, Callable[[], Any]]] = [
        ("pos", lambda: aj.accelerations(kpc, m)),
        ("m", lambda: aj.accelerations(x, msun)),
        ("eps", lambda: aj.accelerations(x, m, one)),
        ("G", lambda: aj.accelerations(x, m, G=one)),
        ("pos", lambda: aj.potential(kpc, m)),
        ("G", lambda: aj.potential(x, m, G=one)),
        ("points", lambda: aj.field_at(kpc, x, m)),
        ("vel", lambda: aj.leapfrog(x, quantity(np.asarray(v), "km/s"), m, 0.1, 3)),
        ("dt", lambda: aj.leapfrog(x, v, m, quantity(0.01, "Myr"), 3)),
        ("steps", lambda: aj.leapfrog(x, v, m, 0.1, quantity(3, "pc"))),
        ("time", lambda: aj.leapfrog(x, v, m, 0.1, 3, field=aj.Field("point", mass=1.0), time=quantity(0.01, "Myr"))),
        ("G", lambda: aj.leapfrog(x, v, m, 0.1, 3, G=one)),
        ("mass", lambda: aj.Field("nfw", mass=quantity(1e12, "Msun"), scale=2.0)),
        ("scale", lambda: aj.Field("nfw", mass=1.0, scale=one)),
        ("x", lambda: aj.Field("point", mass=1.0, x=one)),
        ("pos", lambda: aj.Field("point", mass=1.0).acceleration(0.0, kpc)),
        ("G", lambda: aj.Field("point", mass=1.0).acceleration(0.0, x, G=one)),
    ]
    for argument, call in cases:
        with pytest.raises(ValueError, match=f"`{argument}` has the unit .*: give plain numbers"):
            call()


def test_what_the_numbers_forbid_is_refused_when_it_is_computed() -> None:
    x, m, _ = bodies()
    same = x.at[3].set(x[7])
    assert bool(jnp.isfinite(aj.accelerations(same, m)).all())
    loss = lambda x, eps: (aj.accelerations(x, m, eps) ** 2).sum()  # noqa: E731
    assert bool(jnp.isfinite(jax.grad(loss)(same, 0.1)).all())
    refused = (ValueError, jax.errors.JaxRuntimeError)  # as it is computed at once or later
    if jax.default_backend() == "gpu":  # which says nothing back
        assert bool(jnp.isnan(jax.grad(loss)(same, 0.0)).any())
    else:
        with pytest.raises(refused, match="`pos`: bodies 3 and 7 are at the same place"):
            jax.block_until_ready(jax.grad(loss)(same, 0.0))
    with pytest.raises(refused, match="`eps` must be ≥ 0"):
        jax.block_until_ready(aj.accelerations(x, m, -1.0))
    assert bool(jnp.isnan(aj.accelerations(x.at[0].set(jnp.nan), m, 0.1)).any())


def test_gpus_are_called_and_other_platforms_refused() -> None:
    x, m, v = bodies()
    path = jax.grad(lambda x, m: aj.leapfrog(x, v, m, 0.1, 3)[0].sum())
    for f, name in [(aj.accelerations, "force_double"), (path, "trajectory_pull_double")]:
        traced = jax.jit(f).trace(x, m)
        assert f"allpairs_{name}" in traced.lower(lowering_platforms=("cuda",)).as_text()
        with pytest.raises(NotImplementedError, match="on CPUs and on NVIDIA's GPUs"):
            traced.lower(lowering_platforms=("tpu",))
