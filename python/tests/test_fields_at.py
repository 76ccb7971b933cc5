"""External fields at points, and rotation curves, against formulas written here."""

import math
from typing import Any

import numpy as np
import pytest

import allpairs as ap

POINTS = np.array([[8.0, 0, 0], [1.0, 2.0, -3.0], [-20.0, 5.0, 0.3]])


def nfw(points: Any, mass: float, scale: float) -> tuple[Any, Any]:
    r = np.linalg.norm(points, axis=1)
    inside = mass * (np.log1p(r / scale) - r / (r + scale))
    return -(inside / r**3)[:, None] * points, -mass * np.log1p(r / scale) / r


def test_fields_alone() -> None:
    acc, pot = ap.field_at(POINTS, field="nfw:mass=100,scale=20")
    expected = nfw(POINTS, 100, 20)
    assert acc == pytest.approx(expected[0], rel=1e-12) and pot == pytest.approx(expected[1], rel=1e-12)
    acc, pot = ap.field_at(POINTS, field=["nfw:mass=100,scale=20", "point:mass=3,x=1"], G=2.0)
    away = POINTS - [1, 0, 0]
    d = np.linalg.norm(away, axis=1)
    assert acc == pytest.approx(2 * (expected[0] - 3 * away / d[:, None] ** 3), rel=1e-12)
    assert pot == pytest.approx(2 * (expected[1] - 3 / d), rel=1e-12)
    acc, pot = ap.field_at(np.zeros((0, 3)), field="nfw:mass=100,scale=20")
    assert acc.shape == (0, 3) and pot.shape == (0,)


def test_fields_are_added_to_bodies() -> None:
    galaxy = ap.plummer(100, seed=1, mass="1e10 Msun", radius="2 kpc", units="kpc")
    own, own_pot = ap.field_at(POINTS, galaxy, eps=0.1)
    acc, pot = ap.field_at(POINTS, galaxy, eps="0.1 kpc", field="nfw:mass=1e12Msun,scale=16kpc")
    halo, halo_pot = nfw(POINTS, 100 * galaxy.G, 16)
    assert acc - own == pytest.approx(halo, rel=1e-10) and pot - own_pot == pytest.approx(halo_pot, rel=1e-10)
    given, given_pot = ap.field_at(POINTS, galaxy.pos, galaxy.m, 0.1, units="kpc", field="nfw:mass=1e12Msun,scale=16kpc")
    assert given == pytest.approx(acc, rel=1e-12) and given_pot == pytest.approx(pot, rel=1e-12)


class Spring:
    """A field of one's own that grows with time."""

    def acceleration(self, t: float, x: Any) -> Any:
        return -(1 + t) * x

    def potential(self, t: float, x: Any) -> float:
        return float(0.5 * (1 + t) * x @ x)


def test_fields_of_ones_own_and_of_other_times() -> None:
    for time, factor in ((None, 4.0), (1.0, 2.0)):
        bodies = ap.Bodies(0.0, [[0, 0, 9]], time=3)
        acc, pot = ap.field_at(POINTS, bodies, field=Spring(), time=time)
        assert acc == pytest.approx(-factor * POINTS) and pot == pytest.approx(0.5 * factor * (POINTS**2).sum(axis=1))
    acc, pot = ap.field_at(POINTS, field=[lambda t, x: -x, "point:mass=1"])
    assert acc == pytest.approx(-POINTS - POINTS / np.linalg.norm(POINTS, axis=1)[:, None] ** 3) and np.isnan(pot).all()


def test_rotation_curves() -> None:
    R = np.array([[1.0, 4.0], [8.0, 30.0]])
    assert ap.circular_velocity(R, field="point:mass=9") == pytest.approx(3 / np.sqrt(R))
    assert ap.circular_velocity(4.0, ap.Bodies(9.0, [[0, 0, 0]])) == pytest.approx(1.5)
    aside = ap.circular_velocity(4.0, ap.Bodies(9.0, [[5, 0, 1]]), centre=[5, 0, 1], field="point:mass=1,x=5,z=1")
    assert aside == pytest.approx(math.sqrt(10 / 4))
    # Bovy (2015) scales the Milky Way to 220 km/s at 8 kpc.
    for units in ("kpc", "pc"):
        speed = ap.circular_velocity("8 kpc", field="mwpotential2014", units=units)
        assert speed.shape == () and speed == pytest.approx(220, rel=1e-3)
    # A ring in which bodies lie opposite each other: the mean over the azimuth.
    speed = ap.circular_velocity(1.0, ap.plummer(20_000, seed=1), eps=0.01)
    a = 3 * math.pi / 16
    assert speed == pytest.approx(math.sqrt(1 / (1 + a * a) ** 1.5), rel=0.02)
    assert np.isnan(ap.circular_velocity(1.0, field=lambda t, x: x))


def test_what_makes_no_sense_is_refused() -> None:
    for argument, call in [
        ("pos", lambda: ap.field_at(POINTS)),  # type: ignore[call-overload]
        ("field", lambda: ap.field_at(POINTS, field="nfv:mass=1")),
        ("field", lambda: ap.field_at(POINTS, field=3)),
        ("field", lambda: ap.field_at(POINTS, field="tide:omega=1")),
        ("units", lambda: ap.field_at(POINTS, ap.plummer(3), units="pc")),
        ("time", lambda: ap.field_at(POINTS, field="point:mass=1", time="x Myr")),
        ("field", lambda: ap.circular_velocity(1.0)),
        ("R", lambda: ap.circular_velocity(0.0, field="point:mass=1")),
        ("bodies", lambda: ap.circular_velocity(1.0, "point:mass=1")),  # type: ignore[arg-type]
        ("centre", lambda: ap.circular_velocity(1.0, field="point:mass=1", centre=[0, 0])),
    ]:
        with pytest.raises(ap.ArgumentError, match=f"`{argument}`") as refused:
            call()  # type: ignore[no-untyped-call]
        assert refused.value.argument == argument
    with pytest.raises(ap.AllpairsError, match="centre|finite"):
        ap.field_at([[0, 0, 0]], field="point:mass=1")
