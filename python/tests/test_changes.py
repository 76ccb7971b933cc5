"""Changes of a simulation that runs: kicks, new values, bodies that come and go; and arrays that are given out."""

import copy
import pickle
import re
from pathlib import Path
from typing import Any, Callable

import astropy.units as u
import numpy as np
import pytest

import allpairs as ap


def cluster(units: str | None = None, **settings: Any) -> ap.Simulation:
    bodies = ap.plummer(40, seed=1)
    if units is not None:
        bodies = ap.Bodies(bodies.m, bodies.pos, bodies.vel, units=units)
    return ap.Simulation(bodies, device="cpu", **{"softening": 0.05, **settings})


def state(simulation: ap.Simulation) -> tuple[bytes, ...]:
    bodies = simulation.bodies
    numbers = (bodies.pos, bodies.vel, bodies.m, bodies.id, simulation.accelerations)
    return (*(array.tobytes() for array in numbers), repr(simulation.brought).encode())


Change = Callable[[ap.Simulation], object]

PACES = [
    ap.Leapfrog(0.01),
    ap.Hermite4(eta=0.02),
    ap.Hermite4(eta=0.02, block=True),
    ap.Hermite4(eta=0.02, block=True, neighbours=8),
    ap.Hermite6(eta=0.3, block=True),
]


@pytest.mark.parametrize("integrator", PACES, ids=lambda one: f"{one.name}-{one.eta}-{one.block}-{one.neighbours}")
def test_changes_are_made_booked_and_kept(integrator: ap.Integrator, tmp_path: Path) -> None:
    simulation = cluster(integrator=integrator)
    simulation.integrate(0.1)
    before, energy = simulation.bodies, simulation.energy().total
    dv = 1e-3 * np.arange(120).reshape(40, 3)
    simulation.kick(dv)
    assert np.array_equal(simulation.bodies.vel, before.vel + dv)
    assert np.array_equal(simulation.bodies.pos, before.pos)
    assert simulation.brought.energy == pytest.approx(simulation.energy().total - energy, rel=1e-10)
    assert np.allclose(simulation.brought.momentum, before.m @ dv)
    simulation.kick([0.1, 0, 0], ids=[3, 4])
    assert np.array_equal(simulation.bodies.vel[3], before.vel[3] + dv[3] + [0.1, 0, 0])
    simulation.set([5, 6], m=[0.03, 0.04], pos=[[0.4, 0.3, 0.2], [0.1, -0.3, 0.2]])
    simulation.set(7, vel=[0, 0, 0], m=0.01)
    now = simulation.bodies
    assert now.m[5:8].tolist() == [0.03, 0.04, 0.01] and now.pos[6].tolist() == [0.1, -0.3, 0.2]
    assert now.vel[7].tolist() == [0, 0, 0]
    more = ap.Bodies([0.01, 0.02], [[1.0, 1.0, 1.0], [-1.0, 0.0, 0.5]])
    assert simulation.add(more).tolist() == [40, 41]
    simulation.remove([0, 40])
    now = simulation.bodies
    assert now.id.tolist() == [*range(1, 40), 41]
    brought = simulation.energy().total - energy - simulation.brought.energy
    assert abs(brought) < 1e-10
    assert simulation.brought.mass == pytest.approx(now.m.sum() - before.m.sum())
    assert simulation.energy_error < 1e-3
    # It goes on with the same bits from what was saved, with its bookings.
    copy = pickle.loads(pickle.dumps(simulation))
    simulation.checkpoint(tmp_path / "kept")
    resumed = ap.resume(tmp_path / "kept")
    assert state(copy) == state(simulation) == state(resumed)
    for each in (simulation, copy, resumed):
        each.integrate(0.3)
        assert state(each) == state(simulation)
        assert each.energy_error < 5e-3


def test_an_equal_kick_of_all_changes_no_path() -> None:
    kicked, still = (cluster(integrator=ap.Hermite4(eta=0.02, block=True)) for _ in range(2))
    for simulation in (kicked, still):
        simulation.integrate(0.25)
    kicked.kick([0.0, 0.0, 2.0])
    for simulation in (kicked, still):
        simulation.integrate(0.5)
    moved = kicked.bodies.pos - still.bodies.pos
    assert np.allclose(moved, [0, 0, 0.5], atol=1e-6)


def test_numbers_with_units_are_converted() -> None:
    simulation = cluster("pc,Msun,km/s", softening="0.05 pc", dt="1e-3 Myr")
    velocity = simulation.bodies.vel[2].copy()
    simulation.kick([1000, 0, 0] * u.m / u.s, ids=[2])
    assert np.allclose(simulation.bodies.vel[2], velocity + [1, 0, 0])
    simulation.set(2, m=2 * u.kg, pos=[[1, 0, 0]] * u.kpc)
    simulation.set(3, m="3 Msun")
    assert simulation.bodies.pos[2, 0] == pytest.approx(1000)
    assert simulation.bodies.m[3] == 3
    changes: list[Change] = [
        lambda s: s.kick([1, 0, 0] * u.m),
        lambda s: s.set(2, m=1 * u.m),
        lambda s: s.set(2, pos=[[1, 0, 0]] * u.s),
    ]
    for change in changes:
        with pytest.raises(ap.ArgumentError, match="`(dv|m|pos)`"):
            change(simulation)
    with pytest.raises(ap.ArgumentError, match="`bodies` have the units None"):
        simulation.add(ap.Bodies(1, [[9, 9, 9]]))
    simulation.add(ap.Bodies(1, [[9, 9, 9]], units="pc,Msun,km/s"))
    with pytest.raises(ap.ArgumentError, match="`dv` has a unit"):
        cluster().kick([1, 0, 0] * u.m / u.s)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda s: s.kick(np.zeros((3, 3))), "`dv` has 3 rows where there are 40 bodies"),
        (lambda s: s.kick(np.zeros(40)), "`dv` must have the shape"),
        (lambda s: s.kick([np.nan, 0, 0]), "`dv`: velocities of the body with the id 0: NaN"),
        (lambda s: s.kick([0, 0, 0], ids=[99]), "`ids`: no body has the id 99"),
        (lambda s: s.kick([0, 0, 0], ids=[1, 1]), "the id 1 was given twice"),
        (lambda s: s.kick([0, 0, 0], ids=[0.5]), "`ids` must hold whole numbers"),
        (lambda s: s.kick([0, 0, 0], ids=[-1]), "`ids` must be from 0"),
        (lambda s: s.set([1, 2], m=[1]), "`m` has 1 elements where there are 2 bodies"),
        (lambda s: s.set(1, m=np.inf), "`m`: masses of the body with the id 1: inf"),
        (lambda s: s.set(1, m=-1), "is negative"),
        (lambda s: s.set(1, pos=s.bodies.pos[2]), "same place, and the softening is 0"),
        (lambda s: s.set(1, radii=0.1), "`radii`: there are radii, and the simulation looks for no encounters"),
        (lambda s: s.add(s.bodies[3]), "would be at the same place"),
        (lambda s: s.add(ap.plummer(2, seed=5), ids=[50, 3]), "`ids`: another body has the id 3"),
        (lambda s: s.add("plummer"), "`bodies` must be Bodies"),
        (lambda s: s.remove([77]), "no body has the id 77"),
        (lambda s: s.remove(range(40)), "no body would be left"),
    ],
)
def test_a_change_that_makes_no_sense_is_refused(change: Change, why: str) -> None:
    simulation = cluster(softening=0, dt=0.001)
    simulation.integrate(0.01)
    before = state(simulation)
    with pytest.raises(ap.ArgumentError, match=re.escape(why)):
        change(simulation)
    assert state(simulation) == before


def test_nothing_is_changed_by_mistake() -> None:
    simulation = cluster(radii=1e-4)
    bodies = simulation.bodies
    attempts: list[Change] = [
        lambda s: bodies.vel.__iadd__(1),
        lambda s: bodies.vel.__setitem__((0, 0), 1),
        lambda s: bodies.pos[3].__setitem__(0, 1),
        lambda s: bodies.m.__imul__(2),
        lambda s: setattr(bodies, "vel", np.zeros((40, 3))),
        lambda s: setattr(s.bodies, "m", 1),
        lambda s: s.accelerations.__setitem__(0, 0),
        lambda s: np.ndarray.__iadd__(bodies.m, 1) if s.radii is None else s.radii.__setitem__(0, 0),
        # A body, and a slice of bodies, are parts of them as of numpy's arrays.
        lambda s: s.bodies[0].vel.__setitem__(slice(None), 7),
        lambda s: setattr(s.bodies[0], "vel", [[1, 1, 1]]),
        lambda s: [body.vel.__setitem__(0, 3) for body in s.bodies],
        lambda s: s.bodies[:3].pos.__isub__(1),
        lambda s: s.bodies[1:][0].m.__setitem__(0, 1),
        lambda s: setattr(s.bodies, "time", 5.0),
        lambda s: setattr(s.bodies, "units", "pc"),
        lambda s: setattr(s.bodies[2], "time", 5),
    ]
    for attempt in attempts:
        with pytest.raises(ap.ArgumentError, match="`kick` or `set`"):
            attempt(simulation)
    with pytest.raises(ValueError, match="read-only"):
        np.add(bodies.pos, 1, out=bodies.pos)
    # Copies and results are arrays like others.
    own = bodies.copy()
    own.vel += 1
    own[:3].pos[:] = 0
    some = bodies[bodies.m > 0]
    some.pos -= some.pos.mean(axis=0)
    some.time, some.units = 3.0, None
    for array in (bodies.pos * 2, bodies.pos.copy(), np.array(bodies.pos), pickle.loads(pickle.dumps(bodies.pos))):
        assert type(array) is np.ndarray and array.flags.writeable
    for array in (
        own.vel, bodies.pos[bodies.m > 0], bodies.pos.astype(float), np.take(bodies.pos, [0, 1], axis=0), copy.deepcopy(bodies.pos),
        np.zeros_like(bodies.pos), bodies.pos[np.argsort(bodies.m)], copy.deepcopy(bodies).pos, (bodies + bodies).pos,
        pickle.loads(pickle.dumps(bodies)).vel, bodies[[3, 1]].pos, bodies.to("kpc", given="pc").pos,
    ):  # fmt: skip
        before = array.copy()
        array -= 1
        array **= 2
        array[0] += 1
        assert array[1:] == pytest.approx((before[1:] - 1) ** 2) and array[0] == pytest.approx((before[0] - 1) ** 2 + 1)
    assert type(bodies.m.sum()) is np.float64
    assert np.array_equal(pickle.loads(pickle.dumps(bodies)).pos, bodies.pos)
    assert np.array_equal(simulation.bodies.vel, bodies.vel)
    ap.Simulation(bodies, softening=0.05, device="cpu")


def test_radii_go_along() -> None:
    simulation = cluster(radii=1e-4, on_collision="merge")
    simulation.integrate(0.01)
    simulation.remove(0)
    simulation.set(1, radii=2e-4)
    at = simulation.bodies
    hits = ap.Bodies(0.01, at.pos[2:3] + [0.01, 0, 0], at.vel[2:3] - [5, 0, 0])
    with pytest.raises(ap.ArgumentError, match="overlap"):
        simulation.add(hits, radii=0.02)
    (new,) = simulation.add(hits, radii=3e-4)
    assert simulation.radii is not None
    assert simulation.radii.tolist() == [2e-4] + [1e-4] * 38 + [3e-4]
    simulation.integrate(0.05)
    assert [set(event["id"]) for event in simulation.events] == [{3, new}]


def test_changes_in_a_callback_and_in_a_batch() -> None:
    simulation = cluster(dt=0.01)
    kicks = []

    def kick(running: ap.Simulation) -> None:
        running.kick([0.01, 0, 0])
        kicks.append(running.t)

    simulation.integrate(0.1, every=0.02, callback=kick)
    momentum = simulation.bodies.m @ simulation.bodies.vel
    assert len(kicks) > 3 and momentum[0] == pytest.approx(0.01 * len(kicks))
    assert simulation.energy_error < 1e-3

    batch = ap.batch([ap.plummer(10, seed=k) for k in (1, 2)], softening=0.05, device="cpu", dt=0.01)
    batch.kick([0.1, 0, 0])
    with pytest.raises(ap.ArgumentError, match="independent systems"):
        batch.add(ap.plummer(2, seed=3))


def test_a_simulation_that_is_closed_is_not_changed() -> None:
    simulation = cluster()
    simulation.close()
    with pytest.raises(ap.ClosedError):
        simulation.kick([0.1, 0, 0])
