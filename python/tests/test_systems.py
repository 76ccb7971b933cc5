"""Bodies put together, the groups they belong to, and what is bound."""

import pickle
from pathlib import Path

import numpy as np
import pytest

import allpairs as ap


def test_bodies_are_put_together() -> None:
    one = ap.Bodies([1, 2], [[1, 0, 0], [2, 0, 0]], units="pc", time="1 Myr", id=[3, 4])
    other = ap.Bodies([3], [[0.003, 0, 0]], [[1, 0, 0]], units="kpc", time="1 Myr", id=[9], kind=[1])
    both = ap.concatenate([one, other])
    assert both.pos[:, 0] == pytest.approx([1, 2, 3]) and str(both.units) == "pc, Msun, km/s"
    assert both.m == pytest.approx([1, 2, 3e10]) and both.vel[2] == pytest.approx([1, 0, 0])
    assert both.id.tolist() == [0, 1, 2] and both.kind.tolist() == [2, 2, 1] and both.group.tolist() == [0, 0, 1]
    assert both.time == one.time
    assert ap.concatenate([one, other], ids="keep").id.tolist() == [3, 4, 9]
    assert (one + other).pos == pytest.approx(both.pos)
    with pytest.raises(ap.ArgumentError, match="`ids` cannot be kept, because several bodies have the id 3"):
        ap.concatenate([one, one[:1]], ids="keep")
    other.time = "2 Myr"
    with pytest.raises(ap.ArgumentError, match="`bodies` are of different times"):
        ap.concatenate([one, other])
    for wrong in ([], [one, 3], [one, ap.plummer(3)]):
        with pytest.raises(ap.ArgumentError, match="`bodies`"):
            ap.concatenate(wrong)  # type: ignore[arg-type]
    with pytest.raises(ap.ArgumentError, match="`ids`"):
        ap.concatenate([one], ids="old")


@pytest.mark.parametrize("ratio, n", [(1.0, 4000), (1.0, 5), (0.25, 1000), (3.0, 999), (0.001, 5000), (1000.0, 50)])
def test_galaxies_that_meet_are_known_apart(ratio: float, n: int) -> None:
    bodies = ap.galaxy_collision(n, mass_ratio=ratio, separation=1e4, seed=3)
    # So far apart that the x axis tells: the first galaxy is on the side of the smaller coordinates.
    between = 1e4 * (0.5 - ratio / (1 + ratio))
    assert ((bodies.pos[:, 0] > between) == (bodies.group == 1)).all() and bodies.group.max() == 1


def test_systems_of_many_galaxies_are_known_apart() -> None:
    bodies = ap.many_galaxies(5, each=20, spacing=100.0, seed=2)
    centres = np.array([bodies.pos[bodies.group == k].mean(axis=0) for k in range(5)])
    nearest = np.linalg.norm(bodies.pos[:, None] - centres, axis=2).argmin(axis=1)
    assert (nearest == bodies.group).all() and np.bincount(bodies.group).tolist() == [20] * 5
    assert (ap.plummer(10).group == 0).all() and (ap.many_galaxies(of="two-body").group == np.repeat(range(8), 2)).all()


def test_groups_stay_with_their_bodies(tmp_path: Path) -> None:
    bodies = ap.galaxy_collision(60, mass_ratio=0.5, seed=1, mass="1e11 Msun", radius="3 kpc")
    second = set(bodies.id[bodies.group == 1])
    assert len(second) == 20

    def is_right(other: ap.Bodies) -> bool:
        return {int(i) for i in other.id[other.group == 1]} == {int(i) for i in second if i in other.id}

    mixed = bodies[np.random.default_rng(1).permutation(60)]
    others = [mixed, bodies[::3], bodies.copy(), bodies.to("pc"), mixed[mixed.m > 0]]
    for other in [*others, pickle.loads(pickle.dumps(bodies))]:
        assert is_right(other)
    simulation = ap.Simulation(mixed, softening="0.3 kpc", dt="0.1 Myr", device="cpu")
    simulation.integrate("0.5 Myr")
    assert is_right(simulation.bodies)
    with pytest.raises(ap.ArgumentError):
        simulation.bodies.group[0] = 3
    simulation.remove([0, 1, 59])
    assert len(simulation.bodies) == 57 and is_right(simulation.bodies)
    new = simulation.add(ap.Bodies(1.0, [[1e5, 0, 0]], group=[7], units=bodies.units))
    assert simulation.bodies.group[-1] == 7 and is_right(simulation.bodies[:-1])
    simulation.checkpoint(tmp_path / "run")
    resumed = ap.resume(tmp_path / "run")
    assert (resumed.bodies.group == simulation.bodies.group).all() and resumed.bodies.id[-1] == new[0]
    bodies.save(tmp_path / "a.npz")
    read = ap.load(tmp_path / "a.npz")
    with pytest.raises(ap.ArgumentError, match="`group` of these bodies is not known"):
        read.group
    with pytest.raises(ap.ArgumentError, match="`group` of these bodies is not known"):
        ap.Simulation(read, softening=0.1, dt=0.1, device="cpu").bodies.group
    read.group = bodies.group_of(read.id)
    assert is_right(read)
    assert bodies.group_of([59, 0, 60]).tolist() == [1, 0, -1]
    assert ap.concatenate([bodies, ap.plummer(3, mass="1 Msun", radius="1 pc"), bodies]).group.tolist() == [
        *bodies.group, 2, 2, 2, *(bodies.group + 3)
    ]  # fmt: skip
    for wrong in ([0.5] * 60, [0] * 59, [-2] * 60):
        with pytest.raises(ap.ArgumentError, match="`group`"):
            bodies.group = wrong


def energies(bodies: ap.Bodies, mask: np.ndarray, eps: float) -> np.ndarray:
    """Energy per mass of all bodies in the frame and the potential of some, pair by pair."""
    middle = (bodies.m[mask] @ bodies.vel[mask]) / bodies.m[mask].sum()
    distance = np.sqrt(((bodies.pos[:, None] - bodies.pos) ** 2).sum(axis=2) + eps**2)
    np.fill_diagonal(distance, np.inf)
    return np.asarray(0.5 * ((bodies.vel - middle) ** 2).sum(axis=1) - bodies.G * (mask * bodies.m / distance).sum(axis=1))


def test_bound_bodies_are_those_that_hold_each_other() -> None:
    cluster = ap.plummer(300, seed=1, mass="1e3 Msun", radius="1 pc")
    fast = ap.Bodies(0.5, 0.5 * cluster.pos[:40], cluster.vel[:40] + np.array([30.0, 0, 0]), units=cluster.units)
    both = ap.concatenate([cluster, fast])
    for eps in (0.0, 0.1):
        mask = both.bound(eps)
        assert mask.dtype == bool and mask[:300].sum() > 290 and not mask[300:].any()
        own = energies(both, mask, eps)
        assert (own[mask] < 0).all()
    assert (both.bound("0.1 pc") == both.bound(0.1)).all()
    # Those that fly away carry a third of the mass: their speed must not move the frame.
    both.m[300:] *= 1e3 * 0.5 / both.m[300:].sum()
    assert both.bound()[:300].sum() > 270 and not both.bound()[300:].any()
    # The units matter, and so does G.
    assert (both.bound(G=1e-9) == False).all()  # noqa: E712
    assert both.to("kpc").bound(1e-4).sum() == both.bound(0.1).sum()


def test_what_is_alone_is_not_bound_and_test_particles_can_be() -> None:
    assert ap.Bodies(1.0, [[0, 0, 0]]).bound().tolist() == [False] and ap.plummer(3)[:0].bound().tolist() == []
    vel = np.array([[0, 0, 0], [0, 1.4, 0], [0, 0, 1.5]])
    planets = ap.Bodies([1, 0, 0], [[0, 0, 0], [1, 0, 0], [0, -1, 0]], vel)
    # The star has no energy but by bodies with mass, so a companion holds it.
    pair = ap.concatenate([planets, ap.Bodies(1e-3, [[0, 3, 0]], [[0.5, 0, 0]])])
    assert pair.bound().tolist() == [True, True, False, True]
    assert ap.Bodies(0.0, np.eye(3)).bound().tolist() == [False] * 3
