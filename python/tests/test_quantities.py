"""Units of arguments: a quantity is converted or refused by name wherever a length, time, mass or speed is taken."""

from pathlib import Path
from typing import Any, Callable

import astropy.units as u
import numpy as np
import pytest
import unyt
from astropy.coordinates import Distance

import allpairs as ap

POS = np.random.default_rng(1).normal(size=(5, 3))
VEL = 0.1 * POS[::-1]


def cluster() -> ap.Bodies:
    return ap.Bodies(np.ones(5), POS, VEL, units="pc")


def astropy(value: Any, unit: str) -> Any:
    return u.Quantity(value, unit)


def of_unyt(value: Any, unit: str) -> Any:
    return unyt.unyt_array(value, unit)


class ToValue:
    """A quantity of another library: `to` returns another, `value` its numbers."""

    def __init__(self, quantity: Any) -> None:
        self.quantity, self.unit, self.value = quantity, quantity.unit, quantity.value

    def to(self, unit: str) -> "ToValue":
        return ToValue(self.quantity.to(unit))


class Silent:
    """An array with a unit that nothing can convert."""

    def __init__(self, value: Any) -> None:
        self.value, self.units = value, "furlong"

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray(self.value)


def test_numbers_of_a_run_have_units() -> None:
    sim = ap.Simulation(cluster(), softening="0.5 pc", dt=0.01, device="cpu").integrate("0.1 Myr", every="0.05 Myr")
    assert sim.quantity("t").to_value("Myr") == pytest.approx(0.1) and sim.quantity("time").to_value(u.kyr)[-1] == pytest.approx(100)
    assert sim.bodies.quantity("time").unit == u.Myr and sim.bodies.quantity("time").value == pytest.approx(0.1)
    bodies = sim.bodies.copy()
    with pytest.warns(UserWarning, match="`to` would convert"):
        bodies.units = "kpc"
    assert sim.quantity("softening").to_value(u.au) == pytest.approx(0.5 * 648_000 / np.pi)
    assert sim.quantity("r50").unit == u.pc and sim.quantity("r50").value == pytest.approx(sim.log["r50"])
    assert sim.quantity("energy").to_value("Msun km2 / s2") == pytest.approx(sim.log["energy"])
    earth = ap.Simulation(ap.sun_earth(), device="cpu").integrate("0.01 yr", every="0.01 yr")
    assert earth.quantity("r90").unit == u.au and earth.quantity("t").unit == u.yr
    assert earth.quantity("t").value == pytest.approx(0.01) and earth.bodies.quantity("time").unit == u.yr
    assert sim.quantity("lz").to_value("Msun pc km / s") == pytest.approx(sim.log["lz"])
    assert sim.quantity("px").to_value("Msun km / s") == pytest.approx(sim.log["px"], abs=1e-12)
    assert sim.quantity("energy_drift").unit == u.dimensionless_unscaled
    other = ap.Simulation(cluster().to("si"), softening="0.5 pc", dt="0.01 Myr", device="cpu").integrate("0.1 Myr", every="0.05 Myr")
    assert other.quantity("energy").to_value("Msun km2 / s2")[0] == pytest.approx(sim.log["energy"][0], rel=1e-9)
    assert other.quantity("lz").to_value("Msun pc km / s")[0] == pytest.approx(sim.log["lz"][0], rel=1e-9)
    other = ap.Simulation(
        cluster(), field="point:mass=1e6Msun", orbit="x=8kpc,vy=1km/s", softening="0.5 pc", dt=0.01, device="cpu", escape_radius="9 pc"
    )
    assert other.quantity("origin").to_value("kpc") == pytest.approx([8, 0, 0])
    assert other.quantity("origin_velocity").to_value("m/s") == pytest.approx([0, 1000, 0])
    assert other.quantity("events.time").unit == u.Myr and other.quantity("events.pos").shape == (0, 3)
    with pytest.raises(ap.ArgumentError, match="no `orbit`"):
        sim.quantity("origin")
    for name in ("r51", "step_body", "pos"):
        with pytest.raises(ap.ArgumentError, match="`name`"):
            sim.quantity(name)
    with pytest.raises(ap.ArgumentError, match="`log` is empty"):
        ap.Simulation(cluster(), softening=0.5, dt=0.01, device="cpu").quantity("r50")
    with pytest.raises(ap.ArgumentError, match="no units"):
        ap.Simulation(ap.plummer(5), softening=0.5, dt=0.01, device="cpu").quantity("t")


LIBRARIES = [astropy, of_unyt, lambda value, unit: ToValue(u.Quantity(value, unit))]


@pytest.mark.parametrize("quantity", LIBRARIES)
def test_each_length_time_mass_and_speed_is_converted(quantity: Callable[[Any, str], Any]) -> None:
    def simulate(**settings: Any) -> ap.Simulation:
        return ap.Simulation(cluster(), device="cpu", **{"softening": 0.5, "dt": 0.01, **settings})

    plain = cluster()
    made = ap.Bodies(
        quantity(np.ones(5), "Msun"), quantity(POS / 1000, "kpc"), quantity(1000 * VEL, "m/s"),
        time=quantity(1.0, "Myr"), units="pc",
    )
    assert made.pos == pytest.approx(POS) and made.vel == pytest.approx(VEL)
    assert made.m == pytest.approx(plain.m, rel=1e-5)  # their Suns differ
    assert made.time == pytest.approx(1.0227, rel=1e-4)
    moved = cluster()
    moved.pos, moved.vel, moved.m = quantity(POS / 1000, "kpc"), quantity(VEL * 1000, "m/s"), quantity(np.ones(5), "Msun")
    moved.time = quantity(1.0, "Myr")
    for name in ("pos", "vel", "m", "time"):
        assert getattr(moved, name) == pytest.approx(getattr(made, name)), name

    points = POS + 3
    for field in (
        ap.field_at(quantity(points / 1000, "kpc"), plain, eps=quantity(5e-4, "kpc")),
        ap.field_at(points, plain, eps="0.5 pc"),
    ):
        for found, right in zip(field, ap.field_at(points, plain, eps=0.5)):
            assert found == pytest.approx(right)
    eps, G = quantity(5e-4, "kpc"), quantity(2 * plain.G, "pc*km**2/(s**2*Msun)")
    assert plain.accelerations(eps) == pytest.approx(plain.accelerations(0.5))
    assert plain.accelerations(eps, G=G) == pytest.approx(2 * plain.accelerations(0.5), rel=1e-5)
    assert plain.potential("0.5 pc", G=G) == pytest.approx(2 * plain.potential(0.5), rel=1e-5)
    assert plain.energy(eps, G=G).potential == pytest.approx(2 * plain.energy(0.5).potential, rel=1e-5)

    orbit = (quantity([8, 0, 0], "kpc"), quantity([0, 220_000, 0], "m/s"))
    origin = simulate(field="mwpotential2014", orbit=orbit).origin
    assert origin is not None
    assert origin[0] == pytest.approx([8000, 0, 0]) and origin[1] == pytest.approx([0, 220, 0])
    assert simulate(G=G).G == pytest.approx(2 * plain.G, rel=1e-5)
    assert simulate(softening=eps).softening == pytest.approx(0.5)
    dt = quantity(0.01 / 1.0227121650537077, "Myr")
    assert simulate(dt=dt).dt == pytest.approx(0.01)
    assert simulate().integrate(10 * dt if quantity is not LIBRARIES[2] else 0.1).steps == 10
    radii = [quantity(1e-5, "kpc")] * 5
    for given in (radii, radii[0], ["0.01 pc"] * 5, quantity([1e-5] * 5, "kpc")):
        assert simulate(radii=given).radii == pytest.approx([0.01] * 5)
    frame = ap.image(plain, size=(32, 32), half_width=quantity(2e-3, "kpc"), centre=quantity([1e-3, 0, 0], "kpc"))
    assert (frame == ap.image(plain, size=(32, 32), half_width="2 pc", centre=["1 pc", 0, 0])).all()
    assert ap.plummer(10, mass=quantity(10, "Msun"), radius=quantity(1e-3, "kpc")).m.sum() == pytest.approx(10, rel=1e-5)
    king = ap.king(20, mass="10 Msun", radius="1 pc", tidal_radius=quantity(0.01, "kpc"))
    assert np.linalg.norm(king.pos, axis=1).max() < 10.5


@pytest.mark.parametrize("quantity", LIBRARIES)
def test_results_of_own_fields_are_converted(quantity: Callable[[Any, str], Any]) -> None:
    class Spring:
        """a = −k x with k = 1 (km/s/pc)²."""

        def acceleration(self, time: float, position: Any) -> Any:
            return quantity(-1000 * position, "m*km/(s**2*pc)")

        def jerk(self, time: float, position: Any, velocity: Any) -> Any:
            return quantity(-velocity, "km**3/(s**3*pc**2)")

        def potential(self, time: float, position: Any) -> Any:
            return quantity(0.5e6 * position @ position, "m**2/s**2")

    one = ap.Bodies([1.0], [[1.0, 0, 0]], units="pc")
    simulation = ap.Simulation(one, field=Spring(), integrator=ap.Hermite4(0.01), device="cpu")
    simulation.integrate(2 * np.pi)
    assert np.abs(simulation.bodies.pos - one.pos).max() < 1e-6 and simulation.energy_error < 1e-6
    nameless = ap.Bodies([1.0], [[1.0, 0, 0]])
    with pytest.raises(ap.ArgumentError, match="`field` has a unit, and the bodies have none"):
        ap.Simulation(nameless, field=lambda t, x: quantity(-x, "m/s**2"), dt=0.1, device="cpu")
    with pytest.raises(ap.ArgumentError, match="`field` is not an acceleration"):
        ap.Simulation(one, field=lambda t, x: quantity(-x, "kpc"), dt=0.1, device="cpu")


@pytest.mark.parametrize("unit", [lambda v: astropy(v, "kpc"), lambda v: of_unyt(v, "kpc"), Silent])
def test_where_no_unit_is_taken_it_is_refused_by_name(unit: Callable[[Any], Any]) -> None:
    plain, bodies = ap.Bodies(1.0, POS), cluster()

    def simulate(**settings: Any) -> object:
        return ap.Simulation(bodies, device="cpu", **settings)

    one: Any = unit(1.0)
    points: Any = unit(POS)
    cases: list[tuple[str, Callable[[], object]]] = [
        ("pos", lambda: ap.pull(points, 1.0, POS)),
        ("lam", lambda: ap.pull(POS, 1.0, points)),
        ("vel", lambda: ap.pull_leapfrog(POS, points, 1.0, 0.1, 1, POS, POS)),
        ("points", lambda: ap.field_at(points, plain)),
        ("eps", lambda: plain.energy(one)),
        ("eps", lambda: plain.potential("1 pc")),
        ("time", lambda: ap.Bodies(1.0, POS, time=one)),
        ("eta", lambda: simulate(integrator=ap.Hermite4(eta=one))),
        ("softening", lambda: ap.Simulation(plain, softening=one)),
        ("dt", lambda: simulate(dt=one)),
        ("G", lambda: simulate(G=one)),
        ("orbit", lambda: simulate(field="mwpotential2014", orbit=(POS[0], unit(VEL[0])))),
        ("damping", lambda: simulate(integrator=ap.DampedEuler(0.1, damping=one))),
        ("half_width", lambda: ap.image(plain, half_width=one)),
        ("centre", lambda: ap.image(plain, centre=[one, 0, 0])),
        ("decades", lambda: ap.image(bodies, decades=one)),
        ("max_drift", lambda: simulate(dt=0.1).integrate(1.0, max_drift=one)),  # type: ignore[attr-defined]
        ("m", lambda: setattr(bodies, "m", one)),
        ("vel", lambda: setattr(bodies, "vel", points)),
        ("pos", lambda: setattr(plain, "pos", points)),
    ]
    for argument, call in cases:
        with pytest.raises(ap.ArgumentError, match=f"`{argument}`") as refused:
            call()
        assert refused.value.argument == argument, argument
    assert (bodies.m == 1).all() and (bodies.vel == VEL).all() and (plain.pos == POS).all()


def astropys_distance(value: Any, unit: str) -> Any:
    """A class of one dimension alone, for lengths."""
    return Distance(value, unit, allow_negative=True) if unit == "kpc" else astropy(value, unit)


def list_of_unyt(value: Any, unit: str) -> Any:
    return [[unyt.unyt_quantity(x, unit) for x in row] for row in value] if np.ndim(value) == 2 else of_unyt(value, unit)


@pytest.mark.parametrize("quantity", [astropy, of_unyt, astropys_distance, list_of_unyt])
def test_functions_on_arrays_give_quantities_for_quantities(quantity: Callable[[Any, str], Any]) -> None:
    bodies, points = cluster(), POS + 3
    kind = unyt.unyt_array if "unyt" in quantity.__name__ else u.Quantity
    pos, vel, m = quantity(POS / 1000, "kpc"), quantity(1000 * VEL, "m/s"), quantity(np.ones(5), "Msun")
    eps, G = quantity(5e-4, "kpc"), quantity(2 * bodies.G, "pc*km**2/(s**2*Msun)")
    speeds = ap.circular_velocity([4000, 8000], field="mwpotential2014", units="pc")
    galaxy = ap.field_at(1000 * points, field="mwpotential2014", units="pc")
    acc, jerk = ap.accelerations(POS, 1.0, 0.5, vel=VEL, units="pc")
    assert acc == pytest.approx(bodies.accelerations(0.5))
    cases: list[tuple[Any, Any, str]] = [
        (ap.accelerations(pos, m, eps), acc, "km**2/(s**2*pc)"),
        (ap.accelerations(pos, "1 Msun", "0.5 pc", G=G), 2 * acc, "km**2/(s**2*pc)"),
        (ap.accelerations(pos, m, eps, vel=vel)[0], acc, "km**2/(s**2*pc)"),
        (ap.accelerations(pos, m, eps, vel=vel)[1], jerk, "km**3/(s**3*pc**2)"),
        (ap.potential(pos, m, eps), bodies.potential(0.5), "km**2/s**2"),
        (ap.potential(pos, m), bodies.potential(), "km**2/s**2"),
        (ap.field_at(quantity(points / 1000, "kpc"), pos, m, eps)[0], ap.field_at(points, bodies, eps=0.5)[0], "km**2/(s**2*pc)"),
        (ap.field_at(quantity(points / 1000, "kpc"), pos, m, eps)[1], ap.field_at(points, bodies, eps=0.5)[1], "km**2/s**2"),
        (ap.field_at(quantity(points, "kpc"), field="mwpotential2014")[1], galaxy[1], "km**2/s**2"),
        (ap.circular_velocity(quantity([4, 8], "kpc"), field="mwpotential2014"), speeds, "km/s"),
    ]
    for found, right, unit in cases:
        assert type(found) is kind and found.shape == np.shape(right), unit
        assert found.to_value(unit) == pytest.approx(right, rel=1e-4), unit  # their Suns differ
    # The Sun pulls by 5.93 mm/s² at 1 au.
    pair = ap.accelerations(quantity([[0, 0, 0], [1, 0, 0]], "au"), quantity([1, 0], "Msun"))
    assert pair.to_value("m/s**2")[1] == pytest.approx([-5.9301e-3, 0, 0], rel=1e-4)
    # In units that are named, results are numbers.
    in_kpc = ap.accelerations(pos, 1.0, eps, units="kpc,Msun,km/s")
    assert type(in_kpc) is np.ndarray and in_kpc == pytest.approx(1000 * acc, rel=1e-4)
    assert ap.potential(POS, m, 0.5, units="pc") == pytest.approx(bodies.potential(0.5), rel=1e-4)
    # A zero is a zero in any unit.
    assert (ap.accelerations(pos, 0) == 0 * ap.accelerations(pos, m)).all()


@pytest.mark.parametrize("quantity", [astropy, of_unyt])
def test_functions_on_arrays_ask_for_units_where_only_some_have_them(quantity: Callable[[Any, str], Any]) -> None:
    pos, m, one = quantity(POS, "kpc"), quantity(np.ones(5), "Msun"), quantity(1.0, "kpc")
    strange: Any = ToValue(u.Quantity(POS, "pc"))
    silent: Any = Silent(POS)
    cases: list[Callable[[], object]] = [
        lambda: ap.accelerations(pos, 1.0),
        lambda: ap.accelerations(POS, m),
        lambda: ap.accelerations(POS, 1.0, one),
        lambda: ap.accelerations(pos, m, 0.1),
        lambda: ap.accelerations(pos, m, G=1.0),
        lambda: ap.accelerations(pos, m, vel=VEL),
        lambda: ap.potential(pos, 1.0),
        lambda: ap.potential(POS, 1.0, G=one),
        lambda: ap.field_at(pos, POS, 1.0),
        lambda: ap.field_at(POS, pos, m),
        lambda: ap.field_at(pos, field="mwpotential2014", time=1.0),
        lambda: ap.circular_velocity(one, field="mwpotential2014", centre=[1, 0, 0]),
    ]
    for call in cases:
        with pytest.raises(ap.ArgumentError, match="`units` is needed: .* has a unit and .* ha(s|ve) none"):
            call()
    with pytest.raises(ap.ArgumentError, match="`m` is not a mass"):
        ap.accelerations(pos, pos[:, 0])
    with pytest.raises(ap.ArgumentError, match="`eps`"):
        ap.accelerations(POS, 1.0, "1 kpc")
    with pytest.raises(ap.ArgumentError, match="`R`"):
        ap.circular_velocity("8 kpc", field="mwpotential2014")
    with pytest.raises(ap.ArgumentError, match="`units` are known from the bodies"):
        cluster().accelerations(0.5, units="kpc")
    with pytest.raises(ap.ArgumentError, match="`units` is needed: results cannot be made as ToValue"):
        ap.potential(strange, "1 Msun")
    assert ap.potential(strange, 1.0, units="pc") == pytest.approx(cluster().potential())
    with pytest.raises(ap.ArgumentError, match="`pos` has the unit furlong and cannot convert it"):
        ap.accelerations(silent, m)


def test_units_are_asked_for_where_only_some_numbers_have_them() -> None:
    pos, vel, m = astropy(POS, "kpc"), astropy(VEL, "km/s"), astropy(np.ones(5), "Msun")
    for given in ((1.0, pos), (m, POS), (m, pos, VEL), (m, [[1 * u.kpc, 0, 0]] * 5, VEL)):
        with pytest.raises(ap.ArgumentError, match="`units` is needed: .* has a unit and .* ha(s|ve) none"):
            ap.Bodies(*given)
    assert ap.Bodies(m, pos).units == ap.Bodies(m, pos, vel).units == ap.Units.of("pc")
    assert ap.Bodies(1.0, pos, VEL, units="kpc").pos == pytest.approx(POS)
    assert ap.Bodies("2 Msun", pos).m == pytest.approx([2.0] * 5)
    mixed = ap.Bodies(m, [[1 * u.kpc, 10 * u.pc, 0 * u.m]] * 5)
    assert mixed.pos == pytest.approx(np.array([[1000.0, 10, 0]] * 5))


def test_pictures_of_several_snapshots_have_one_unit(tmp_path: Path) -> None:
    here, there = cluster(), cluster().to("kpc")
    assert ap.view([here, there]).html == ap.view([here, here]).html
    same, other = (ap.movie(snapshots, tmp_path / f"{i}.gif", size=(40, 40)) for i, snapshots in enumerate([[here, here], [here, there]]))
    assert same.read_bytes() == other.read_bytes()
    for call in (lambda: ap.view([here, ap.plummer(5)]), lambda: ap.movie([here, ap.plummer(5)], tmp_path / "3.gif")):
        with pytest.raises(ap.ArgumentError, match="`snapshots` has bodies in different units"):
            call()


def test_numbers_without_dimension_are_numbers(tmp_path: Path) -> None:
    eta = u.Quantity(0.02)
    simulation = ap.Simulation(cluster(), integrator=ap.Hermite4(eta=eta), softening=0.1, device="cpu")
    assert simulation.integrator.eta == 0.02


class OfPint:
    """A quantity as pint's are: with the protocol of its numbers, by which they would lose their unit."""

    def __init__(self, value: Any, unit: str) -> None:
        self.magnitude, self.units = np.asarray(value, dtype=float), unit

    def m_as(self, unit: str) -> Any:
        return u.Quantity(self.magnitude, self.units).to_value(unit)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.magnitude

    def __dlpack_device__(self) -> Any:
        return self.magnitude.__dlpack_device__()

    def __dlpack__(self, **options: Any) -> Any:
        return self.magnitude.__dlpack__(**options)


def test_no_protocol_strips_a_unit() -> None:
    bodies, radii = cluster(), OfPint([3e-3, 4e-3], "kpc")
    assert ap.circular_velocity(radii, bodies) == pytest.approx(ap.circular_velocity([3, 4], bodies))
    assert ap.circular_velocity(OfPint([8000.0], "pc"), field="mwpotential2014", units="kpc") == pytest.approx([220.0])
    far: Any = OfPint(POS / 1000, "kpc")
    in_units = ap.accelerations(far, 1.0, 0.5, units="pc")
    assert type(in_units) is np.ndarray and in_units == pytest.approx(bodies.accelerations(0.5))
    with pytest.raises(ap.ArgumentError, match="`lam` has the unit kpc"):
        ap.pull(POS, 1.0, OfPint(POS, "kpc"))


@pytest.mark.parametrize("quantity", [astropy, of_unyt, OfPint])
def test_elements_of_arrays_do_not_lose_units(quantity: Callable[[Any, str], Any]) -> None:
    bodies = cluster()
    bodies.pos[0], bodies.m[1] = [1, 2, 3], 2
    for some in (bodies, bodies.copy(), bodies[1:], ap.plummer(5), ap.plummer(5)[[0, 1, 2]]):
        for array, index, value in (
            (some.pos, 0, quantity([1, 0, 0], "kpc")),
            (some.m, 0, quantity(1e36, "kg")),
            (some.vel[1], slice(None), [quantity(1, "m/s")] * 3),
        ):
            before = array.copy()
            with pytest.raises(ap.ArgumentError, match="an element cannot be a quantity, in .* assign the whole array"):
                array[index] = value
            assert (array == before).all()


def objects(value: Any, unit: str) -> Any:
    """An array of objects that are quantities."""
    array = np.empty(np.shape(value), dtype=object)
    for at in np.ndindex(array.shape):
        array[at] = unyt.unyt_quantity(np.asarray(value)[at], unit)
    return array


def test_quantities_in_lists_are_not_mixed_with_numbers() -> None:
    pos, m = astropy(POS, "kpc"), astropy(np.ones(5), "Msun")
    heavy: list[Any] = [1 * u.Msun, 2, 2, 2, 2]
    mixed_objects = objects(np.ones(5), "Msun")
    mixed_objects[2] = 7.0
    cases: list[tuple[str, Callable[[], object]]] = [
        ("m", lambda: ap.Bodies(heavy, pos)),
        ("m", lambda: ap.Bodies(["1 Msun", *heavy[1:]], pos)),
        ("m", lambda: ap.Bodies(["1 Msun", "2", "2", "2", "2"], pos)),
        ("m", lambda: ap.Bodies(mixed_objects, pos)),
        ("pos", lambda: ap.Bodies(m, [[2 * u.kpc, 3.0, 0]] * 5)),
        ("pos", lambda: ap.Bodies(m, [["2 kpc", "3", "0"]] * 5)),
        ("pos", lambda: ap.Bodies(m, [*pos[:4], POS[4]])),
        ("m", lambda: ap.accelerations(pos, heavy)),
        ("pos", lambda: ap.accelerations([[2 * u.kpc, 3.0, 0]] * 5, m)),
        ("points", lambda: ap.field_at([[2 * u.kpc, 3.0, 0]], pos, m)),
        ("R", lambda: ap.circular_velocity([8 * u.kpc, 4], field="mwpotential2014")),
        ("m", lambda: ap.orbit([1 * u.Msun, 2], a="1 au")),
    ]
    for argument, call in cases:
        with pytest.raises(ap.ArgumentError, match=f"`units` is needed: `{argument}` has numbers with a unit and numbers without"):
            call()
    for plain in (POS, 2.0, "2", [1.0] * 5):  # and no text that is a number has a unit
        with pytest.raises(ap.ArgumentError, match="`units` is needed: `pos` has a unit and `m` has none"):
            ap.Bodies(plain, pos)
    # A zero has any unit, and units that are named hold for all numbers.
    assert ap.Bodies(m, [[2 * u.kpc, 0, 0]] * 5).pos[4].tolist() == [2000, 0, 0]
    assert ap.Bodies(heavy, POS, units="pc").m.tolist() == [1, 2, 2, 2, 2]
    assert ap.Bodies(heavy[:1] + [0] * 4, pos).m.tolist() == [1, 0, 0, 0, 0]
    assert ap.Bodies(m, [["0 pc", "1 pc", "2 kpc"]] * 5).pos[0].tolist() == [0, 1, 2000]
    with pytest.raises(ap.ArgumentError, match="`units` is needed: `pos` has a unit and `time` has none"):
        ap.Bodies(m, pos, time=5.0)
    with pytest.raises(ap.ArgumentError, match="`m` has a unit and `pos` and `vel` have none"):
        ap.Bodies(m, POS, VEL)


def test_arrays_of_objects_are_lists_of_quantities() -> None:
    bodies = ap.Bodies(objects(np.ones(5), "Msun"), objects(POS, "pc"))
    assert bodies.pos == pytest.approx(POS) and bodies.m == pytest.approx(np.ones(5), rel=1e-5)
    found = ap.accelerations(objects(POS, "pc"), "1 Msun", "0.5 pc")
    assert found.to_value("km**2/(s**2*pc)") == pytest.approx(cluster().accelerations(0.5), rel=1e-4)


def test_texts_of_zero_and_of_other_dimensions() -> None:
    masses: Any = ["1 Msun", "0 Msun", "0.0 kg", ".0Msun", 0]
    bodies = ap.Bodies(masses, [["0 pc", "-1 pc", "1 pc"]] * 5)
    assert bodies.m.tolist() == [1, 0, 0, 0, 0] and bodies.pos[0].tolist() == [0, -1, 1]
    assert ap.orbit(["1 Msun", "0 Msun"], a="-1 au", e=1.5).m.tolist() == [1, 0]
    with pytest.raises(ap.ArgumentError, match="`m`: `pc` is not a mass"):
        ap.Bodies(["1 Msun", "0 pc"], POS[:2] * u.pc)
    with pytest.raises(ap.ArgumentError, match="`m`: `stones` is not a unit"):
        ap.Bodies(["1 Msun", "0 stones"], POS[:2] * u.pc)
    for vel in ("10 km/s", ["10 km/s"] * 3, [["1 km/s", 0, 0]] * 5):
        with pytest.raises(ap.ArgumentError, match="`vel` is the text '.*', and units are read from texts for lengths, masses and times"):
            ap.Bodies("1 Msun", POS * u.pc, vel)  # type: ignore[arg-type]


class Comoving:
    """An array as swiftsimio makes them."""

    def __init__(self, quantity: Any, a_factor: Any, comoving: bool = True) -> None:
        self.quantity, self.units, self.comoving = quantity, quantity.unit, comoving
        self.cosmo_factor = type("Factor", (), {"a_factor": a_factor})()

    def to_value(self, unit: str) -> Any:
        return self.quantity.to_value(unit)


def test_what_is_more_than_a_quantity_is_refused_with_a_way_out() -> None:
    from astropy.coordinates import CartesianRepresentation, SkyCoord
    from astropy.utils.masked import Masked

    pos, m = astropy(POS, "pc"), astropy(np.ones(5), "Msun")
    for strange in (Comoving(pos, 0.5), Comoving(pos, None)):
        with pytest.raises(ap.ArgumentError, match=r"`pos` is comoving.*`\.to_physical\(\)`"):
            ap.Bodies(m, strange)  # type: ignore[arg-type]
    for same in (Comoving(pos, 1.0), Comoving(pos, 0.5, comoving=False)):
        assert ap.Bodies(m, same).pos == pytest.approx(POS)  # type: ignore[arg-type]

    mask = np.array([False, True, False, False, False])
    masked: list[tuple[str, Callable[[], object]]] = [
        ("m", lambda: ap.Bodies(Masked(m, mask=mask), pos)),
        ("m", lambda: ap.Bodies([Masked(m[0], mask=True), *m[1:]], pos)),
        ("m", lambda: ap.Bodies(np.ma.masked_array(np.ones(5), mask), POS)),
        ("pos", lambda: ap.Bodies(1.0, [np.ma.masked_array(row, [False, True, False]) for row in POS])),
        ("pos", lambda: ap.accelerations(Masked(pos, mask=POS > 0), m)),
        ("id", lambda: ap.Bodies(1.0, POS, id=np.ma.masked_array(np.arange(5), mask))),
    ]
    for argument, call in masked:
        with pytest.raises(ap.ArgumentError, match=f"`{argument}` has masked elements"):
            call()
    assert (ap.Bodies(Masked(m, mask=False), pos).m == 1).all()

    at = CartesianRepresentation(pos.T)
    for coordinates, way in ((at, r"CartesianR.*`\.to_cartesian\(\)\.xyz\.T`"), (SkyCoord(at), r"SkyC.*`\.cartesian\.xyz\.T`")):
        with pytest.raises(ap.ArgumentError, match=f"`pos` is a {way}"):
            ap.Bodies(m, coordinates)
    assert ap.Bodies(m, SkyCoord(at).cartesian.xyz.T).pos == pytest.approx(POS)

    class Simulated(Silent):
        """As arrays of pynbody."""

        def in_units(self, unit: str) -> Any:
            return self

    silent: Any = Simulated(POS)
    with pytest.raises(ap.ArgumentError, match=r"`pos` has the unit furlong and cannot convert it \(Simulated\): give `\.in_units"):
        ap.accelerations(silent, m)


def test_units_of_datasets_are_not_dropped() -> None:
    """Datasets of h5py and arrays of xarray have units among their attributes."""

    class Dataset:
        attrs = {"units": b"kpc"}
        shape, dtype = (2, 3), np.dtype(float)

        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return np.eye(2, 3)

    with pytest.raises(ap.ArgumentError, match="`pos` has the unit kpc and cannot convert it"):
        ap.Bodies([1.0, 1.0], Dataset(), units="pc")
    Dataset.attrs = {"long_name": b"places"}
    assert len(ap.Bodies([1.0, 1.0], Dataset(), units="pc")) == 2
