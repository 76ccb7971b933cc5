"""Simulations: times, integrators, looks, checkpoints, interruptions, threads, and the program's bits."""

import math
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any, Callable

import astropy.units as u
import numpy as np
import pytest

import allpairs as ap
from allpairs import _native, _simulation
from allpairs._simulation import Settings


def cluster(**settings: Any) -> ap.Simulation:
    return ap.Simulation(ap.plummer(60, seed=1), softening=0.05, device="cpu", **settings)


def state(simulation: ap.Simulation) -> bytes:
    bodies = simulation.bodies
    return bodies.pos.tobytes() + bodies.vel.tobytes()


@pytest.mark.parametrize(
    "integrator",
    [
        ap.Leapfrog(0.01),
        ap.LeapfrogDKD(0.01),
        ap.Yoshida4(0.02),
        ap.Yoshida6(0.02),
        ap.Hermite4(0.01),
        ap.Hermite4(eta=0.02),
        ap.Hermite4(eta=0.02, block=True),
        ap.Hermite4(eta=0.02, block=True, neighbours=12),
        ap.Hermite6(eta=0.3, block=True),
        ap.Euler(0.001),
        ap.DampedEuler(0.001, damping=0.0),
    ],
    ids=lambda integrator: f"{integrator.name}-{integrator.eta}-{integrator.block}-{integrator.neighbours}",
)
def test_every_integrator_goes_on(integrator: ap.Integrator, tmp_path: Path) -> None:
    simulation = cluster(integrator=integrator)
    assert simulation.integrator.name == integrator.name
    assert simulation.integrator.neighbours == integrator.neighbours
    assert simulation.integrate(0.333).t == 0.333
    assert simulation.energy_error < 2e-3
    copy = pickle.loads(pickle.dumps(simulation))
    simulation.checkpoint(tmp_path / "kept")
    resumed = ap.resume(tmp_path / "kept")
    for each in (simulation, copy, resumed):
        each.integrate(0.5)
        assert each.t == 0.5 and state(each) == state(simulation)
    assert simulation.integrate(0.5).t == 0.5, "nothing to do"
    if integrator.eta is not None:
        assert simulation.integrate(0.2).t == 0.2
        return
    with pytest.raises(ap.ArgumentError, match="`t` is 0.2, .* go back in time"):
        simulation.integrate(0.2)
    assert simulation.t == 0.5


def test_block_steps_choose_what_is_left_out() -> None:
    simulation = cluster(block=True)
    assert (simulation.integrator.name, simulation.integrator.eta) == ("hermite6", 0.36)
    near = cluster(block=True, neighbours="auto")
    chosen = near.integrator
    assert (chosen.name, chosen.eta, chosen.neighbours) == ("hermite4", 0.04, "auto")
    copy = pickle.loads(pickle.dumps(near))
    for each in (near, copy):
        each.integrate(0.25)
    assert state(near) == state(copy)


def test_times_and_steps() -> None:
    simulation = cluster(dt=0.125)
    simulation.step()
    simulation.step(3)
    assert (simulation.t, simulation.steps, simulation.dt) == (0.5, 4, 0.125)
    simulation.run_until(0.8)
    simulation.step()
    assert simulation.t == 0.8 + 0.125
    back = cluster(dt=-0.125).integrate(-1.0)
    assert (back.t, back.steps) == (-1.0, 8)
    back.integrate(-2.0, every=0.5)
    assert back.log["time"].tolist() == [-1.0, -1.5, -2.0]
    with pytest.raises(ap.ArgumentError, match="`dt` must be positive"):
        back.integrate(-1.0)


def test_looks_do_not_change_the_run() -> None:
    quiet = cluster(dt=0.03).integrate(1.0)
    seen: list[float] = []
    watched = cluster(dt=0.03)
    watched.integrate(1.0, every=0.25, callback=lambda s: seen.append(s.t))
    assert state(watched) == state(quiet)
    assert seen == pytest.approx([0.27, 0.51, 0.75, 1.0]) and seen[-1] == 1.0
    log = watched.log
    assert log.dtype == ap.LOG and log["time"].tolist() == [0.0, *seen]
    assert (log["energy_drift"] < 1e-3).all() and log["energy_drift"][0] == 0
    assert log["energy"] == pytest.approx(log["kinetic"] + log["potential"])
    assert log["r50"].min() > 0 and log["steps"].tolist()[-1] == quiet.steps
    stopped = cluster(dt=0.03).integrate(1.0, every=0.25, callback=lambda s: s.t > 0.5)
    assert stopped.t == pytest.approx(0.51)
    varying = cluster(integrator=ap.Hermite4(eta=0.02)).integrate(1.0, every=0.25)
    assert len(varying.log) == 5 and varying.t == 1.0

    def fails(_: ap.Simulation) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        watched.integrate(2.0, every=0.25, callback=fails)
    assert watched.integrate(2.0).t == 2.0


@pytest.mark.parametrize("every", [0.03, 0.001, 1e-9])
@pytest.mark.parametrize("integrator", [ap.Leapfrog(0.1), ap.Hermite4(eta=0.02)])
def test_looks_that_are_closer_than_steps_see_each_state_once(every: float, integrator: ap.Integrator) -> None:
    seen: list[int] = []
    simulation = cluster(integrator=integrator)
    simulation.integrate(1.0, every=every, callback=lambda s: seen.append(s.steps))
    assert seen == sorted(set(seen)) and seen[-1] == simulation.steps and simulation.t == 1.0
    assert len(simulation.log) == len(seen) + 1
    if integrator.dt is not None:
        assert seen == list(range(1, 11))
    with pytest.raises(ap.ArgumentError, match="`every` is too short"):
        simulation.integrate(2.0, every=5e-324)


def test_callbacks_stop_a_run_by_any_truth_value() -> None:
    def run(stop: Any) -> float:
        return cluster(dt=0.1).integrate(1.0, every=0.1, callback=lambda s: stop).t

    for stop in (True, np.True_, np.array([0.2]).max() > 0.1):
        assert run(stop) == pytest.approx(0.1), stop
    for go_on in (False, None, np.False_):
        assert run(go_on) == 1.0
    strange: Any
    for strange in (1, "yes", np.array([True]), [], 0.0):
        with pytest.raises(ap.ArgumentError, match="`callback` must return True"):
            run(strange)
    with pytest.raises(ap.ArgumentError, match="`callback` must return True"):
        cluster(dt=0.1).integrate(1.0, callback=lambda s: 3)


def test_names_that_are_not_there_are_refused_with_the_right_one() -> None:
    bodies, simulation = ap.plummer(4), cluster(dt=0.1)
    given: list[tuple[Any, str, str]] = [
        (bodies, "mass", "m"),
        (bodies, "masses", "m"),
        (bodies, "position", "pos"),
        (bodies, "velocity", "vel"),
        (bodies, "unit", "units"),
        (simulation, "softning", "softening"),
        (simulation, "time", "t"),
        (simulation, "eps", "softening"),
    ]
    for holder, name, right in given:
        with pytest.raises(AttributeError, match=f"has no attribute `{name}`: did you mean `{right}`") as refused:
            setattr(holder, name, 1.0)
        assert isinstance(refused.value, ap.ArgumentError)
        with pytest.raises(AttributeError, match=f"did you mean `{right}`"):
            getattr(holder, name)
    for holder in (simulation, ap.view(bodies), ap.plot(simulation.integrate(0.1, every=0.1)), ap.series([__file__])):
        with pytest.raises(AttributeError, match="has no attribute `foo`$"):
            setattr(holder, "foo", 1)
    with pytest.raises(AttributeError, match="Series has no attribute `file`: did you mean `files`"):
        setattr(ap.series([__file__]), "file", 1)
    for name in ("dt", "t", "softening"):
        with pytest.raises(AttributeError):
            setattr(simulation, name, 0.5)
    batch = ap.batch([bodies, bodies], dt=0.1, device="cpu")
    with pytest.raises(AttributeError, match="`foo`"):
        setattr(batch, "foo", 1)

    class Mine(ap.Bodies):
        """A class of a user may have what it wants."""

    mine = Mine(1.0, np.eye(3))
    mine.colour = "red"  # type: ignore[attr-defined]
    assert mine.colour == "red"  # type: ignore[attr-defined]


def test_bad_settings_are_refused_by_name() -> None:
    for argument, settings in [
        ("softening", {"softening": -1}),
        ("dt", {"dt": 0}),
        ("dt", {"dt": "fast"}),
        ("integrator", {"eta": 0.1}),
        ("integrator", {"integrator": ap.Leapfrog(), "dt": 1}),
        ("integrator", {"integrator": ap.Hermite4(eta=0.1, block=True), "neighbours": 4}),
        ("neighbours", {"integrator": "hermite4", "eta": 0.1, "neighbours": 4}),
        ("neighbours", {"integrator": ap.Hermite4(eta=0.1, block=True, neighbours=0)}),
        ("neighbours", {"integrator": ap.Hermite4(eta=0.1, block=True, neighbours="few")}),
        ("neighbours", {"integrator": "hermite6", "eta": 0.1, "block": True, "neighbours": 4}),
        (
            "neighbours",
            {"integrator": "hermite4", "eta": 0.1, "block": True, "neighbours": 4, "accuracy": "single"},
        ),
        (
            "neighbours",
            {
                "integrator": ap.Hermite4(eta=0.1, block=True, neighbours="auto"),
                "device": "cpu",
                "systems": 2,
            },
        ),
        ("damping", {"integrator": ap.Integrator("leapfrog", damping=1.0)}),
        ("damping", {"integrator": ap.DampedEuler(damping=-1.0)}),
        ("law", {"law": "gravity", "drag": 1}),
        ("drag", {"law": "attract-repel", "drag": -1}),
        ("device", {"device": "cuda:x"}),
        ("systems", {"systems": 0}),
        ("G", {"G": np.inf}),
    ]:
        with pytest.raises(ap.ArgumentError, match=f"`{argument}`"):
            ap.Simulation(ap.plummer(16), **settings)  # type: ignore[arg-type]
    # What the library calls otherwise is told by its name here.
    for text, settings in [
        (
            '^`neighbours` needs `integrator="hermite4"`, not hermite6: ',
            {"integrator": "hermite6", "eta": 0.3, "block": True, "neighbours": 64},
        ),
        (
            "^`neighbours` needs `block`, ",
            {"integrator": "hermite4", "eta": 0.1, "neighbours": 4},
        ),
    ]:
        with pytest.raises(ap.ArgumentError, match=text):
            ap.Simulation(ap.plummer(16), **settings)  # type: ignore[arg-type]
    with pytest.raises(ap.ArgumentError, match="`bodies`"):
        ap.Simulation(np.ones((3, 3)))  # type: ignore[arg-type]
    simulation = cluster(dt=0.1)
    for argument, call in [
        ("t", lambda: simulation.integrate(np.nan)),
        ("every", lambda: simulation.integrate(1, every=0)),
        ("callback", lambda: simulation.integrate(1, callback=3)),  # type: ignore[arg-type]
        ("n", lambda: simulation.step(-1)),
    ]:
        with pytest.raises(ap.ArgumentError, match=f"`{argument}`"):
            call()  # type: ignore[no-untyped-call]
    if not ap.devices():
        with pytest.raises(ap.DeviceError, match='`device="cuda"` needs a GPU'):
            ap.Simulation(ap.plummer(16), device="cuda")


def test_choices_are_told() -> None:
    planets = ap.Simulation(ap.solar_system(), device="cpu")
    assert (planets.integrator.name, planets.kernel, planets.softening) == ("yoshida6", "cpu-f64", 0.0)
    # Bodies much heavier than stars stand for many stars, so they are softened.
    sky = ap.Simulation(ap.plummer(200, mass="1e6Msun", radius="1pc"), device="cpu")
    assert sky.G == pytest.approx(4.30092e-3, rel=1e-5) and sky.softening > 0
    assert sky.bodies.units == ap.Units.of("pc")
    for text in (repr(sky), sky._repr_html_()):
        assert "cpu-f32" in text and "leapfrog" in text and f"{sky.softening:g}" in text
        assert "in pc, Msun, km/s" in text and "e16" not in text
    assert "<table>" in sky._repr_html_() and "<iframe" in sky._repr_html_()
    sky.close()
    assert "closed" in sky._repr_html_()


def test_laws() -> None:
    for settings in ({"law": "unit"}, {"law": "attract-repel", "repulsion": 1e-4, "drag": 0.01}):
        simulation = cluster(dt=0.01, **settings).integrate(0.1)
        assert np.isfinite(simulation.bodies.pos).all()


def test_closed_and_broken() -> None:
    with cluster(dt=0.1) as simulation:
        simulation.step()
    for use in (lambda: simulation.t, simulation.step, lambda: simulation.integrate(1)):
        with pytest.raises(ap.ClosedError, match="closed"):
            use()
    assert "closed" in repr(simulation)
    with pytest.raises(ap.InternalError, match="a defect on purpose"):
        _native.defect()


def test_what_is_no_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(ap.FileError, match="none"):
        ap.resume(tmp_path / "none")
    for content in (b"nothing", pickle.dumps({"settings": 1})):
        (tmp_path / "bad").write_bytes(content)
        with pytest.raises(ap.FileError, match="bad is not a checkpoint"):
            ap.resume(tmp_path / "bad")
    kept = cluster(dt=0.1).__getstate__()
    kept["saved"] = kept["saved"][:-1]
    with pytest.raises(ap.FileError, match="cut off"):
        ap.Simulation.__new__(ap.Simulation).__setstate__(kept)


def test_batches_are_systems_of_their_own() -> None:
    systems = [ap.plummer(32, seed=seed) for seed in range(6)]
    batch = ap.batch(systems, softening=0.1, dt=0.05, device="cpu")
    assert len(batch) == 6 and batch.integrate(0.5).t == 0.5
    for system, now in zip(systems, batch.systems):
        alone = ap.Simulation(system, softening=0.1, dt=0.05, device="cpu").integrate(0.5)
        assert (alone.bodies.pos == now.pos).all() and (alone.bodies.vel == now.vel).all()
    total = sum(energy.total for energy in batch.energies())
    assert total == pytest.approx(batch.energy().total)
    copy = pickle.loads(pickle.dumps(batch))
    assert isinstance(copy, ap.Batch) and state(copy) == state(batch)
    with pytest.raises(ap.ArgumentError, match="as many bodies each"):
        ap.batch([ap.plummer(10), ap.plummer(11)])


def test_eight_threads_have_a_simulation_each() -> None:
    alone = state(cluster(dt=0.01).integrate(0.5))
    found: list[bytes] = []

    def work() -> None:
        found.append(state(cluster(dt=0.01).integrate(0.5)))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [alone] * 8


def test_one_simulation_in_two_threads_takes_turns() -> None:
    simulation = ap.Simulation(ap.plummer(2000, seed=1), dt=1e-3, device="cpu")
    worker = threading.Thread(target=simulation.step, args=(40,))
    worker.start()
    simulation.step(2)
    worker.join()
    assert simulation.steps == 42


def test_others_run_meanwhile() -> None:
    """The interpreter's lock is released."""
    simulation = ap.Simulation(ap.plummer(3000, seed=1), dt=1e-4, device="cpu")
    worker = threading.Thread(target=simulation.step, args=(30,))
    turns = 0
    worker.start()
    while worker.is_alive():
        time.sleep(1e-3)
        turns += 1
    assert turns > 3


def test_ctrl_c_keeps_the_state() -> None:
    # One step of these takes longer than a second.
    simulation = ap.Simulation(
        ap.plummer(40_000, seed=1), softening=0.01, dt=1e-3, device="cpu", accuracy="double"
    )
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where tests run in the background
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        simulation.integrate(1000.0)
    assert time.monotonic() - began < 0.3 + 1.0
    steps = simulation.steps  # waits for the end of the step
    assert simulation.t == pytest.approx(steps * 1e-3) and steps >= 1
    simulation.step()
    assert simulation.steps == steps + 1


def stepped(steps: int, bodies: ap.Bodies, **settings: Any) -> ap.Simulation:
    simulation = ap.Simulation(bodies, device="cpu", **settings)
    simulation.step(steps)
    return simulation


PROGRAM = [sys.executable, "-c", "import allpairs._program as p; p.main()"]


def program(*arguments: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*PROGRAM, *arguments], cwd=folder, capture_output=True, text=True, timeout=300
    )


@pytest.mark.parametrize(
    ("arguments", "simulate"),
    [
        (
            "king --bodies 300 --seed 5 --w0 4 --steps 20",
            lambda: stepped(20, ap.king(300, seed=5, w0=4)),
        ),
        (
            "plummer --bodies 200 --seed 2 --softening 0.02 --dt 0.01 --integrator yoshida4 "
            "--accuracy double --steps 15",
            lambda: stepped(
                15,
                ap.plummer(200, seed=2),
                softening=0.02,
                dt=0.01,
                integrator="yoshida4",
                accuracy="double",
            ),
        ),
        (
            "solar-system --units pc,Msun,yr --steps 10",
            lambda: stepped(10, ap.solar_system(units="pc,Msun,yr")),
        ),
        (
            "plummer --bodies 100 --seed 3 --integrator hermite4 --eta 0.02 --block-steps --dt 0.0625 "
            "--until 0.25 --mass 1000Msun --radius 1pc",
            lambda: ap.Simulation(
                ap.plummer(100, seed=3, mass="1000Msun", radius="1pc"),
                integrator=ap.Hermite4(0.0625, eta=0.02, block=True),
                device="cpu",
            ).integrate(0.25),
        ),
        (
            "plummer --bodies 300 --seed 4 --softening 0 --integrator hermite4 --eta 0.02 --block-steps "
            "--neighbours 30 --dt 0.0625 --until 0.25",
            lambda: ap.Simulation(
                ap.plummer(300, seed=4),
                softening=0,
                integrator=ap.Hermite4(0.0625, eta=0.02, block=True, neighbours=30),
                device="cpu",
            ).integrate(0.25),
        ),
        (
            "two-body --eccentricity 0.5 --steps 30 --kernel reference",
            lambda: stepped(30, ap.two_body(eccentricity=0.5), kernel="reference"),
        ),
    ],
    ids=lambda value: value.split()[0] if isinstance(value, str) else "",
)
def test_bits_are_the_programs(arguments: str, simulate: Any, tmp_path: Path) -> None:
    options = ["--device", "cpu", "--no-cache", "--out", "run"]
    ran = program("run", *arguments.split(), *options, folder=tmp_path)
    assert ran.returncode == 0, ran.stderr
    expected = ap.load(tmp_path / "run" / "final.allpairs")
    found = simulate().bodies
    for array in ("pos", "vel", "m", "id", "kind"):
        assert (getattr(found, array) == getattr(expected, array)).all(), array
    assert found.time == expected.time


@pytest.mark.parametrize(
    "options",
    [
        "--integrator leapfrog --dt 0.01",
        "--integrator hermite4 --eta 0.02 --block-steps --accuracy double --dt 0.0625",
        "--integrator hermite4 --eta 0.02 --block-steps --neighbours 20 --dt 0.03125",
        "--mass 1000Msun --radius 1pc --integrator yoshida4 --softening 0.1",
        "--field point:mass=1,x=9 --field logarithmic:speed=1,core=2",
        "--radius-of-bodies 0.005 --on-collision merge --escape-radius 90 --dt 0.01",
    ],
)
def test_runs_of_the_program_are_resumed(options: str, tmp_path: Path) -> None:
    run = "run plummer --bodies 80 --seed 3 --device cpu --no-cache --checkpoint-every 5 --out run"
    ran = program(*run.split(), *options.split(), "--until", "0.25", folder=tmp_path)
    assert ran.returncode == 0, ran.stderr
    before = {path: path.read_bytes() for path in (tmp_path / "run").iterdir() if path.is_file()}
    simulation = ap.resume(tmp_path / "run")
    assert 0 < simulation.t <= 0.25
    copy = pickle.loads(pickle.dumps(simulation))
    for each in (simulation, copy):
        each.integrate(0.25)
        final = ap.load(tmp_path / "run" / "final.allpairs")
        assert (each.bodies.pos == final.pos).all() and (each.bodies.vel == final.vel).all()
        assert each.bodies.units == (final.units and ap.Units.of(final.units.text))
    after = {path: path.read_bytes() for path in (tmp_path / "run").iterdir() if path.is_file()}
    assert after == before, "nothing is changed there"
    config = tmp_path / "run" / "run.toml"
    config.write_text(config.read_text().replace("softening = ", "softening = 1"))
    with pytest.raises(ap.FileError, match="but the run was made with softening"):
        ap.resume(tmp_path / "run")
    (tmp_path / "none").mkdir()
    with pytest.raises(ap.FileError, match="not the folder of a run"):
        ap.resume(tmp_path / "none")


def test_events_of_the_program_are_resumed(tmp_path: Path) -> None:
    run = "run cold-collapse --bodies 60 --seed 3 --virial-ratio 1.2 --device cpu --no-cache --checkpoint-every 50 --softening 0 --dt 0.001 --out run"
    meets = "--radius-of-bodies 0.02 --on-collision merge --escape-radius 1.2 --on-escape remove --steps 1000 --integrator leapfrog"
    ran = program(*run.split(), *meets.split(), folder=tmp_path)
    assert ran.returncode == 0, ran.stderr
    start = ap.cold_collapse(60, seed=3, virial_ratio=1.2)
    settings: dict[str, Any] = {"softening": 0, "dt": 0.001, "integrator": "leapfrog", "device": "cpu"}
    same = ap.Simulation(start, radii=0.02, on_collision="merge", escape_radius=1.2, on_escape="remove", **settings)
    same.step(1000)
    assert {"collision", "escape"} == set(same.events["kind"])
    collisions = tmp_path / "run" / "collisions.csv"
    whole = collisions.read_text()
    beyond = whole.splitlines()[-1].split(",", 1)[1]
    for more in ("", f"1001,{beyond}\n", "9,0.0"):  # a row after the checkpoint, and one that was being written
        collisions.write_text(whole + more)
        resumed = ap.resume(tmp_path / "run")
        assert resumed.steps == 1000 and np.array_equal(np.sort(resumed.events), np.sort(same.events))
    for each in (resumed, same):
        each.step(100)
    assert np.array_equal(np.sort(resumed.events), np.sort(same.events))


def meeting(**settings: Any) -> ap.Simulation:
    """Two bodies that meet at time 1.9, a heavy one far from them, and one that leaves."""
    bodies = ap.Bodies(
        m=[1e-6, 2e-6, 1e-3, 0],
        pos=[[-2, 0, 0], [2, 0, 0], [0, 0, 40], [0, 0, 3]],
        vel=[[1, 0, 0], [-1, 0, 0], [0, 0, 0], [0, 2, 0]],
    )
    return ap.Simulation(bodies, softening=0.01, dt=0.04, device="cpu", **settings)


@pytest.mark.parametrize("action, left", [("log", 4), ("merge", 3), ("bounce", 4), ("stop", 4)])
def test_collisions(action: str, left: int) -> None:
    simulation = meeting(radii=[0.1, 0.1, 0.5, 0], on_collision=action)
    start = simulation.energy()
    copy = pickle.loads(pickle.dumps(simulation))
    for each in (simulation, copy):
        each.integrate(2.4)
        assert len(each.bodies) == left
        (event,) = each.events
        assert event["kind"] == "collision" and event["outcome"] == action
        assert sorted(event["id"]) == [0, 1] and event["time"] == pytest.approx(1.9, abs=1e-3)
        assert event["pos"] == pytest.approx([0, 0, 0], abs=1e-3)
    again = pickle.loads(pickle.dumps(simulation))
    assert len(again.events) == 1
    if action == "stop":
        assert simulation.t == pytest.approx(1.92) and "collided" in str(simulation.stopped_by)
        simulation.integrate(2.4)
    assert simulation.t == pytest.approx(2.4) and simulation.stopped_by is None
    again.integrate(2.4)
    assert state(again) == state(simulation)
    radii = simulation.radii
    assert radii is not None and len(radii) == left
    if action == "merge":
        assert pytest.approx(0.1 * 2 ** (1 / 3)) in radii.tolist()  # the volume of both
        # What the merger took is counted; forces are in f32. The error is relative to the potential energy of fast bodies.
        assert simulation.energy_error * -start.potential < 1e-5 * start.kinetic


def test_escapes_and_bad_encounters() -> None:
    simulation = meeting(escape_radius=41, on_escape="remove")
    simulation.integrate(9.5)
    (event,) = simulation.events
    assert event["kind"] == "escape" and event["id"][0] == 3 and len(simulation.bodies) == 3
    with pytest.raises(ap.ArgumentError, match="4 bodies"):
        meeting(radii=[0.1, 0.1])
    with pytest.raises(ap.ArgumentError, match="`on_collision` is for bodies with `radii`"):
        meeting(on_collision="merge")
    with pytest.raises(ap.ArgumentError, match="merge"):
        meeting(radii=0.1, on_collision="merged")
    with pytest.raises(ap.ArgumentError, match="must be ≥ 0"):
        meeting(radii=-0.1)
    with pytest.raises(ap.ArgumentError, match="beyond the radius of escape"):
        meeting(escape_radius=3)


def test_times_and_lengths_have_units() -> None:
    bodies = ap.plummer(20, seed=1, mass="20 Msun", radius="1 pc")
    given = ap.Simulation(bodies, softening="0.1pc", dt="0.25 Myr", device="cpu").integrate("1Myr")
    unit = ap.Simulation(bodies, softening=0.1, dt=given.dt, device="cpu")
    unit.integrate(given.t, every="0.5 Myr")
    assert state(given) == state(unit) and given.steps == 4 and len(unit.log) == 3
    with pytest.raises(ap.ArgumentError, match="`softening`: `1yr` is not a length") as raised:
        ap.Simulation(bodies, softening="1yr")
    assert raised.value.argument == "softening"
    with pytest.raises(ap.ArgumentError, match="the units of the bodies are unknown"):
        ap.Simulation(ap.plummer(20), dt="1yr")


def test_times_are_shown_in_the_unit_that_was_asked_for() -> None:
    def simulate() -> ap.Simulation:
        bodies = ap.plummer(20, seed=1, mass="20 Msun", radius="1 pc")
        return ap.Simulation(bodies, softening="0.1pc", dt="0.25 Myr", device="cpu")

    for t in ("500 yr", u.Quantity(500, "yr")):
        assert "t = 500 yr," in repr(simulate().integrate(t))
    with pytest.warns(UserWarning, match="at time 0.5 Myr the energy has drifted"):
        simulate().integrate("1 Myr", every="0.5 Myr", max_drift=1e-12)
    assert "t = 0.9777" in repr(simulate().integrate(1.0)) and "Myr" in repr(simulate().integrate(1.0))
    assert "t = 0.1," in repr(cluster(dt=0.1).integrate(0.1))


class Spring:
    """Pulls to the origin: a = −k x, which any orbit closes in."""

    def __init__(self, k: float) -> None:
        self.k = k

    def acceleration(self, time: float, position: Any) -> Any:
        return -self.k * position

    def jerk(self, time: float, position: Any, velocity: Any) -> Any:
        return -self.k * velocity

    def potential(self, time: float, position: Any) -> Any:
        return 0.5 * self.k * position @ position


def pull(time: float, position: Any) -> Any:
    """A point of mass 1 at the origin."""
    return -position / (position @ position) ** 1.5


def single(x: float, vy: float) -> ap.Bodies:
    return ap.Bodies([1.0], [[x, 0.0, 0.0]], [[0.0, vy, 0.0]])


def test_fields_accelerate() -> None:
    # A circular orbit of period 2π about a point, in words and by a function; then an oscillator.
    for field in ("point:mass=1", ["point:mass=0.5", "point:mass=0.5"], pull):
        simulation = ap.Simulation(single(1.0, 1.0), field=field, integrator="yoshida6", dt=0.05, device="cpu")
        simulation.integrate(2 * np.pi)
        assert np.abs(simulation.bodies.pos - [[1.0, 0.0, 0.0]]).max() < 1e-6, field
    for integrator in (ap.Leapfrog(0.001), ap.Hermite4(0.01)):
        simulation = ap.Simulation(single(0.5, 0.0), field=Spring(4.0), integrator=integrator, device="cpu")
        energy = simulation.energy()
        assert (energy.kinetic, energy.external, energy.total) == (0.0, 0.5, 0.5)
        assert "external=0.5" in repr(energy)
        copy = pickle.loads(pickle.dumps(simulation))
        for each in (simulation, copy):
            each.integrate(np.pi)
            assert np.abs(each.bodies.pos - [[0.5, 0.0, 0.0]]).max() < 1e-5
            assert each.energy_error < 1e-5


def test_an_orbit_is_that_of_the_origin() -> None:
    # The origin is on a circle of period 2π, and a body at rest in it stays there.
    given: Any
    for given in ("x=1,vy=1", ([1.0, 0.0, 0.0], [0.0, 1.0, 0.0])):
        simulation = ap.Simulation(
            single(0.0, 0.0), field="point:mass=1", orbit=given, integrator="hermite4", dt=0.05, device="cpu"
        )
        copy = pickle.loads(pickle.dumps(simulation))
        for each in (simulation, copy):
            each.integrate(np.pi)
            assert each.origin is not None
            position, velocity = each.origin
            assert np.abs(position - [-1.0, 0.0, 0.0]).max() < 1e-13
            assert np.abs(velocity - [0.0, -1.0, 0.0]).max() < 1e-13
            assert np.abs(each.bodies.pos).max() == 0.0
    assert ap.Simulation(single(1.0, 1.0), field="point:mass=1", dt=0.1, device="cpu").origin is None
    for given, text in (("x=1,r=2", "`r`"), ("x=8kpc", "units"), ([1.0, 2.0], "position"), ("x=0", "centre")):
        with pytest.raises(ap.ArgumentError, match=text):
            ap.Simulation(single(0.0, 0.0), field="point:mass=1", orbit=given, dt=0.1, device="cpu")
    with pytest.raises(ap.ArgumentError, match="`field`"):
        ap.Simulation(single(0.0, 0.0), orbit="x=1", dt=0.1, device="cpu")


def test_fields_that_cannot_be_are_refused() -> None:
    def wrong_shape(time: float, position: Any) -> Any:
        return [1.0, 2.0]

    def fails(time: float, position: Any) -> Any:
        raise LookupError("no table")

    def late(time: float, position: Any) -> Any:
        if time > 0.05:
            raise LookupError("the table ends")
        return -position

    def simulate(field: Any, **settings: Any) -> ap.Simulation:
        return ap.Simulation(single(1.0, 1.0), field=field, device="cpu", dt=0.01, **settings)

    for field, text in (
        ("pint:mass=1", "point"),
        ("point:mass=-1x", "mass"),
        ("mwpotential2014", "units"),
        (3.0, "float"),
        (wrong_shape, r"\(2,\)"),
    ):
        with pytest.raises(ap.ArgumentError, match=text) as error:
            simulate(field)
        assert "field" in str(error.value)
    with pytest.raises(LookupError, match="no table"):
        simulate(fails)
    simulation = simulate(late)
    with pytest.raises(LookupError, match="the table ends"):
        simulation.integrate(1.0)
    with pytest.raises(ap.ArgumentError, match="jerk"):
        simulate(pull, integrator="hermite4")
    with pytest.raises(ap.ArgumentError, match="by the CPU alone"):
        ap.Simulation(single(1.0, 1.0), field=pull, device="emulator", dt=0.01)


FIELDS_STEPS = [
    ap.Leapfrog(0.01),
    ap.LeapfrogDKD(0.01),
    ap.Yoshida4(0.02),
    ap.Euler(0.01),
    ap.Hermite4(0.01),
    ap.Hermite4(eta=0.02),
    ap.Hermite4(0.125, eta=0.02, block=True),
]


@pytest.mark.parametrize("integrator", FIELDS_STEPS)
@pytest.mark.parametrize("every", [None, 0.25])
@pytest.mark.parametrize("what", ["nan", "infinite", "divides", "raises", "complex", "other shape"])
def test_a_field_that_fails_leaves_the_last_good_state(integrator: ap.Integrator, every: Any, what: str) -> None:
    class Fails(Spring):
        broken = True

        def acceleration(self, time: float, position: Any) -> Any:
            if time < 0.5 or not self.broken:
                return super().acceleration(time, position)
            if what == "raises":
                raise LookupError("the table ends")
            if what == "divides":
                return [1.0 / (1.0 - len(position) / 3), 0.0, 0.0]
            return {"nan": position * np.nan, "infinite": position * np.inf, "complex": 1j * position, "other shape": position[:2]}[what]

    errors: dict[str, tuple[type[Exception], str]] = {
        "raises": (LookupError, "the table ends"),
        "other shape": (ap.ArgumentError, r"`field` returns the acceleration in the shape \(2,\)"),
        "nan": (ap.ComputeError, "`field`: the acceleration is .NaN"),
        "infinite": (ap.ComputeError, "`field`: the acceleration is .*inf"),
        "divides": (ap.ArgumentError, "`field` raises ZeroDivisionError for the acceleration at time 0.5.*: .*division by zero"),
        "complex": (ap.ArgumentError, "`field` returns the acceleration as complex128"),
    }
    kind, text = errors[what]

    def simulate(field: Any) -> ap.Simulation:
        return ap.Simulation(ap.plummer(20, seed=1), softening=0.1, field=field, integrator=integrator, device="cpu")

    field = Fails(1.0)
    simulation, whole = simulate(field), simulate(Spring(1.0))
    with pytest.raises(kind, match=text):
        simulation.integrate(1.0, every=every)
    longest = 0.125 if integrator.block else 0.1
    assert 0.5 - 2 * longest < simulation.t <= 0.5 + longest and np.isfinite(simulation.bodies.pos).all()
    reached = simulation.t
    uses: list[Callable[[], object]] = [
        simulation.step, lambda: simulation.step(3), lambda: simulation.integrate(2.0)
    ]
    for use in uses:
        with pytest.raises(kind, match=text):
            use()
        assert simulation.t == reached
    # The state is the one before the step: it goes on as if nothing had been.
    whole.step(simulation.steps)
    assert state(simulation) == state(whole) and whole.t == reached
    field.broken = False
    for each in (simulation, whole):
        each.step(3)
    assert state(simulation) == state(whole)


def test_a_field_that_fails_at_the_start_is_refused() -> None:
    for result in (np.nan, np.inf):
        with pytest.raises(ap.ArgumentError, match="`field`: the acceleration is"):
            ap.Simulation(single(1.0, 1.0), field=lambda t, x: x * result, dt=0.1, device="cpu")


def test_numbers_that_overflow_leave_the_last_good_state() -> None:
    """Also without a field: two bodies that come too close."""
    pos, vel = np.diag([0.0, 1, 0])[:2], np.zeros((2, 3))
    vel[1, 0] = 1e305
    bodies = ap.Bodies([1e200, 1.0], pos, vel)
    simulation = ap.Simulation(bodies, softening=0, dt=1e4, integrator="leapfrog", device="cpu", kernel="cpu-f64")
    uses: list[Callable[[], object]] = [
        lambda: simulation.integrate(1e5), lambda: simulation.integrate(1e5, every=1e4)
    ]
    for use in uses:
        with pytest.raises(ap.ComputeError, match="not a finite number"):
            use()
        assert np.isfinite(simulation.bodies.pos).all() and np.isfinite(simulation.bodies.vel).all()


def test_a_body_in_a_singular_centre_is_refused() -> None:
    bodies = ap.Bodies([1.0, 1.0], [[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]])
    for field, body in [
        ("point:mass=1", 1),
        ("point:mass=0", 1),
        ("logarithmic:speed=1,core=0", 1),
        ("hernquist:mass=1,scale=1,x=1,y=2,z=3", 0),
        ("plummer:mass=1,scale=1 nfw:mass=1,scale=2".split()[1], 1),
    ]:
        name = field.split(":")[0]
        with pytest.raises(ap.ArgumentError, match=f"body {body} is exactly in the centre of the field {name}") as error:
            ap.Simulation(bodies, field=["plummer:mass=1,scale=1", field], dt=0.1, softening=0.1, device="cpu")
        assert error.value.argument == "field"
    with pytest.raises(ap.ArgumentError, match="body 0 is exactly in the centre"):
        ap.Simulation(
            single(-3.0, 0.0), field="point:mass=1", orbit="x=3,vy=1", dt=0.1, softening=0.1, device="cpu"
        )
    ap.Simulation(bodies, field="logarithmic:speed=1,core=1", dt=0.1, softening=0.1, device="cpu")


def test_a_field_without_a_potential_is_not_watched() -> None:
    def simulate(field: Any) -> ap.Simulation:
        simulation = ap.Simulation(single(1.0, 0.5), field=field, dt=0.001, device="cpu")
        simulation.integrate(0.5, every=0.1)
        return simulation.integrate(1.0, every=0.1)

    with pytest.warns(UserWarning, match="not watched: a `field` of your own has no `potential`") as warned:
        simulation = simulate(pull)
    assert len(warned) == 1
    assert np.isnan(simulation.energy_error) and np.isnan(simulation.largest_energy_error)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert simulate(Spring(1.0)).largest_energy_error < 1e-5
    with pytest.warns(UserWarning, match="the energy has drifted"):
        ap.Simulation(single(1.0, 0.5), field=Spring(1.0), dt=2.1, device="cpu").integrate(42.0)

    class Wrong(Spring):
        def potential(self, time: float, position: Any) -> Any:
            return np.nan if time > 0.05 else 0.5

    with pytest.warns(UserWarning, match="the energy has drifted by nan") as warned:
        simulate(Wrong(1.0))
    (told,) = [str(one.message) for one in warned if "`field`" in str(one.message)]
    assert re.match(r"`field` returns the potential nan at time 0\.\d+ and position \[0\.99.*: it must be finite", told)

    class Divides(Spring):
        def potential(self, time: float, position: Any) -> Any:
            return 1 / (0 * round(10 * time))

    with pytest.raises(ap.ArgumentError, match="raises ZeroDivisionError for the potential") as error:
        simulate(Divides(1.0))
    assert isinstance(error.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize("integrator", FIELDS_STEPS)
def test_what_lies_ahead_is_finite(integrator: ap.Integrator) -> None:
    class Ends(Spring):
        def acceleration(self, time: float, position: Any) -> Any:
            return super().acceleration(time, position) * (1 if time < 0.5 else np.nan)

    simulation = ap.Simulation(ap.plummer(20, seed=1), softening=0.1, field=Ends(1.0), integrator=integrator, device="cpu")
    before = state(simulation)
    assert np.isfinite(simulation.at(0.3).pos).all()
    with pytest.raises(ap.ComputeError, match=r"body 0: v?x = NaN is not a finite number, at time 0.9"):
        simulation.at(0.9)
    assert simulation.t == 0 and state(simulation) == before


def test_a_field_is_asked_at_the_origin_where_no_body_is() -> None:
    class Divides:
        def acceleration(self, time: float, position: Any) -> Any:
            return [-float(x) / math.hypot(*position) ** 3 for x in position]

        def potential(self, time: float, position: Any) -> Any:
            return -1 / math.hypot(*position)

    simulation = ap.Simulation(single(1.0, 1.0), field=Divides(), dt=0.01, integrator="yoshida6", device="cpu")
    assert simulation.integrate(1.0, every=0.5).largest_energy_error < 1e-9


def test_a_field_may_not_use_its_own_simulation() -> None:
    holder: list[ap.Simulation] = []

    def uses(time: float, position: Any) -> Any:
        if holder:
            use(holder[0])
        return -position

    uses_of: list[Callable[[ap.Simulation], object]] = [
        lambda s: s.t, lambda s: s.bodies, lambda s: s.energy(), lambda s: s.step(), lambda s: s.close()
    ]
    for use in uses_of:
        holder.clear()
        simulation = ap.Simulation(single(1.0, 0.0), field=uses, dt=0.1, device="cpu")
        holder.append(simulation)
        with pytest.raises(ap.ArgumentError, match="`field` uses its own simulation"):
            simulation.integrate(1.0)
        assert simulation.t == 0.0


@pytest.mark.parametrize(
    "integrator",
    [
        ap.Hermite6(0.0625, eta=0.36, block=True),
        ap.Hermite4(0.0625, eta=0.02, block=True, neighbours=6),
    ],
)
def test_pairs_that_form_later_are_followed(integrator: ap.Integrator) -> None:
    """Also where a neighbour scheme ends then, and a copy goes on with the same bits."""
    simulation = ap.Simulation(ap.plummer(16, seed=3), softening=0.0, integrator=integrator, device="emulator")
    assert simulation.chosen["groups"].startswith("later: no pairs yet")
    simulation.step()
    assert simulation.followed_from is None
    mass, apart = 0.05, 0.004
    speed = (mass / (2 * apart)) ** 0.5
    sides = np.array([[-0.5], [0.5]])
    simulation.add(
        ap.Bodies(
            [mass, mass],
            [0.5, 0.3, 0.0] + sides * [apart, 0.0, 0.0],
            2 * sides * [0.0, speed, 0.0],
        )
    )
    simulation.step()
    assert simulation.followed_from == 0.0625
    copy = pickle.loads(pickle.dumps(simulation))
    simulation.step()
    copy.step()
    assert state(copy) == state(simulation)
    assert copy.followed_from == simulation.followed_from


def test_shapes_of_kernels() -> None:
    def on_emulator(**settings: Any) -> ap.Simulation:
        simulation = ap.Simulation(ap.plummer(300, seed=1), softening=0.05, dt=0.01, device="emulator", **settings)
        simulation.step()
        return simulation

    own = on_emulator(kernel="symmetric-deterministic")
    shaped = on_emulator(kernel="symmetric-deterministic", shape={"block": 64})
    assert state(own) != state(shaped), "sums are taken in another order"
    assert state(on_emulator(kernel="symmetric-deterministic", shape={"block": 64})) == state(shaped)
    copy = pickle.loads(pickle.dumps(shaped))
    shaped.step()
    copy.step()
    assert state(copy) == state(shaped)
    for wrong in ({"blocks": 64}, {"block": 0}, {"len": 4}):
        with pytest.raises(ap.ArgumentError, match="`shape`"):
            on_emulator(kernel="symmetric-deterministic", shape=wrong)
    with pytest.raises(ap.ArgumentError, match="`shape`"):
        cluster(dt=0.1, shape={"block": 64})


def test_what_tune_found_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALLPAIRS_CACHE_DIR", str(tmp_path))
    told = program(*"tune --device cpu --bodies 64 --accuracy single".split(), folder=tmp_path)
    assert told.returncode == 0, told.stderr
    kept = tmp_path / "tuned.json"
    kept.write_text(re.sub('"kernel": "[^"]*"', '"kernel": "cpu-one-sided-f32"', kept.read_text()))
    settings = {"accuracy": "single", "dt": 0.01}
    assert cluster(**settings).kernel == "cpu-one-sided-f32"
    assert cluster(**settings, tuned=False).kernel == "cpu-f32"
    assert cluster(**settings, kernel="cpu-f64").kernel == "cpu-f64"
    kept.write_text("nothing")
    with pytest.warns(UserWarning, match="ignoring the tuned kernels"):
        assert cluster(**settings).kernel == "cpu-f32"


def test_drift_of_the_energy_is_warned_of_once() -> None:
    def coarse() -> ap.Simulation:
        return ap.Simulation(ap.plummer(60, seed=1), softening=0.001, dt=0.1, device="cpu", integrator="euler")

    with pytest.warns(UserWarning, match="more than `max_drift` 0.01: a smaller `dt`") as warned:
        simulation = coarse().integrate(2.0, every=0.2)
    assert len(warned) == 1
    assert simulation.largest_energy_error == simulation.log["energy_drift"].max() > 0.01
    coarse().integrate(1.0, every=0.2, max_drift=1e9)
    assert np.isnan(coarse().largest_energy_error)
    with pytest.raises(ap.ArgumentError, match="`max_drift`"):
        coarse().integrate(1.0, max_drift=-1)


def test_drift_is_warned_of_without_rows_of_the_log() -> None:
    def coarse() -> ap.Simulation:
        return ap.Simulation(ap.plummer(60, seed=1), softening=0.001, dt=0.1, device="cpu", integrator="euler")

    for takes_steps in (False, True):
        simulation = coarse()
        with pytest.warns(UserWarning, match="more than `max_drift` 0.01: a smaller `dt`") as warned:
            for k in (1, 2):
                if takes_steps:
                    simulation.step(100)
                else:
                    simulation.integrate(2.0 * k)
        assert len(warned) == 1 and warned[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        coarse().integrate(2.0, max_drift=1e9)
        ap.Simulation(ap.plummer(60, seed=1), softening=0.1, dt=0.01, device="cpu").integrate(1.0)
    # The watch changes no bits.
    quiet = coarse().integrate(2.0, max_drift=1e9)
    with pytest.warns(UserWarning, match="max_drift"):
        watched = coarse().integrate(2.0, every=0.1)
    assert (quiet.bodies.pos == watched.bodies.pos).all()


def test_test_particles_are_watched() -> None:
    def fall(dt: float) -> ap.Simulation:
        bodies = ap.two_body(mass_ratio=0, eccentricity=0.99)
        return ap.Simulation(bodies, softening=0, dt=dt, integrator="leapfrog", device="cpu")

    for every in (None, 1.0):
        with pytest.warns(UserWarning, match="the energy per mass of a test particle has changed by") as warned:
            fall(0.01).integrate(7.0, every=every).integrate(8.0)
        assert len(warned) == 1 and warned[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fall(1e-5).integrate(7.0)
        # A change from outside is no error of the steps.
        changed = fall(0.01)
        changed.kick([0, 1, 0], ids=[1])
        changed.integrate(0.1)
    # The account goes on in a copy.
    copy = pickle.loads(pickle.dumps(fall(0.01)))
    with pytest.warns(UserWarning, match="of a test particle"):
        copy.integrate(7.0)


def test_bodies_too_fast_for_the_first_order_are_told_of() -> None:
    def about(v: float) -> ap.Simulation:
        bodies = ap.Bodies([1.0, 0.0], np.diag([0.0, 1 / v**2, 0.0])[:2][:, [1, 0, 2]], np.diag([0.0, v, 0.0])[:2])
        return ap.Simulation(bodies, softening=0, field="1pn:c=1", integrator="hermite4", dt=0.01)

    with pytest.warns(UserWarning, match=r"body 1 reaches \(v/c\)²"):
        about(0.43)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        about(0.1)


def test_exceptions_of_fields_keep_their_type_and_tell_the_field() -> None:
    class Own:
        def __init__(self, error: type[Exception]) -> None:
            self.error = error

        def acceleration(self, time: float, position: np.ndarray) -> np.ndarray:
            if time > 0.5:
                raise self.error("told by the field")
            return -position

    for error in (KeyError, ZeroDivisionError):
        bodies = ap.Bodies(0.1, np.eye(3) if error is KeyError else np.zeros((1, 3)))
        simulation = ap.Simulation(bodies, field=Own(error), softening=0.1, dt=0.1, device="cpu")
        with pytest.raises((error, ap.AllpairsError)) as raised:
            simulation.integrate(1.0)
        assert isinstance(raised.value, error) or isinstance(raised.value.__cause__, error)
        told = " ".join([str(raised.value), *getattr(raised.value, "__notes__", [])])
        assert "field" in told and "told by the field" in f"{raised.value} {raised.value.__cause__}"


def test_the_program_is_there(tmp_path: Path) -> None:
    told = program("--version", folder=tmp_path)
    assert told.returncode == 0 and ap.__version__ in told.stdout
    refused = program("run", "plumer", folder=tmp_path)
    assert refused.returncode == 65 and "did you mean `plummer`" in refused.stderr


def test_settings_are_those_of_the_compiled_part() -> None:
    """A simulation hands back all settings, of which a type checker knows the types."""
    simulation = ap.Simulation(ap.plummer(16, seed=1), device="cpu")
    assert set(simulation._settings) == set(Settings.__annotations__)


def test_what_was_chosen_is_said() -> None:
    simulation = ap.Simulation(ap.plummer(300, seed=1), device="cpu")
    assert simulation.chosen["softening"].endswith("half the mean distance of bodies, taken to stand for many")
    assert {"softening", "dt", "integrator", "kernel"} <= set(simulation.chosen)
    for text, softening in ((repr(simulation), "softening 0.0"), (simulation._repr_html_(), "<th>softening</th><td>0.0")):
        assert "leapfrog (chosen), step" in text and softening in text and text.count("(chosen)") >= 3
    blocks = ap.Simulation(ap.plummer(300, seed=1), block=True, device="cpu")
    assert blocks.softening == 0.0
    assert blocks.chosen["softening"].endswith("block time steps follow pairs and encounters")
    given = ap.Simulation(ap.plummer(300, seed=1), softening=0.05, dt=0.01, device="cpu")
    assert not {"softening", "dt"} & set(given.chosen) and "step 0.01, softening 0.05," in repr(given)
    in_pc = ap.Simulation(ap.plummer(10, mass="1e3 Msun", radius="1 pc"), softening="0.05 pc", dt="1000 yr", device="cpu")
    assert "softening 0.05 pc, in pc, Msun, km/s" in repr(in_pc) and "<td>0.05 pc</td>" in in_pc._repr_html_()
    few = ap.Simulation(ap.Bodies(np.ones(3), np.eye(3)), device="cpu")
    assert few.integrator.name == "hermite4" and few.integrator.eta == 0.01
    assert "eta 0.01 (chosen)" in repr(few)


def test_units_that_cannot_be_and_close_bodies_are_told_of() -> None:
    cluster = ap.plummer(20, mass="1e3 Msun", radius="1 pc")
    with pytest.warns(UserWarning, match="`G` is 6.67e-11, and in units of pc, Msun.* it is 0.0043"):
        ap.Simulation(cluster, G=6.67e-11, softening=0.1, dt=1e-3, device="cpu")
    pos = np.random.default_rng(1).normal(size=(20, 3))
    fast = ap.Bodies(np.ones(20), pos, 1e3 * pos)
    with pytest.warns(UserWarning, match="fly apart.*no units"):
        ap.Simulation(fast, softening=0.1, dt=1e-5, device="cpu").integrate(1e-4, every=1e-4)
    pos, vel = np.zeros((2, 2, 3))
    pos[1, 0], vel[1, 1] = 1.5e11, 3e4
    sun_and_earth = ap.Bodies([2e30, 6e24], pos, vel)
    with pytest.warns(UserWarning, match="fall onto each other.*no units"):
        ap.Simulation(sun_and_earth, softening=0.0, dt=1e-5, device="cpu").integrate(1e-5, every=1e-5)
    with pytest.warns(UserWarning, match="in single precision are off"):
        ap.Simulation(ap.plummer(8000, seed=1), softening=1e-5, dt=1e-3, accuracy="single", device="cpu")


@pytest.mark.parametrize("settings", [{"dt": 1e-3}, {"integrator": ap.Hermite4(eta=0.02, block=True)}])
def test_a_long_run_says_how_long_it_takes(settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_simulation, "HINT_AFTER", 0.1)
    monkeypatch.setattr(_simulation, "LONG", 0.3)
    simulation = ap.Simulation(ap.plummer(500, seed=1), softening=0.01, **settings)
    with pytest.warns(UserWarning, match=r"integrate needs about \d+ .*: in 0 s it went from 0 to .*, of 1e\+06") as warned:
        simulation.integrate(1e6, max_seconds=0.5)
    assert len(warned) == 1
    assert Path(warned[0].filename).name == "test_simulation.py"
    monkeypatch.setattr(_simulation, "LONG", 60.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        simulation.integrate(1e6, max_seconds=0.3)


def test_fields_that_wait_for_each_other_are_refused() -> None:
    second: ap.Simulation | None = None

    def of_first(t: float, x: Any) -> Any:
        if second is not None:
            second.integrate(second.t + 0.1)
        return -x

    def of_second(t: float, x: Any) -> Any:
        return -x * (1.0 + 0.0 * first.t)

    first = ap.Simulation(ap.plummer(20, seed=1), softening=0.1, dt=0.1, field=of_first, device="cpu")
    second = ap.Simulation(ap.plummer(20, seed=1), softening=0.1, dt=0.1, field=of_second, device="cpu")
    with pytest.raises(ap.ArgumentError, match="`field` uses its own simulation"):
        first.integrate(0.2)
    second.integrate(0.2)
    assert second.t == 0.2
def told(make: Callable[[], object]) -> list[str]:
    """Warnings of a call."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make()
    return [str(one.message) for one in caught]


def test_a_softening_beyond_the_radii_is_told() -> None:
    stars = ap.plummer(100, seed=1)
    radii = np.linspace(1e-5, 1e-4, 100)
    loud: list[dict[str, Any]] = [{"softening": 0.05}, {"softening": 0.05, "on_collision": "merge", "dt": 0.01}]
    for settings in loud:
        (text,) = told(lambda: ap.Simulation(stars, radii=radii, device="cpu", **settings))
        assert text.startswith("the softening, 5.000e-2, is more than the sum of the two largest radii, 1.99"), text
    # Bodies that may collide are not softened unless that is asked for.
    assert not told(lambda: ap.Simulation(stars, radii=radii, device="cpu"))
    assert ap.Simulation(stars, radii=radii, device="cpu").softening == 0
    sized = ap.plummer(100, seed=1, mass="100 Msun", radius="1 pc")
    (text,) = told(lambda: ap.Simulation(sized, softening="0.05 pc", radii="100 au", device="cpu"))
    assert text.startswith("the softening, 5.000e-2 pc, is more than the sum of the two largest radii, 9.696e-4 pc:"), text
    quiet: list[dict[str, Any]] = [{"softening": 0}, {"softening": 1.9e-4}, {"softening": 0.05, "radii": None}]
    for settings in quiet:
        assert not told(lambda: ap.Simulation(stars, dt=0.01, device="cpu", **{"radii": radii, **settings}))
    (text,) = told(lambda: ap.Simulation(stars, softening=0.05, dt=0.01, radii=0, on_collision="merge", device="cpu"))
    assert text.startswith("`radii` are all 0, so that no bodies meet, and `on_collision='merge'` has no effect")
    assert not told(lambda: ap.Simulation(stars, softening=0.05, dt=0.01, radii=0, device="cpu"))


def test_bodies_in_one_place_are_told() -> None:
    def simulate(bodies: ap.Bodies, softening: float = 0.0) -> list[str]:
        return told(lambda: ap.Simulation(bodies, softening=softening, dt=0.1, device="cpu"))

    doubled = ap.plummer(30, seed=1)
    doubled.pos[17] = doubled.pos[4]
    doubled.id += np.uint64(100)
    (text,) = simulate(doubled)
    assert text.startswith("the bodies with the ids 104 and 117 are in one place: without softening"), text
    ids, text = simulate(doubled[np.repeat(np.arange(30), 2)])
    assert ids.startswith("several bodies have the id 100"), ids
    assert "are in one place, and so are 30 others: " in text, text
    assert not simulate(doubled, softening=0.1) and not simulate(ap.plummer(30, seed=1))
    # Of two bodies without mass neither attracts the other; of one with mass it does.
    places = np.array([[0.0, 0, 0], [1, 0, 0], [1, 0, 0]])
    assert not simulate(ap.Bodies([1, 0, 0], places))
    (text,) = simulate(ap.Bodies([1, 0, 1e-9], places))
    assert "ids 2 and 1 are" in text
    # The square of a distance may be 0 where the distance is not.
    for mass, distance, others in ((1e300, 1e-300, []), (1.0, 1e-200, [[1.0, 1, 1]])):
        near = [[0.0, 0, 0], [distance, 0, 0], *others]
        (text,) = simulate(ap.Bodies(mass, near))
        assert "ids 0 and 1 are so near each other that the square of their distance is 0" in text, text
    assert not simulate(ap.Bodies([1.0, 1.0], [[0.0, 0, 0], [1e-90, 0, 0]]))
    # Systems do not attract each other.
    one = ap.plummer(30, seed=1)
    assert not told(lambda: ap.batch([one, one], softening=0, dt=0.1, device="cpu"))
    (text,) = told(lambda: ap.batch([one, doubled], softening=0, dt=0.1, device="cpu"))
    assert "ids 104 and 117 are" in text


@pytest.mark.parametrize("switch", ["no", "off", "", 2, 1.0, [], np.array([True])])
def test_switches_are_true_or_false(switch: Any, tmp_path: Path) -> None:
    bodies = ap.plummer(10, seed=1)
    file = tmp_path / "a.npz"
    bodies.save(file)
    before = file.read_bytes()

    def simulate(**settings: Any) -> ap.Simulation:
        return ap.Simulation(bodies, **{"device": "cpu", "softening": 0.1, "dt": 0.1, **settings})

    ran = simulate().integrate(0.2, every=0.1)
    ran.schedule(3, 0.3, lambda body: ap.Change(removed=switch))
    cases: list[tuple[str, Callable[[], object]]] = [
        ("allow_inaccurate", lambda: simulate(allow_inaccurate=switch)),
        ("tuned", lambda: simulate(tuned=switch)),
        ("block", lambda: simulate(integrator="hermite4", eta=0.02, dt=None, block=switch)),
        ("block", lambda: simulate(integrator=ap.Hermite4(eta=0.02, block=switch), dt=None)),
        ("groups", lambda: simulate(groups=switch)),
        ("removed", lambda: ran.integrate(0.4)),
        ("check", lambda: ap.accelerations(bodies.pos, bodies.m, check=switch)),
        ("masses", lambda: ap.pull(bodies.pos, bodies.m, bodies.pos, masses=switch)),
        ("softening", lambda: ap.pull(bodies.pos, bodies.m, bodies.pos, softening=switch)),
        ("moon", lambda: ap.solar_system(moon=switch)),
        ("overwrite", lambda: bodies.save(file, overwrite=switch)),
        ("overwrite", lambda: ap.convert(file, file, overwrite=switch)),
        ("overwrite", lambda: ran.write_log(file, overwrite=switch)),
        ("overwrite", lambda: ap.image(bodies, size=(9, 9), path=file, overwrite=switch)),
        ("overwrite", lambda: ap.view(bodies, path=file, overwrite=switch)),
        ("overwrite", lambda: ap.plot(ran, tmp_path / "charts", overwrite=switch)),
        ("overwrite", lambda: ap.movie([bodies], tmp_path / "a.gif", overwrite=switch)),
        ("bare", lambda: ap.movie([bodies], tmp_path / "a.gif", bare=switch)),
        ("create", lambda: ap.series(tmp_path / "new", create=switch)),
    ]
    for argument, call in cases:
        with pytest.raises(ap.ArgumentError, match=f"`{argument}` must be True or False, got ") as refused:
            call()
        assert refused.value.argument == argument
    assert file.read_bytes() == before
    assert simulate(tuned=np.bool_(False), allow_inaccurate=0).kernel


def test_a_chosen_step_that_bodies_outrun_is_told() -> None:
    def outrun(**settings: Any) -> list[str]:
        def falls_together(seed: int) -> None:
            sphere = ap.uniform_sphere(200, seed=seed, virial_ratio=0.6)
            falling = ap.Simulation(sphere, softening=1e-4, integrator="leapfrog", device="cpu", accuracy="double", **settings)
            for k in range(1, 26):
                falling.integrate(0.02 * k)

        texts = [text for seed in (3, 17, 22) for text in told(lambda: falls_together(seed))]
        return [text for text in texts if "would be chosen" in text]

    # Two are near each other now and then; each simulation tells of it once.
    assert 1 <= len(outrun()) <= 3
    assert not outrun(dt=0.001)


def test_ids_that_several_bodies_have_are_told() -> None:
    bodies = ap.plummer(5, seed=1)
    with pytest.warns(UserWarning, match="several bodies have the id 1: `set`"):
        ap.Simulation(bodies[[3, 1, 1, 2]], softening=0.1, dt=0.1, device="cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ap.Simulation(bodies, softening=0.1, dt=0.1, device="cpu")
        ap.batch([bodies, bodies], softening=0.1, dt=0.1, device="cpu", accuracy="double")
