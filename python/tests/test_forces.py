"""Forces and potentials, beside sums that numpy makes."""

import time
import warnings
from functools import partial
from typing import Callable

import numpy as np
import pytest

import allpairs as ap


def sums(
    points: np.ndarray, pos: np.ndarray, m: np.ndarray, eps: float
) -> tuple[np.ndarray, np.ndarray]:
    """Accelerations and potentials at points, pairs at distance zero left out."""
    r = pos[None] - points[:, None]
    d = np.sqrt((r**2).sum(axis=2) + eps**2)
    with np.errstate(divide="ignore"):
        inverse = np.where((r**2).sum(axis=2) > 0, 1 / d, 0)
    return np.einsum("ij,ijk->ik", m * inverse**3, r), -(m * inverse).sum(axis=1)


@pytest.mark.parametrize("eps", [0.0, 0.03])
@pytest.mark.parametrize("n", [1, 2, 100, 1000])
def test_forces_are_those_of_numpy(n: int, eps: float) -> None:
    bodies = ap.plummer(n, seed=4)
    acc, pot = sums(bodies.pos, bodies.pos, bodies.m, eps)
    assert ap.accelerations(bodies.pos, bodies.m, eps) == pytest.approx(acc, rel=1e-11, abs=1e-13)
    assert ap.potential(bodies.pos, bodies.m, eps) == pytest.approx(pot, rel=1e-12)
    assert bodies.potential(eps, G=2.0) == pytest.approx(2 * pot, rel=1e-12)
    energy = bodies.energy(eps)
    assert energy.potential == pytest.approx(0.5 * (bodies.m * pot).sum(), rel=1e-12)
    assert energy.kinetic == pytest.approx(0.5 * (bodies.m * (bodies.vel**2).sum(1)).sum())
    points = bodies.pos + 0.5
    acc, pot = sums(points, bodies.pos, bodies.m, eps)
    for field in (
        ap.field_at(points, bodies, eps=eps),
        ap.field_at(points, bodies.pos, bodies.m, eps),
    ):
        assert field[0] == pytest.approx(acc, rel=1e-11, abs=1e-13)
        assert field[1] == pytest.approx(pot, rel=1e-12)


def test_accuracies_kernels_and_devices() -> None:
    bodies = ap.plummer(200, seed=1)
    exact = bodies.accelerations(0.05)
    scale = np.sqrt((exact**2).sum(1).mean())
    for options, error in [
        ({"accuracy": "single"}, 1e-6),
        ({"accuracy": "fast"}, 1e-5),
        ({"kernel": "reference"}, 1e-13),
        ({"device": "emulator", "accuracy": "single"}, 1e-5),
        ({"device": "emulator", "kernel": "tiled"}, 1e-5),
    ]:
        found = bodies.accelerations(0.05, **options)
        assert 0 < np.abs(found - exact).max() / scale < error or options == {"kernel": "reference"}
    assert (bodies.accelerations(0.05, G=2.0) == 2 * exact).all()
    with pytest.raises(ap.ArgumentError, match="is GPU code"):
        bodies.accelerations(0.05, device="cpu", kernel="tiled")


def test_fields_at_points_on_a_device() -> None:
    bodies = ap.plummer(300, seed=1)
    points = bodies.pos[:70] + 0.1
    exact = ap.field_at(points, bodies, eps=0.05, device="cpu")
    for accuracy, error in [("single", 1e-6), ("double", 1e-13)]:
        found = ap.field_at(points, bodies, eps=0.05, accuracy=accuracy, device="emulator")
        for values, right in zip(found, exact):
            assert 0 < np.abs(values - right).max() / np.abs(right).max() < error


def test_none_and_empty() -> None:
    none = np.empty((0, 3))
    assert ap.accelerations(none, []).shape == (0, 3)
    assert ap.potential(none, []).shape == (0,)
    acc, pot = ap.field_at(none, ap.plummer(10))
    assert acc.shape == (0, 3) and pot.shape == (0,)
    acc, pot = ap.field_at(np.ones((2, 3)), none, [])
    assert (acc == 0).all() and (pot == 0).all()


def test_massless_bodies_cost_what_the_others_pull() -> None:
    n, heavy = 20_000, 20
    bodies = ap.plummer(n, seed=3)
    pos, few = bodies.pos, np.zeros(n)
    few[::1000] = 1 / heavy
    acc, pot = sums(pos[:50], pos[::1000], few[::1000], 0.01)
    assert ap.accelerations(pos, few, 0.01, device="cpu")[:50] == pytest.approx(acc, rel=1e-11)
    assert ap.potential(pos, few, 0.01)[:50] == pytest.approx(pot, rel=1e-12)

    def seconds(function: Callable[..., object], m: np.ndarray) -> float:
        times = []
        for _ in range(3):
            began = time.perf_counter()
            function(pos, m, 0.01)
            times.append(time.perf_counter() - began)
        return min(times)

    # A thousandth of the pairs.
    for function in (partial(ap.accelerations, device="cpu"), ap.potential):
        assert seconds(function, few) < 0.3 * seconds(function, bodies.m)
    pos, few = pos[:300], few[:300]
    found = ap.accelerations(pos, few, 0.01, device="emulator", accuracy="single")
    kernel = ap.accelerations(pos, few, 0.01, device="emulator", kernel="test-particles")
    assert (found == kernel).all(), "a GPU takes the kernel of test particles"


def test_close_bodies_in_single_precision_are_told() -> None:
    clump = np.random.default_rng(1).normal(size=(50, 3)) * 1e-3
    clumps = np.concatenate([clump, clump + [1.0, 0, 0]])
    remark = "forces of close bodies in single precision"
    with pytest.warns(UserWarning, match=remark):
        ap.accelerations(clumps, 1.0, 1e-4, accuracy="single")
    with pytest.warns(UserWarning, match=remark):
        ap.accelerations(clumps, 1.0, 1e-4, kernel="tiled", device="emulator")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ap.accelerations(clumps, 1.0, 1e-4)
        ap.accelerations(ap.plummer(100).pos, 0.01, 0.05, accuracy="single")


def test_bodies_too_near_to_attract_each_other_are_told() -> None:
    near = np.array([[0.0, 0, 0], [1e-300, 0, 0], [1, 1, 1]])
    bodies = "bodies 0 and 1 are so near each other"
    with pytest.warns(UserWarning, match=bodies):
        ap.accelerations(near, 1.0)
    with pytest.warns(UserWarning, match=bodies):
        ap.potential(near, 1.0)
    with pytest.warns(UserWarning, match=bodies):
        ap.Bodies(1.0, near).accelerations(0.0)
    with pytest.warns(UserWarning, match="body 1 and point 0 are so near each other"):
        ap.field_at(near[:1], near, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ap.accelerations(near, 1.0, 0.1)
        ap.potential(near, [0.0, 0, 1])
        ap.accelerations([[0.0, 0, 0], [0, 0, 0]], 1.0)
        ap.field_at(near[:1], near[[0, 2]], 1.0)
        ap.field_at([[2.0, 0, 0]], near, 1.0)
