#!/usr/bin/env python3
"""Accelerations from Python, beside REBOUND, pytreegrav and Nornax, on the CPU.

    pip install allpairs_nbody-*.whl rebound pytreegrav nornax
    python python_peers.py [--bodies 1000,…] [--seconds 60]

Plummer's model, ε = 0, double precision: pytreegrav softens by a spline, so that ε = 0 alone is the same
force in all. Errors are root mean squares over 128 bodies, relative to sums in numpy's longdouble. Of what
would take longer than --seconds, the forces of all bodies on 4096 of them are timed, where the code can
compute these alone; else it is left out, and said. What takes longer than a second is neither warmed up nor,
beyond five, repeated. jzfmm computes on GPUs alone.
"""

import argparse
import ctypes
import importlib
import os
import statistics
import time

import numpy as np

import allpairs as ap

SAMPLED = 128
#: Bodies whose forces are computed where all would take too long.
TARGETS = 4096


def of_allpairs(accuracy):
    def evaluation(pos, m):
        return lambda: ap.accelerations(pos, m, 0.0, accuracy=accuracy, device="cpu")

    return evaluation


def field_of_allpairs(targets, pos, m):
    """With potentials, which `field_at` computes as well."""
    return lambda: ap.field_at(targets, pos, m, 0.0, device="cpu")[0]


def of_rebound(pos, m):
    rebound = importlib.import_module("rebound")
    sim = rebound.Simulation()
    sim.gravity = "basic"
    for (x, y, z), mass in zip(pos, m):
        sim.add(m=mass, x=x, y=y, z=z)
    accelerate = rebound.clibrebound.reb_simulation_update_acceleration

    def evaluate():
        accelerate(ctypes.byref(sim))
        return sim

    def result(sim):
        return np.array([[p.ax, p.ay, p.az] for p in sim.particles])

    evaluate.result = result
    return evaluate


def of_pytreegrav(method):
    def evaluation(pos, m):
        pytreegrav = importlib.import_module("pytreegrav")
        return lambda: pytreegrav.Accel(pos, m, parallel=True, method=method)

    return evaluation


def field_of_pytreegrav(targets, pos, m):
    pytreegrav = importlib.import_module("pytreegrav")
    return lambda: pytreegrav.AccelTarget(targets, pos, m, parallel=True, method="bruteforce")


def of_nornax(pos, m):
    jax = importlib.import_module("jax")
    jax.config.update("jax_enable_x64", True)
    direct = importlib.import_module("nornax.forces.direct")
    # All pairs at a time need memory for N² of them.
    gravity = direct.DirectSumGravity(block_size=max(1, 2**22 // len(pos)))
    forces = jax.jit(lambda x, v, m: gravity.derivatives(0.0, x, v, m, max_order=1).acc)
    bodies = jax.numpy.array(pos), jax.numpy.zeros_like(pos), jax.numpy.array(m)

    def evaluate():
        return np.asarray(forces(*bodies))

    return evaluate


#: Of each code its module, the forces on all bodies, and those on some where it has them.
CODES = {
    "Allpairs, double": ("allpairs", of_allpairs("double"), field_of_allpairs),
    "Allpairs, single": ("allpairs", of_allpairs("single"), None),
    "REBOUND, basic (one thread)": ("rebound", of_rebound, None),
    "pytreegrav, brute force": ("pytreegrav", of_pytreegrav("bruteforce"), field_of_pytreegrav),
    "Nornax, direct, in blocks": ("nornax", of_nornax, None),
    "pytreegrav, tree (θ = 0.7)": ("pytreegrav", of_pytreegrav("tree"), None),
}


def exact(pos, m, chosen):
    """Sums in longdouble at the chosen bodies."""
    wide, masses = pos.astype(np.longdouble), m.astype(np.longdouble)
    found = []
    for i in chosen:
        r = wide - wide[i]
        square = (r**2).sum(axis=1)
        square[i] = 1
        found.append(((masses / square**1.5)[:, None] * r).sum(axis=0))
    return np.array(found)


def overhead(n, accuracy):
    """Seconds of calls, and of steps of leapfrog, which are the force and little else, in turn."""
    bodies = ap.plummer(n, seed=1)
    simulation = ap.Simulation(
        bodies, softening=0, dt=1e-9, integrator="leapfrog", device="cpu", accuracy=accuracy
    )
    calls, steps = [], []
    for _ in range(2000):
        began = time.perf_counter()
        ap.accelerations(bodies.pos, bodies.m, accuracy=accuracy, device="cpu")
        between = time.perf_counter()
        simulation.step()
        calls.append(between - began)
        steps.append(time.perf_counter() - between)
    return calls, steps


def timed(evaluate, warm):
    """Seconds of evaluations, and the last one's result."""
    if warm:
        evaluate()  # compiled, warmed up
    times = []
    while (len(times) < 3 and sum(times) < 5.0) or (sum(times) < 2.0 and len(times) < 200):
        began = time.perf_counter()
        found = evaluate()
        times.append(time.perf_counter() - began)
    return times, getattr(evaluate, "result", lambda array: array)(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bodies", default="1000,4096,16384,65536,262144,1048576")
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    print(f"Allpairs {ap.__version__}, numpy {np.__version__}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}")
    for name in ("rebound", "pytreegrav", "nornax"):
        try:
            from importlib.metadata import version

            importlib.import_module(name)
            print(name, version(name))
        except ImportError as why:
            print(f"LEFT OUT {name}: {why}")
    print("\n| code | bodies | seconds | from … to | interactions/s | rms error |\n|---|---|---|---|---|---|")
    slow = {}
    for n in map(int, options.bodies.split(",")):
        bodies = ap.plummer(n, seed=1)
        pos, m = bodies.pos, bodies.m
        some = np.random.default_rng(1).choice(n, min(n, TARGETS), replace=False)
        chosen = some[:SAMPLED]
        truth = exact(pos, m, chosen)
        for name, (module, of_all, of_some) in CODES.items():
            try:
                importlib.import_module(module)
            except ImportError:
                continue
            # As many pairs as before, and so many more; a tree's nodes grow with the bodies.
            before, at = slow.get(name, (0.0, n))
            expected = before * (n / at) ** (1 if "tree (" in name else 2)
            if expected <= options.seconds:
                times, found = timed(of_all(pos, m), expected < 1.0)
                found, targets, label = found[chosen], n, name
                slow[name] = statistics.median(times), n
            elif of_some is not None and expected * len(some) / n <= options.seconds:
                times, found = timed(of_some(pos[some], pos, m), True)
                found, targets, label = found[: len(chosen)], len(some), f"{name}, on {len(some)} bodies"
            else:
                print(f"| {name} | {n} | left out: about {expected:.0f} s | | | |", flush=True)
                continue
            error = np.sqrt(((found - truth) ** 2).sum() / (truth**2).sum())
            seconds = statistics.median(times)
            print(
                f"| {label} | {n} | {seconds:.3g} | {min(times):.3g} … {max(times):.3g} | "
                f"{n * targets / seconds:.2e} | {float(error):.1e} |",
                flush=True,
            )
    print(f"\nload {os.getloadavg()[0]:.1f}; microseconds, the least and the median of 2000 in turn")
    print("\n| a call for | accuracy | call | step | difference |\n|---|---|---|---|---|")
    for n in (2, 100, 1000):
        for accuracy in ("double", "single"):
            both = overhead(n, accuracy)
            cells = [[1e6 * of(times) for of in (min, statistics.median)] for times in both]
            cells.append([call - step for call, step in zip(*cells)])
            row = " | ".join(f"{least:.1f}, {median:.1f}" for least, median in cells)
            print(f"| {n} | {accuracy} | {row} |")


if __name__ == "__main__":
    main()
