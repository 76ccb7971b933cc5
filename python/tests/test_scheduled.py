"""Changes of bodies at times that are known before, states that are looked at ahead, and bounds of a run."""

import math
import pickle
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import allpairs as ap

BLOCKS = ap.Hermite4(eta=0.02, dt=1 / 64, block=True)


def cluster(**settings: Any) -> ap.Simulation:
    given: dict[str, Any] = {"softening": 0.0, "integrator": BLOCKS, "device": "cpu", **settings}
    return ap.Simulation(ap.plummer(40, seed=3), **given)


@dataclass
class Loses:
    """Takes a share of a star's mass again and again, and remembers when."""

    share: float
    pause: float
    until: float = math.inf
    seen: list[tuple[float, int]] = field(default_factory=list)

    def __call__(self, star: ap.DueBody) -> ap.Change:
        self.seen.append((star.t, star.id))
        later = star.t + self.pause
        return ap.Change(m=star.m * (1 - self.share), next=later if later < self.until else None)


def test_stars_lose_mass_exactly_when_they_are_to() -> None:
    for settings in ({}, {"groups": True}, {"integrator": ap.Leapfrog(dt=1 / 256), "softening": 0.05, "accuracy": "double"}):
        simulation = cluster(**settings)
        m = simulation.bodies.m
        loses = Loses(0.5, 0.01, 0.04)
        simulation.schedule([5, 9], [0.0123, 0.02], loses)
        assert simulation.scheduled == [(0.0123, 5), (0.02, 9)]
        before = simulation.energy().total
        assert simulation.integrate(0.05).t == 0.05
        times = [0.0123, 0.02, 0.0123 + 0.01, 0.02 + 0.01, 0.0123 + 0.01 + 0.01]
        assert loses.seen == list(zip(times, [5, 9, 5, 9, 5]))
        assert not simulation.scheduled
        now = simulation.bodies.m
        assert math.isclose(now[5], m[5] / 8) and math.isclose(now[9], m[9] / 4)
        brought = simulation.brought
        assert math.isclose(brought.mass, -(7 / 8 + 3 / 4) / 40) and brought.energy > 0.01
        assert simulation.energy_error < 1e-4
        assert abs(simulation.energy().total - before - brought.energy) < 1e-4 * abs(before)


def test_a_change_gets_the_body_and_its_partner() -> None:
    pos = np.array([[0, 0, 0], [0.1, 0, 0], [5, 5, 5]])
    vel = np.array([[0, 0, 0], [0, math.sqrt(10), 0], [0, 0, 0]])
    bodies = ap.Bodies([0.7, 0.3, 1e-6], pos, vel)
    simulation = ap.Simulation(bodies, softening=0, integrator=ap.Hermite4(eta=0.002, dt=1 / 64), device="cpu", radii=[1e-3, 0, 0])
    seen = []

    def explodes(star: ap.DueBody) -> ap.Change:
        seen.append(star)
        assert simulation.t == star.t and len(simulation.bodies) == 3  # it may look
        return ap.Change(m=0.1, kick=[0.0, 0.0, 2.0], radius=1e-5)

    simulation.schedule(0, 0.03, explodes)
    before = simulation.at(0.03)
    simulation.integrate(0.03)
    (star,) = seen
    assert (star.id, star.t, star.m, star.radius) == (0, 0.03, 0.7, 1e-3)
    assert star.partner is not None and star.partner.id == 1 and star.partner.m == 0.3
    assert math.isclose(star.partner.semi_major_axis, 0.1, rel_tol=1e-6) and star.partner.eccentricity < 1e-3
    np.testing.assert_array_equal(star.pos, before.pos[0])
    after = simulation.bodies
    np.testing.assert_allclose(after.vel[0], star.vel + [0, 0, 2.0], rtol=1e-14)
    assert after.m[0] == 0.1 and simulation.radii is not None and simulation.radii[0] == 1e-5
    # It has lost more than half of the pair's mass: nothing holds the pair together.
    simulation.schedule(1, 0.5, lambda star: seen.append(star))
    simulation.integrate(0.6)
    assert seen[1].partner is None


def test_units_and_removal() -> None:
    stars = ap.plummer(30, seed=1, units="pc,Msun,km/s", mass="1000 Msun", radius="1 pc")
    simulation = ap.Simulation(stars, softening="0.01 pc", dt="0.01 Myr", device="cpu")
    m = stars.m[4]

    def change(star: ap.DueBody) -> ap.Change:
        if star.id == 4:
            return ap.Change(m="3 Msun", kick=[1.0, 0.0, 0.0], next="0.5 Myr")
        return ap.Change(removed=True)

    simulation.schedule([4, 7], "0.123 Myr", change)
    simulation.integrate("0.2 Myr")
    assert len(simulation.bodies) == 29 and 7 not in simulation.bodies.id
    assert math.isclose(simulation.bodies.m[4], 3.0) and m > 10
    ((later, id),) = simulation.scheduled
    units = simulation.bodies.units
    assert units is not None and id == 4 and math.isclose(later / simulation.t, 2.5)
    simulation.remove(4)
    with pytest.warns(UserWarning, match="the body 4 was to change at .*, and is not there any more"):
        simulation.integrate("0.6 Myr")
    assert not simulation.scheduled


def test_steps_and_rows_go_on_beside_changes() -> None:
    simulation = cluster(integrator=ap.Leapfrog(dt=0.01), softening=0.1)
    simulation.schedule(3, 0.025, Loses(0.5, 0.03, 0.1))
    simulation.step(4)
    assert simulation.steps == 4 and math.isclose(simulation.t, 0.035)  # the third was shortened
    simulation.integrate(0.1, every=0.02)
    assert simulation.t == 0.1 and len(simulation.log) == 5
    assert simulation.largest_energy_error < 1e-3


def test_what_cannot_be_scheduled_is_refused() -> None:
    simulation = cluster()
    simulation.integrate(0.01)
    loses = Loses(0.1, 1.0)
    for ids, t, change, argument in (
        (99, 0.1, loses, "ids"),
        (3, 0.01, loses, "t"),
        (3, math.nan, loses, "t"),
        ([3, 4], [0.1, 0.2, 0.3], loses, "t"),
        (3, 0.1, 0.5, "change"),
    ):
        with pytest.raises(ap.ArgumentError) as caught:
            simulation.schedule(ids, t, change)  # type: ignore[arg-type]
        assert caught.value.argument == argument, (ids, t)
    assert not simulation.scheduled
    back = cluster(integrator=ap.Leapfrog(dt=-0.01), softening=0.1)
    with pytest.raises(ap.ArgumentError, match="forward"):
        back.schedule(3, 0.1, loses)


def test_a_change_that_fails_leaves_the_simulation_at_its_time() -> None:
    simulation = cluster()
    outcomes: list[Any] = [
        lambda star: 1 / 0,
        lambda star: {"m": 1.0},
        lambda star: ap.Change(m=-1.0),
        lambda star: ap.Change(m=math.nan),
        lambda star: ap.Change(kick=[1.0, 2.0]),
        lambda star: ap.Change(radius=1.0),
        lambda star: ap.Change(next=star.t),
        lambda star: simulation.integrate(1.0),
        lambda star: simulation.kick([1.0, 0.0, 0.0]),
        lambda star: simulation.remove(3),
        lambda star: simulation.close(),
        lambda star: None,
    ]
    simulation.schedule(5, 0.0123, lambda star: outcomes[0](star))
    m = simulation.bodies.m[5]
    while len(outcomes) > 1:
        error = ZeroDivisionError if len(outcomes) == 12 else ap.ArgumentError
        with pytest.raises(error) as caught:
            simulation.integrate(0.05)
        notes = getattr(caught.value, "__notes__", None)
        if notes is not None:
            assert "the body 5" in notes[0]
        assert simulation.t == 0.0123 and simulation.bodies.m[5] == m and simulation.scheduled == [(0.0123, 5)]
        outcomes.pop(0)
    assert simulation.integrate(0.05).t == 0.05 and not simulation.scheduled
    assert simulation.brought.energy == 0


def test_resumed_with_the_function_and_its_state(tmp_path: Any) -> None:
    def begun() -> tuple[ap.Simulation, Loses]:
        simulation, loses = cluster(groups=True), Loses(0.2, 0.007, 0.1)
        simulation.schedule([1, 2], [0.011, 0.0155], loses)
        return simulation, loses

    whole, loses = begun()
    whole.integrate(0.1)
    parts, _ = begun()
    for t in (0.011, 0.03, 0.0155 + 0.007 * 3, 0.1):
        parts.integrate(max(t, parts.t))
        parts.checkpoint(tmp_path / "kept")
        parts = ap.resume(tmp_path / "kept")
    reference, other = whole.bodies, parts.bodies
    # Ends of `integrate` shorten steps of one of them: masses are the same, bit for bit.
    np.testing.assert_array_equal(reference.m, other.m)
    np.testing.assert_allclose(reference.pos, other.pos, atol=1e-6)
    again = pickle.loads(pickle.dumps(whole))
    whole.schedule(1, 0.11, loses)
    again.schedule(1, 0.11, loses)
    for simulation in (whole, again):
        simulation.integrate(0.12)
    np.testing.assert_array_equal(whole.bodies.pos, again.bodies.pos)
    parts.schedule(1, 0.2, lambda star: None)
    with pytest.raises(ap.ArgumentError, match="cannot be kept in a checkpoint"):
        parts.checkpoint(tmp_path / "other")
    parts.unschedule()
    parts.checkpoint(tmp_path / "other")


def test_a_state_ahead_does_not_change_the_steps() -> None:
    for settings in ({}, {"groups": True}, {"integrator": ap.Leapfrog(dt=0.004), "softening": 0.05}):
        looked, plain = cluster(**settings), cluster(**settings)
        looked.integrate(0.02)
        plain.integrate(0.02)
        ahead = [looked.at(t) for t in (0.02, 0.0211, 0.033, 0.05)]
        assert [bodies.time for bodies in ahead] == [0.02, 0.0211, 0.033, 0.05]
        assert looked.t == 0.02 and looked.steps == plain.steps
        looked.integrate(0.05)
        plain.integrate(0.05)
        np.testing.assert_array_equal(looked.bodies.pos, plain.bodies.pos)
        np.testing.assert_array_equal(ahead[3].pos, plain.bodies.pos)
        with pytest.raises(ap.ArgumentError, match="already"):
            looked.at(0.04)
        looked.schedule(1, 0.06, Loses(0.1, 1.0))
        with pytest.raises(ap.ArgumentError, match="integrate to that time first"):
            looked.at(0.07)


def test_a_run_ends_after_steps_or_seconds() -> None:
    simulation = cluster(integrator=ap.Leapfrog(dt=0.01), softening=0.1)
    simulation.integrate(1.0, max_steps=7)
    assert simulation.steps == 7 and math.isclose(simulation.t, 0.07)
    simulation.integrate(1.0, max_steps=3, every=0.02)
    assert simulation.steps == 10 and len(simulation.log) == 3
    simulation.integrate(1e6, max_seconds=0.2)
    assert simulation.steps > 10 and simulation.t < 1e6
    simulation.integrate(1e6, max_seconds=0)
    blocks = cluster()
    blocks.integrate(10.0, max_steps=2)
    assert blocks.t == 2 / 64
    for bad, argument in (({"max_steps": -1}, "max_steps"), ({"max_seconds": -1.0}, "max_seconds"), ({"max_seconds": math.nan}, "max_seconds")):
        with pytest.raises(ap.ArgumentError) as caught:
            blocks.integrate(10.0, **bad)
        assert caught.value.argument == argument


def test_one_body_drifts_and_massless_bodies_move() -> None:
    alone = ap.Simulation(ap.Bodies([1.0], np.array([[1.0, 0, 0]]), np.array([[0.5, -1, 2]])), dt=0.1)
    np.testing.assert_allclose(alone.integrate(1.0).bodies.pos, [[1.5, -1.0, 2.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        massless = ap.Simulation(ap.Bodies([0.0, 0.0], np.array([[1.0, 0, 0], [0, 1, 0]]), np.array([[0, 1, 0], [0, 0, 3.0]])), dt=0.1)
        np.testing.assert_allclose(massless.integrate(1.0).bodies.pos, [[1, 1, 0], [0, 1, 3]])


def test_back_in_time_with_steps_that_follow_the_motion() -> None:
    for settings in ({}, {"groups": True}, {"integrator": ap.Hermite4(eta=0.005), "softening": 0.01}):
        simulation = cluster(**{"integrator": ap.Hermite4(eta=0.002, dt=1 / 64, block=True), **settings})
        start = simulation.bodies
        simulation.integrate(0.1)
        simulation.integrate(0.0, every=0.03)
        np.testing.assert_allclose(simulation.bodies.pos, start.pos, atol=1e-5)
        np.testing.assert_allclose(simulation.log["time"], [0.1, 0.07, 0.04, 0.01, 0.0], atol=1e-12)
        assert simulation.t == 0 and abs(simulation.brought.energy) < 1e-12
        simulation.integrate(0.01)
        with pytest.raises(ap.ArgumentError, match="is for runs forward"):
            simulation.integrate(0.0, max_steps=3)
        simulation.schedule(1, 0.02, Loses(0.1, 1.0))
        with pytest.raises(ap.ArgumentError, match="changes of bodies are scheduled"):
            simulation.integrate(0.0)
    tide = cluster(field="tide:omega=0.1")
    tide.integrate(0.01)
    with pytest.raises(ap.ArgumentError, match="depends on velocities") as caught:
        tide.integrate(0.0)
    assert caught.value.argument == "t"
