#!/usr/bin/env python3
"""Arrays of PyTorch and CuPy on a GPU, beside `allpairs bench` on the same GPU.

    pip install allpairs_nbody-*.whl        # beside torch and cupy, or one of them
    python gpu_arrays.py [--bodies 65536,…] [--json FILE]

First what must be so: errors against double precision, the same kind of array and its device and type,
streams that wait for each other, and NaN that is found. Then rates: interactions/s of calls in a row,
with and without a look at the numbers, and the share of the program's own rate; the goal is 95 % at
65 536 bodies. Leaves with 1 if anything is wrong, and says what was left out.
"""

import argparse
import importlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import allpairs as ap

GOAL = 0.95
#: What the program takes for arrays of float32 and of float64.
BOUND = {"float32": 1e-6, "float64": 1e-12}


class Library:
    """What differs between PyTorch and CuPy."""

    def __init__(self, name):
        self.name, self.module = name, importlib.import_module(name)

    def array(self, values):
        if self.name == "torch":
            return self.module.from_numpy(np.ascontiguousarray(values)).cuda()
        return self.module.asarray(values)

    def host(self, array):
        return array.cpu().numpy() if self.name == "torch" else array.get()

    def wait(self):
        if self.name == "torch":
            self.module.cuda.synchronize()
        else:
            self.module.cuda.Device().synchronize()

    def stream(self):
        if self.name == "torch":
            return self.module.cuda.stream(self.module.cuda.Stream())
        return self.module.cuda.Stream(non_blocking=True)

    def busy(self, seconds=0.05):
        """Keeps the current stream busy, so that what follows is late."""
        n = 4096
        ones = self.array(np.ones((n, n), np.float32))
        began, result = time.perf_counter(), ones
        while time.perf_counter() - began < seconds:
            result = result @ ones * (1.0 / n)
        return result


def cube(n, dtype):
    """As of `allpairs bench`: a cube of side 2, masses 1 … 7 in turn."""
    random = np.random.default_rng(1)
    pos = random.uniform(-1.0, 1.0, (n, 3)).astype(dtype)
    return pos, ((1 + np.arange(n) % 7) / n).astype(dtype)


def error(found, exact):
    return float(np.sqrt(((found - exact) ** 2).sum() / (exact**2).sum()))


def check(library):
    """Yields what is wrong."""
    for dtype in ("float32", "float64"):
        pos, m = cube(5000, dtype)
        for eps in (0.0, 0.05):
            exact = ap.accelerations(pos, m, eps, device="cpu")
            for masses, of in ((m, "unequal"), (np.full_like(m, 0.5), "equal")):
                right = exact if of == "unequal" else ap.accelerations(pos, masses, eps, device="cpu")
                for look in (True, False):
                    given = library.array(pos), library.array(masses)
                    found = ap.accelerations(*given, eps, check=look)
                    what = f"{library.name}, {dtype}, ε = {eps}, {of} masses, check={look}"
                    if type(found) is not type(given[0]) or found.device != given[0].device:
                        yield f"{what}: a {type(found).__name__}, or elsewhere"
                    if str(found.dtype) != str(given[0].dtype):
                        yield f"{what}: of {found.dtype}"
                    off = error(library.host(found), right)
                    if not off < BOUND[dtype]:
                        yield f"{what}: error {off:.2e}"
        # Not contiguous: columns of a wider array.
        wide = library.array(np.concatenate([pos, pos], axis=1))
        found = ap.accelerations(wide[:, 3:], library.array(m), 0.05)
        if not error(library.host(found), exact) < BOUND[dtype]:
            yield f"{library.name}, {dtype}: columns of a wider array"
    # In streams that are late, one after another: what is read too early would be wrong.
    pos, m = cube(20_000, "float32")
    exact = ap.accelerations(pos, m, 0.05, device="cpu")
    positions, masses, none = library.array(pos), library.array(m), library.array(pos * 0)
    for look in (True, False):
        for turn in range(4):
            with library.stream():
                mine = none * 1.0
                library.busy()
                mine += positions
                found = ap.accelerations(mine, masses, 0.05, check=look) * 1.0
                mine += 7.0  # after the force has read it
                result = library.host(found)
            if not error(result, exact) < BOUND["float32"]:
                yield f"{library.name}: streams are not in order (check={look}, turn {turn})"
    pos[17, 1] = np.nan
    for broken in ((pos, m), (none, -masses)):
        given = [x if not isinstance(x, np.ndarray) else library.array(x) for x in broken]
        try:
            ap.accelerations(*given, 0.05)
        except ap.ArgumentError:
            continue
        yield f"{library.name}: NaN or masses below 0 are not found"
    if library.name == "torch" and library.module.cuda.current_device() != 0:
        yield "torch: another GPU has become the current one"


def rate(library, n, dtype, look):
    """Median, least and largest interactions/s of calls in a row."""
    pos, m = (library.array(x) for x in cube(n, dtype))
    calls = max(5, int(3e11 / n**2))
    rates = []
    for repetition in range(8):
        library.wait()
        began = time.perf_counter()
        for _ in range(calls):
            ap.accelerations(pos, m, 0.05, check=look)
        library.wait()
        if repetition:
            rates.append(calls * n**2 / (time.perf_counter() - began))
    return statistics.median(rates), min(rates), max(rates)


def of_the_program(n, kernel):
    """The rate that `allpairs bench` finds."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "bench.json"
        subprocess.run(
            [
                sys.executable, "-c", "from allpairs._program import main; main()",
                "bench", "--device", "cuda", "--kernel", kernel, "--bodies", str(n), "--json", str(file),
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        return json.loads(file.read_text())["rows"][0]["rate"]


def kernel_for(n, dtype):
    """The kernel that the program takes, by a simulation that is not run."""
    accuracy = {"float32": "single", "float64": "double"}[dtype]
    bodies = ap.plummer(n, seed=1)
    return ap.Simulation(bodies, softening=0.05, dt=1e-3, accuracy=accuracy, device="cuda", tuned=False).kernel


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bodies", default="1024,4096,16384,65536,262144")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    print(f"allpairs {ap.__version__} on {ap.devices()}")
    wrong, rows = [], []
    libraries = []
    for name in ("torch", "cupy"):
        try:
            libraries.append(Library(name))
        except ImportError as why:
            print(f"LEFT OUT {name}: {why}")
    for library in libraries:
        found = list(check(library))
        wrong += found
        print(f"{library.name} {library.module.__version__}: {'FAILED' if found else 'right'}")
    try:
        jax = importlib.import_module("jax")
        pos, m = cube(1000, "float32")
        on_gpu = jax.numpy.asarray(pos)
        found = ap.accelerations(on_gpu, jax.numpy.asarray(m), 0.05)
        exact = ap.accelerations(pos, m, 0.05, device="cpu")
        same = type(found) is type(on_gpu) and found.devices() == on_gpu.devices()
        if not same or not error(np.asarray(found), exact) < BOUND["float32"]:
            wrong.append("jax: another kind of array, or wrong")
        print(f"jax {jax.__version__} on {on_gpu.devices()}: right, by way of the host")
    except ImportError as why:
        print(f"LEFT OUT jax: {why}")
    if not libraries:
        print("LEFT OUT rates: there is no library whose arrays lie on a GPU")
        options.bodies = ""
    print(f"{'':8} {'numbers':8} {'bodies':>8} {'look':>5} {'per second':>11} {'from … to':>21} {'program':>9} {'share':>6}")
    for dtype in ("float32", "float64"):
        for n in map(int, filter(None, options.bodies.split(","))):
            kernel = kernel_for(n, dtype)
            program = of_the_program(n, kernel)
            for library in libraries:
                for look in (True, False):
                    median, least, most = rate(library, n, dtype, look)
                    share = median / program
                    rows.append(
                        {
                            "library": library.name, "dtype": dtype, "bodies": n, "check": look,
                            "kernel": kernel, "rate": median, "least": least, "most": most,
                            "program": program, "share": share,
                        }
                    )
                    print(
                        f"{library.name:8} {dtype:8} {n:8} {'yes' if look else 'no':>5} {median:11.3e} "
                        f"{least:10.3e}…{most:.3e} {program:9.2e} {100 * share:5.1f}%"
                    )
                    if n == 65_536 and look and share < GOAL:
                        wrong.append(f"{library.name}, {dtype}: {100 * share:.1f} % of the program's rate")
    if options.json:
        options.json.write_text(json.dumps({"devices": ap.devices(), "rows": rows}, indent=1))
    for line in wrong:
        print(f"WRONG {line}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
