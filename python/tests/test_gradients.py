"""Jerks, and derivatives of accelerations, compared with sums that numpy makes."""

from typing import Any

import numpy as np
import pytest

import allpairs as ap
from allpairs import _native


def bodies(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Positions, masses of which some are 0, velocities and cotangents."""
    random = np.random.default_rng(n)
    pos, vel, lam = random.normal(size=(3, n, 3))
    m = random.uniform(0.5, 1.5, n) / n
    m[3::7] = 0
    return pos, m, vel, lam


def accelerations(pos: np.ndarray, m: np.ndarray, eps: float) -> np.ndarray:
    r = pos[None] - pos[:, None]
    d2 = (r**2).sum(2) + eps**2 + np.eye(len(m))
    cubes = np.where(np.eye(len(m), dtype=bool), 0, d2**-1.5)
    acc: np.ndarray = np.einsum("j,ij,ijk->ik", m, cubes, r)
    return acc


def slope(function: Any, h: float = 1e-4) -> Any:
    """Derivative at 0 by differences of fourth order."""
    return (8 * (function(h) - function(-h)) - (function(2 * h) - function(-2 * h))) / (12 * h)


@pytest.mark.parametrize("device, accuracy, error", [("cpu", "double", 1e-9), ("emulator", "single", 3e-5)])
@pytest.mark.parametrize("n", [1, 2, 100])
def test_jerks_are_derivatives_in_time(n: int, device: str, accuracy: str, error: float) -> None:
    pos, m, vel, _ = bodies(n)
    acc, jerk = ap.accelerations(pos, m, 0.3, vel=vel, G=2.0, device=device, accuracy=accuracy)
    exact = slope(lambda t: 2 * accelerations(pos + t * vel, m, 0.3))
    assert acc == pytest.approx(2 * accelerations(pos, m, 0.3), abs=error)
    assert jerk == pytest.approx(exact, abs=error * (1 + np.abs(exact).max()))
    assert ap.accelerations(np.empty((0, 3)), [], vel=np.empty((0, 3)))[1].shape == (0, 3)


@pytest.mark.parametrize("eps", [0.0, 0.1])
@pytest.mark.parametrize("n, device", [(1, "cpu"), (2, "cpu"), (30, "cpu"), (1200, "auto"), (1, "emulator"), (150, "emulator")])
def test_pull_is_the_derivative_of_the_sum(n: int, device: str, eps: float) -> None:
    pos, m, vel, lam = bodies(n)
    found = ap.pull(pos, m, lam, eps, G=3.0, device=device)
    acc, of_pos, of_m, of_eps = found
    assert found.acc is acc and of_eps is not None
    assert acc == pytest.approx(ap.accelerations(pos, m, eps, G=3.0, device="cpu"), rel=1e-11, abs=1e-12)
    value, size = (lam * acc).sum(), np.abs(of_pos).max() + 1
    # Symmetries: a shift, a turn, another unit of mass and of length.
    assert np.abs(of_pos.sum(0)).max() < 1e-11 * size
    assert np.abs((np.cross(pos, of_pos) - np.cross(acc, lam)).sum(0)).max() < 1e-11 * size
    assert (m * of_m).sum() == pytest.approx(value, abs=1e-11 * size)
    assert (pos * of_pos).sum() + eps * of_eps == pytest.approx(-2 * value, abs=1e-11 * size)
    if n <= 150:
        rate = np.linspace(-1, 1, n)

        def along(t: float) -> float:
            moved = accelerations(pos + t * vel, m + t * rate, eps * (1 + t))
            return float(3 * (lam * moved).sum())

        there = (of_pos * vel).sum() + (of_m * rate).sum() + eps * of_eps
        h = 1e-6 if eps == 0 else 1e-4
        assert slope(along, h) == pytest.approx(there, abs=1e-6 * size)
    some = ap.pull(pos, m, lam, eps, G=3.0, masses=False, softening=False, device=device)
    assert some.m is None and some.eps is None and (some.pos == of_pos).all()
    single = ap.pull(pos, m, lam, eps, G=3.0, accuracy="single", device=device)
    assert single.pos == pytest.approx(of_pos, abs=1e-3 * size)


def test_bad_arguments_are_refused_by_name() -> None:
    pos, m, vel, lam = bodies(20)
    same = pos.copy()
    same[4] = same[9]
    cases: list[tuple[str, dict[str, Any]]] = [
        ("pos", {"pos": same}),
        ("pos", {"pos": pos[:, :2]}),
        ("m", {"m": m[:4]}),
        ("m", {"m": -m}),
        ("lam", {"lam": lam[:4]}),
        ("lam", {"lam": "none"}),
        ("eps", {"eps": -1.0}),
        ("accuracy", {"accuracy": "high"}),
        ("device", {"device": "abacus"}),
        ("pos", {"pos": same, "device": "emulator"}),
    ]
    for argument, changed in cases:
        with pytest.raises(ap.ArgumentError, match=f"`{argument}`") as refused:
            ap.pull(**{"pos": pos, "m": m, "lam": lam, **changed})
        assert refused.value.argument == argument
    assert np.isfinite(ap.pull(same, m, lam, 0.1).pos).all()
    with pytest.raises(ap.ArgumentError, match="bodies 4 and 9"):
        ap.pull(same, m, lam)
    for argument, velocities in [("vel", vel[:3]), ("vel", vel * np.nan)]:
        with pytest.raises(ap.ArgumentError, match=f"`{argument}`"):
            ap.accelerations(pos, m, vel=velocities)
    with pytest.raises(ap.ArgumentError, match="kernel"):
        ap.accelerations(pos, m, vel=vel, kernel="tiled", device="emulator")


@pytest.mark.parametrize("device", ["auto", "cpu", "emulator"])
@pytest.mark.parametrize("scheme", ["leapfrog", "leapfrog-dkd", "yoshida4", "yoshida6"])
def test_gradients_of_trajectories(scheme: str, device: str) -> None:
    pos, m, vel, lam = bodies(15)
    eps, dt, steps = 0.3, 0.03, 8

    def value(pos: np.ndarray, vel: np.ndarray, m: np.ndarray, eps: float, dt: float) -> float:
        start = ap.Bodies(m, pos, vel)
        sim = ap.Simulation(
            start, softening=eps, dt=dt, G=2.0, integrator=scheme, device="cpu", accuracy="double"
        )
        sim.step(steps)
        return float((lam * sim.bodies.pos).sum() - (lam[::-1] * sim.bodies.vel).sum())

    found = ap.pull_leapfrog(pos, vel, m, dt, steps, lam, -lam[::-1], eps, G=2.0, scheme=scheme, device=device)
    rates = np.linspace(-1, 1, 15) * (m > 0)
    for expected, there in [
        (slope(lambda t: value(pos + t * lam, vel, m, eps, dt)), (found.pos * lam).sum()),
        (slope(lambda t: value(pos, vel + t * lam, m, eps, dt)), (found.vel * lam).sum()),
        (slope(lambda t: value(pos, vel, m + t * rates, eps, dt)), (found.m * rates).sum()),
        (slope(lambda t: value(pos, vel, m, eps + t, dt)), found.eps),
        (slope(lambda t: value(pos, vel, m, eps, dt + t)), found.dt),
    ]:
        assert there == pytest.approx(expected, rel=1e-8, abs=1e-8)
    assert 1 <= found.growth < 100
    there = ap.pull_leapfrog(pos, vel, m, dt, steps, lam, -lam[::-1], eps, G=2.0, scheme=scheme, device="cpu")
    assert found.growth == pytest.approx(there.growth, rel=1e-10)
    for refused in ("hermite4", "euler"):
        with pytest.raises(ap.ArgumentError, match="`scheme`.*cannot be taken back"):
            ap.pull_leapfrog(pos, vel, m, dt, steps, lam, lam, scheme=refused)


def test_sums_of_arrays_where_they_lie() -> None:
    """The way of PyTorch and JAX on a GPU, on the emulator: addresses of arrays in, and of others out."""
    random = np.random.default_rng(3)
    x, lam = random.normal(size=(2, 2, 5, 3)).astype(np.float32)
    m, eps = random.uniform(size=(2, 5)).astype(np.float32), np.array([0.3, 0.5], np.float32)
    results = [np.full_like(array, np.nan) for array in (x, m, eps)]
    there, back = ([array.ctypes.data for array in arrays] for arrays in ([x, m, eps, lam], results))
    _native.sums_in_place("pull_me", True, True, (2, 5), there, back, [], "emulator", 0)
    for k in range(2):
        exact = ap.pull(x[k], m[k], lam[k], float(eps[k]), device="cpu")
        for found, expected in zip(results, exact[1:]):
            assert found[k] == pytest.approx(expected, rel=1e-5, abs=1e-6)
