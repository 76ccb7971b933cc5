"""Forks, and Ctrl-C in everything that takes long."""

import multiprocessing
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

import allpairs as ap

BODIES = ap.plummer(1000, seed=1)


def everything(_: int = 0) -> bytes:
    """Results of everything that computes, as bits."""
    simulation = ap.Simulation(BODIES, softening=0.1, dt=0.01, device="cpu")
    simulation.integrate(0.02, every=0.01)
    batch = ap.batch([BODIES, BODIES], softening=0.1, dt=0.01, device="cpu").integrate(0.01)
    acc, pot = ap.field_at(BODIES.pos + 1, BODIES, eps=0.1, device="cpu")
    arrays = [
        simulation.bodies.pos, np.array(float(simulation.energy())), batch.bodies.pos, acc, pot,
        BODIES.accelerations(0.1, device="cpu"), BODIES.potential(0.1), ap.king(500, seed=2).pos,
        ap.image(BODIES, size=(64, 64)),
    ]
    return b"".join(array.tobytes() for array in arrays)


def test_a_forked_process_computes() -> None:
    here = everything()
    kept = ap.Simulation(BODIES, softening=0.1, dt=0.01, device="cpu")
    fork = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(2, mp_context=fork) as pool:
        for found in pool.map(everything, range(3), timeout=120):
            assert found == here
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:  # also with a simulation of the parent's, and in a fork of the fork
        kept.integrate(0.05)
        grandchild = os.fork()
        if grandchild == 0:
            kept.integrate(0.1)
            os.write(writing, kept.bodies.pos.tobytes())
            os._exit(0)
        _, status = os.waitpid(grandchild, 0)
        os._exit(os.waitstatus_to_exitcode(status))
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        found = pipe.read()
    assert os.waitpid(child, 0)[1] == 0
    assert found == kept.integrate(0.05).integrate(0.1).bodies.pos.tobytes()


def test_a_simulation_that_is_in_use_is_refused_after_a_fork() -> None:
    begun, goes_on = threading.Event(), threading.Event()
    goes_on.set()

    def waits(_time: float, position: np.ndarray) -> np.ndarray:
        begun.set()
        goes_on.wait(60)
        return 0 * position

    simulation = ap.Simulation(BODIES, softening=0.1, dt=1e-4, field=waits, device="cpu")
    begun.clear()
    goes_on.clear()
    worker = threading.Thread(target=simulation.step, args=(3,))
    worker.start()
    assert begun.wait(60)
    child = os.fork()
    if child == 0:
        try:
            simulation.t
        except ap.ComputeError as error:
            os._exit(7 if "spawn" in str(error) else 8)
        os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    goes_on.set()
    worker.join()
    assert simulation.steps == 3


LONG: dict[str, str] = {
    "accelerations": "ap.accelerations(pos, 1.0, 0.1, device='cpu')",
    "potential": "ap.potential(pos, 1.0, 0.1)",
    "field_at": "ap.field_at(pos + 1, pos, 1.0, 0.1, device='cpu')",
    "energy": "ap.Bodies(1.0, pos).energy(0.1)",
    "generators": "ap.disk_galaxy(5_000_000)",
    "Simulation": "ap.Simulation(ap.Bodies(1.0, pos), softening=0.1, dt=0.1, accuracy='double', device='cpu')",
}


@pytest.mark.parametrize("name", LONG)
def test_ctrl_c_ends_what_takes_long(name: str) -> None:
    # A process in the background ignores Ctrl-C, and so do its children, until a handler is set.
    code = f"""
import os, signal, threading, time
import numpy as np
import allpairs as ap
pos = np.random.default_rng(1).normal(size=(400_000, 3))
signal.signal(signal.SIGINT, signal.default_int_handler)
threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
began = time.monotonic()
try:
    {LONG[name]}
except KeyboardInterrupt:
    print(time.monotonic() - began, flush=True)
    os._exit(5)
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert ended.returncode == 5, ended.stderr
    assert float(ended.stdout) < 2.0


@pytest.mark.parametrize("variables, threads", [({"OMP_NUM_THREADS": "1"}, "1 thread,"), ({"OMP_NUM_THREADS": "1", "RAYON_NUM_THREADS": "2"}, "2 threads,")])
def test_openmp_says_how_many_threads(variables: dict[str, str], threads: str) -> None:
    code = "import allpairs as ap; print(ap.Simulation(ap.plummer(50), softening=0.1, dt=0.01, device='cpu'))"
    found = subprocess.run([sys.executable, "-c", code], env=os.environ | variables, capture_output=True, text=True, check=True)
    assert threads in found.stdout
