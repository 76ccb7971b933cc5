"""Kepler orbits: made of elements and back again, against values computed here in another way."""

import math
from typing import Any

import astropy.units as u
import numpy as np
import pytest
import unyt

import allpairs as ap

SUN = ap.Bodies(1.0, [[0, 0, 0]], units="au,Msun,yr")
#: Eccentricities of all kinds of orbits.
ALL = [0.0, 1e-15, 1e-8, 1e-3, 0.3, 0.7, 0.99, 1 - 1e-6, 1 - 1e-10, 1 + 1e-10, 1 + 1e-6, 1.01, 2.0, 50.0]


def rotation(axis: int, angle: float) -> np.ndarray:
    """The matrix that turns vectors about an axis."""
    i, j = [k for k in range(3) if k != axis]
    matrix = np.eye(3)
    matrix[i, i] = matrix[j, j] = math.cos(angle)
    sign = -1.0 if axis == 1 else 1.0
    matrix[i, j], matrix[j, i] = -sign * math.sin(angle), sign * math.sin(angle)
    return matrix


def state(mu: float, p: float, e: float, inc: float, Omega: float, omega: float, f: float) -> tuple[Any, Any]:
    """Relative position and velocity by the conic r = p/(1 + e cos f), turned by three matrices."""
    turn = rotation(2, Omega) @ rotation(0, inc) @ rotation(2, omega)
    r = p / (1 + e * math.cos(f))
    place = r * np.array([math.cos(f), math.sin(f), 0])
    pace = math.sqrt(mu / p) * np.array([-math.sin(f), e + math.cos(f), 0])
    return turn @ place, turn @ pace


def mean_to_true(M: float, e: float) -> float:
    """Kepler's equation by bisection."""
    low, high = (-math.pi, math.pi) if e < 1 else (-50.0, 50.0)
    for _ in range(200):
        E = 0.5 * (low + high)
        excess = E - e * math.sin(E) - M if e < 1 else e * math.sinh(E) - E - M
        low, high = (low, E) if excess > 0 else (E, high)
    half = math.tan(E / 2) if e < 1 else math.tanh(E / 2)
    return 2 * math.atan(math.sqrt(abs((1 + e) / (1 - e))) * half)


@pytest.mark.parametrize("a, e", [(2.0, 0.0), (0.7, 0.35), (5.0, 0.9), (-1.5, 1.4), (-0.1, 20.0)])
def test_a_pair_is_where_the_conic_says(a: float, e: float) -> None:
    m1, m2, inc, Omega, omega = 1.3, 0.4, 0.6, 2.1, 4.0
    for f in (-1.4, 0.0, 0.9):
        pair = ap.orbit([m1, m2], a=a, e=e, inc=inc, Omega=Omega, omega=omega, f=f)
        place, pace = state(m1 + m2, a * (1 - e * e), e, inc, Omega, omega, f)
        assert pair.pos[1] - pair.pos[0] == pytest.approx(place, rel=1e-13, abs=1e-13)
        assert pair.vel[1] - pair.vel[0] == pytest.approx(pace, rel=1e-13, abs=1e-13)
        assert pair.m @ pair.pos == pytest.approx(np.zeros(3), abs=1e-14)
        assert pair.m @ pair.vel == pytest.approx(np.zeros(3), abs=1e-14)
    for M in (-2.0, 1e-9, 0.4, 3.0):
        from_M = ap.orbit([m1, m2], a=a, e=e, M=M, omega=omega)
        from_f = ap.orbit([m1, m2], a=a, e=e, f=mean_to_true(M, e), omega=omega)
        assert from_M.pos == pytest.approx(from_f.pos, rel=1e-12, abs=1e-12)
        since = ap.orbit([m1, m2], a=a, e=e, since_pericentre=M * math.sqrt(abs(a) ** 3 / (m1 + m2)), omega=omega)
        assert since.pos == pytest.approx(from_M.pos, rel=1e-12, abs=1e-12)


def test_a_parabola_follows_barker() -> None:
    q, mu = 0.8, 2.0
    for f in (-2.5, 0.0, 0.1, 3.0):
        pair = ap.orbit([1, 1], q=q, e=1, f=f)
        place, pace = state(mu, 2 * q, 1.0, 0, 0, 0, f)
        assert pair.pos[1] - pair.pos[0] == pytest.approx(place, rel=1e-13, abs=1e-14)
        assert pair.vel[1] - pair.vel[0] == pytest.approx(pace, rel=1e-13, abs=1e-14)
        s = math.tan(f / 2)
        since = math.sqrt(2 * q**3 / mu) * (s + s**3 / 3)
        assert ap.orbit([1, 1], q=q, e=1, since_pericentre=since).pos == pytest.approx(pair.pos, rel=1e-12, abs=1e-12)
    # Orbits that are almost parabolas are almost there.
    for e in (1 - 1e-9, 1 + 1e-9):
        near = ap.orbit([1, 1], q=q, e=e, since_pericentre=1.7)
        assert near.pos == pytest.approx(ap.orbit([1, 1], q=q, e=1, since_pericentre=1.7).pos, rel=1e-8)


@pytest.mark.parametrize("e", ALL)
def test_orbits_come_back_from_their_elements(e: float) -> None:
    n = 300
    rng = np.random.default_rng(5)
    q, inc = 10 ** rng.uniform(-2, 2, n), rng.choice([0, math.pi, 1e-9, math.pi - 1e-9, 0.5, 2.0], n)
    places: dict[str, Any] = {"M": rng.uniform(-math.pi, math.pi, n)}
    if e >= 1:
        places = {"f": rng.uniform(-0.99, 0.99, n) * math.acos(-1 / e)}
    turned: dict[str, Any] = {"inc": inc, "Omega": rng.uniform(0, 6, n), "omega": rng.uniform(0, 6, n)}
    there = ap.orbit(1e-3, q=q, e=e, **turned, **places, about=SUN)
    found = there.elements()[1:]
    # Nearly straight orbits have planes that their states hardly tell.
    plane = 1e-10 if 0 < 1 - e < 1e-8 else 1e-12
    assert found.e == pytest.approx(e, rel=1e-12, abs=1e-12) and found.inc == pytest.approx(inc, abs=plane)
    kept = {name: getattr(found, name) for name in ("a", "q", "inc", "Omega", "omega", "M")}
    back = ap.orbit(1e-3, **kept, about=SUN)
    for one, other in ((there.pos[1:], back.pos[1:]), (there.vel[1:], back.vel[1:])):
        assert (np.linalg.norm(one - other, axis=1) <= 1e-12 * np.linalg.norm(one, axis=1)).all()
    if 1e-3 <= e <= 0.99 or e > 1.005:
        assert found.q == pytest.approx(q, rel=1e-12)
        for name, value in {**places, **turned}.items():
            if name in ("Omega", "omega") and name != "M":
                continue
            difference = getattr(found, name) - value
            assert np.abs(np.angle(np.exp(1j * difference))).max() <= 1e-11 / min(e, 1), name
        # In the plane of reference the sum of both, or the difference, is the direction of the pericentre.
        upright = inc < 1
        total = found.omega + np.where(upright, found.Omega, -found.Omega)
        wanted = turned["omega"] + np.where(upright, turned["Omega"], -turned["Omega"])
        difference = np.abs(np.angle(np.exp(1j * (total - wanted))))
        assert difference[(inc < 1e-6) | (inc > 3.14)].max() <= 1e-11 / min(e, 1)
        tilted = (inc > 0.1) & (inc < 3.0)
        for name in ("Omega", "omega"):
            difference = np.abs(np.angle(np.exp(1j * (getattr(found, name) - turned[name]))))
            assert difference[tilted].max() <= 1e-11 / min(e, 1)


def test_circles_count_from_the_node_and_planes_from_the_x_axis() -> None:
    plane = ap.orbit([1, 1e-3], a=1, e=0.2, Omega=1.0, omega=2.0, f=0.5).elements()[1:]
    assert plane.inc[0] == 0 and plane.Omega[0] == 0 and plane.omega[0] == pytest.approx(3.0)
    body = ap.Bodies([1.0, 0.0], [[0, 0, 0], [0, 1, 0]], [[0, 0, 0], [-1, 0, 0]]).elements()[1:]
    assert (body.a[0], body.e[0], body.omega[0]) == (1, 0, 0) and body.f[0] == body.M[0] == pytest.approx(math.pi / 2)
    assert body.period[0] == pytest.approx(2 * math.pi)


def test_planets_have_the_elements_of_the_almanac() -> None:
    # Standish (1992), mean elements of the ecliptic of J2000, which the osculating ones are close to.
    planets = ap.solar_system()
    found = planets.elements(about=planets[0])
    for body, a, e, inc, Omega, omega in [
        (1, 0.38709927, 0.20563593, 7.00497902, 48.33076593, 77.45779628 - 48.33076593),
        (4, 1.52371034, 0.09339410, 1.84969142, 49.55953891, 336.05637041 - 49.55953891),
        (5, 5.20288700, 0.04838624, 1.30439695, 100.47390909, 14.72847983 + 360 - 100.47390909),
    ]:
        assert found.a[body] == pytest.approx(a, rel=3e-4) and found.e[body] == pytest.approx(e, abs=5e-4)
        assert np.degrees(found.inc[body]) == pytest.approx(inc, abs=2e-3)
        assert np.degrees(found.Omega[body]) == pytest.approx(Omega, abs=0.1)
        assert np.degrees(found.omega[body]) == pytest.approx(omega, abs=1.0)
    assert found.quantity("period")[3].to_value(u.day) == pytest.approx(365.25, rel=3e-3)
    assert found.quantity("a")[5].to_value(u.au) == pytest.approx(found.a[5], rel=1e-12)
    assert np.isnan(found.a[0]) and np.isnan(found.period[0]) and len(found) == 10
    assert found.quantity("inc").unit == u.rad and found.quantity("e")[1].value == found.e[1]
    with pytest.raises(ap.ArgumentError, match="`name`"):
        found.quantity("b")


def test_the_motion_has_the_period_and_conserves_the_elements() -> None:
    pair = ap.orbit([1, 0.5], period=1, e=0.6, inc=1, M=-1.0, units="au,Msun,yr")
    assert pair.elements().a[1] == pytest.approx(1.5 ** (1 / 3), rel=1e-4)  # Kepler's third law in au, Msun, yr
    sim = ap.Simulation(pair, softening=0, integrator=ap.Yoshida6(5e-4), accuracy="double", device="cpu").integrate(1.0)
    assert sim.bodies.pos == pytest.approx(pair.pos, abs=1e-7)
    later = sim.integrate(1.0 + 1 / (2 * math.pi)).bodies.elements()[1:]
    assert later.M[0] == pytest.approx(0.0, abs=1e-6) and later.since_pericentre[0] == pytest.approx(0.0, abs=1e-7)


def test_units_of_all_kinds_are_taken() -> None:
    given: dict[str, Any] = {"a": 2 * u.au, "inc": "30 deg", "omega": 0.5, "M": unyt.unyt_quantity(90, "degree")}
    one = ap.orbit(["1 Msun", "0.5 Msun"], e=0.1, **given)
    assert str(one.units) == "au, Msun, yr"
    two = ap.orbit([1, 0.5], a=2, e=0.1, inc=math.pi / 6, omega=0.5, M=math.pi / 2, units="au,Msun,yr")
    assert one.pos == pytest.approx(two.pos, rel=1e-12) and one.vel == pytest.approx(two.vel, rel=1e-12)
    period = 2 * math.pi * math.sqrt(8 / (1.5 * two.G))
    turned: dict[str, Any] = {"M": "90°", "inc": "30 deg", "omega": 0.5}
    by_period = ap.orbit([1, 0.5], period=f"{period!r} yr", e=0.1, units="au,Msun,yr", **turned)
    assert by_period.pos == pytest.approx(two.pos, rel=1e-12)
    with pytest.raises(ap.ArgumentError, match="`units` is needed"):
        ap.orbit([1, 1], a="1 au")
    with pytest.raises(ap.ArgumentError, match="`inc` is not an angle"):
        ap.orbit([1, 1], a=1, inc="30 pc")
    with pytest.raises(ap.ArgumentError, match="`inc`"):
        ap.orbit([1, 1], a=1, inc=3 * u.au)


def test_bodies_about_others() -> None:
    inner = ap.orbit([1, 0.5], a=1, e=0.3, units="au,Msun,yr")
    inner.pos += [1, 2, 3]
    inner.vel += [0.1, 0, 0]
    triple = ap.orbit(0.2, a=20, e=0.5, inc=1, f=1, about=inner)
    assert triple.id.tolist() == [0, 1, 2] and triple.m.tolist() == [1, 0.5, 0.2]
    assert (triple.pos[:2] == inner.pos).all() and str(triple.units) == "au, Msun, yr"
    place, pace = state(1.7 * inner.G, 20 * 0.75, 0.5, 1, 0, 0, 1)
    assert triple.pos[2] - [1, 2, 3] == pytest.approx(place, rel=1e-12)
    assert triple.vel[2] - [0.1, 0, 0] == pytest.approx(pace, rel=1e-12)
    outer = triple[2].elements(about=triple[:2])
    assert outer.a[0] == pytest.approx(20) and outer.e[0] == pytest.approx(0.5) and outer.f[0] == pytest.approx(1)
    many = ap.orbit(0, a=[1, 2, 3], e=0.1, M=[0, 1, 2], about=SUN)
    assert len(many) == 4 and many.elements().a[1:] == pytest.approx([1, 2, 3])
    assert many[2].elements(about=SUN.to("si")).a == pytest.approx([2.0])  # converted to the units of the bodies


def test_orbits_that_do_not_exist_are_refused_by_name() -> None:
    pair = [1.0, 1.0]
    for argument, given in [
        ("a", {}),
        ("a", {"a": -1}),
        ("a", {"a": 1, "e": 1.5}),
        ("a", {"a": 1, "e": 1}),
        ("a", {"a": 0}),
        ("a", {"a": math.nan}),
        ("a", {"a": math.inf}),
        ("e", {"a": 1, "e": -0.1}),
        ("e", {"q": 1}),
        ("e", {"a": 2, "q": 1, "e": 0.5}),
        ("q", {"a": 1, "q": 1.1}),
        ("q", {"q": 0, "e": 0.1}),
        ("period", {"period": 1, "a": 1}),
        ("period", {"period": 1, "e": 1.5}),
        ("period", {"period": -1}),
        ("f", {"q": 1, "e": 2, "f": 2.2}),
        ("f", {"q": 1, "e": 1, "f": math.pi}),
        ("M", {"q": 1, "e": 1, "M": 1}),
        ("f", {"a": 1, "M": 0, "f": 0}),
        ("inc", {"a": 1, "inc": math.inf}),
        ("a", {"a": [1, 2]}),
        ("about", {"a": 1, "about": 3}),
    ]:
        with pytest.raises(ap.ArgumentError, match=f"`{argument}`") as refused:
            ap.orbit(pair, **given)  # type: ignore[arg-type]
        assert refused.value.argument == argument, given
    with pytest.raises(ap.ArgumentError, match="`m`"):
        ap.orbit(1, a=1)
    with pytest.raises(ap.ArgumentError, match="`m`"):
        ap.orbit([1, -1], a=1)
    with pytest.raises(ap.ArgumentError, match="`m`"):
        ap.orbit([0, 0], a=1)
    with pytest.raises(ap.ArgumentError, match="`M` is for 2 bodies, and `a` is for 3"):
        ap.orbit(0, a=[1, 2, 3], M=[1, 2], about=SUN)
    with pytest.raises(ap.ArgumentError, match="`about`"):
        ap.plummer(3).elements(about=SUN)
