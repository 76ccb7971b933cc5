"""Values and gradients of accelerations and trajectories, compared with JAX's own of sums written out.

On a CPU it prints milliseconds of processor time, all threads together, the least of several calls. Where JAX has a GPU,
it prints milliseconds and interactions a second there, of arrays that stay on it.

    python benchmarks/peers/gradients.py [--seconds 5]
"""

import argparse
import time
from typing import Any, Callable

import jax
import jax.numpy as jnp
import numpy as np

import allpairs as ap
import allpairs.jax as aj

jax.config.update("jax_enable_x64", True)
EPS = 0.05


def written_out(x: Any, m: Any) -> Any:
    d = x[None] - x[:, None]
    own = jnp.eye(len(x), dtype=bool)
    squared = jnp.where(own, 1.0, (d**2).sum(-1) + EPS**2)
    return jnp.einsum("j,ij,ijk->ik", m, jnp.where(own, 0.0, squared**-1.5), d)


def best(call: Callable[[], Any], seconds: float) -> tuple[float, float]:
    """Least processor time and least time of a call, in milliseconds."""
    jax.block_until_ready(call())
    times = []
    ends = time.perf_counter() + seconds
    while not times or time.perf_counter() < ends:
        wall, processor = time.perf_counter(), time.process_time()
        jax.block_until_ready(call())
        times.append((time.process_time() - processor, time.perf_counter() - wall))
    return min(t[0] for t in times) * 1e3, min(t[1] for t in times) * 1e3


def loss(f: Any) -> Any:
    return lambda x, m: (f(x, m) ** 2).sum()


def ours(x: Any, m: Any) -> Any:
    return aj.accelerations(x, m, EPS)


def path(x: Any, v: Any, m: Any, steps: int = 20) -> Any:
    return (aj.leapfrog(x, v, m, 0.01, steps, EPS)[0] ** 2).sum()


def on_gpu(seconds: float) -> None:
    print(f"{jax.devices()[0].device_kind}, JAX {jax.__version__}\n")
    print("| bodies | digits | what | ms | sweeps | 10¹² interactions/s | error |\n|---|---|---|---|---|---|---|")
    for n in (10, 1024, 4096, 16384, 65536, 262144):
        cluster = ap.plummer(n, seed=1)
        exact = ap.pull(cluster.pos, cluster.m, cluster.vel, EPS, device="cpu") if n <= 16384 else None
        for dtype in (jnp.float32, jnp.float64):
            x, m, lam = (jnp.asarray(a, dtype) for a in (cluster.pos, cluster.m, cluster.vel))

            def pulled(x: Any, m: Any, lam: Any, masses: bool) -> Any:
                f = ours if masses else lambda x, m: ours(x, jax.lax.stop_gradient(m))
                return jax.vjp(f, x, m)[1](lam)

            rows = [
                ("force", 1, lambda x, m, lam: ours(x, m)),
                ("derivative by x", 1, lambda x, m, lam: pulled(x, m, lam, False)[0]),
                ("by x and m", 1, lambda x, m, lam: pulled(x, m, lam, True)),
                ("value and gradient by x and m", 2, lambda x, m, lam: jax.value_and_grad(loss(ours), (0, 1))(x, m)),
                ("the same, written out in JAX", 2, lambda x, m, lam: jax.value_and_grad(loss(written_out), (0, 1))(x, m)),
            ]
            for name, sweeps, f in rows:
                if "written out" in name and n > 16384:
                    continue  # arrays of N × N numbers
                call = jax.jit(f)
                _, wall = best(lambda: call(x, m, lam), seconds)
                error = ""
                if exact is not None and name == "by x and m":
                    found = [np.asarray(a, float) for a in call(x, m, lam)]
                    errors = [apart(a, b) for a, b in zip(found, (exact.pos, exact.m))]
                    error = f"{max(errors):.1e}"
                rate = sweeps * n * n / wall * 1e-9
                print(f"| {n} | {dtype.__name__} | {name} | {wall:.4g} | {sweeps} | {rate:.3g} | {error} |", flush=True)
    print("\n| bodies | steps | digits | what | s |\n|---|---|---|---|---|")
    for n, steps in ((1024, 100), (100_000, 100)):
        cluster = ap.plummer(n, seed=1)
        for dtype in (jnp.float32, jnp.float64):
            state = tuple(jnp.asarray(a, dtype) for a in (cluster.pos, cluster.vel, cluster.m))
            for name, f in [
                ("value", lambda *state: path(*state, steps)),
                ("value and gradient by x, v", lambda *state: jax.value_and_grad(lambda *s: path(*s, steps), (0, 1))(*state)),
                ("by x, v, m", lambda *state: jax.value_and_grad(lambda *s: path(*s, steps), (0, 1, 2))(*state)),
            ]:
                call = jax.jit(f)
                _, wall = best(lambda: call(*state), seconds)
                print(f"| {n} | {steps} | {dtype.__name__} | {name} | {wall * 1e-3:.4g} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=5.0)
    seconds = parser.parse_args().seconds
    if jax.default_backend() == "gpu":
        on_gpu(seconds)
    else:
        on_cpu(seconds)


def on_cpu(seconds: float) -> None:
    print("| bodies | what | processor time, ms | least time, ms |\n|---|---|---|---|")
    for n in (10, 100, 1024, 4096):
        cluster = ap.plummer(n, seed=1)
        pos, m = cluster.pos, cluster.m
        lam = np.random.default_rng(1).normal(size=(n, 3))
        x, mass = jnp.asarray(pos), jnp.asarray(m)
        single = x.astype(jnp.float32), mass.astype(jnp.float32)
        rows: list[tuple[str, Callable[[], Any]]] = [
            ("`ap.accelerations`", lambda: ap.accelerations(pos, m, EPS, device="cpu")),
            ("`ap.pull`, positions", lambda: ap.pull(pos, m, lam, EPS, masses=False, softening=False)),
            ("`ap.pull`, positions and masses", lambda: ap.pull(pos, m, lam, EPS, softening=False)),
            ("`ap.pull`, all", lambda: ap.pull(pos, m, lam, EPS)),
        ]
        functions = [
            ("`allpairs.jax`, jit, value", jax.jit(loss(ours)), (x, mass)),
            ("`allpairs.jax`, jit, value and gradient by x", jax.jit(jax.value_and_grad(loss(ours))), (x, mass)),
            ("`allpairs.jax`, jit, value and gradient by x and m", jax.jit(jax.value_and_grad(loss(ours), (0, 1))), (x, mass)),
            ("the same in float32", jax.jit(jax.value_and_grad(loss(ours), (0, 1))), single),
            ("JAX written out, jit, value and gradient by x and m", jax.jit(jax.value_and_grad(loss(written_out), (0, 1))), (x, mass)),
            ("JAX, jit, a function that does nothing", jax.jit(lambda x, m: x[0, 0] + m[0]), (x, mass)),
        ]
        rows += [(name, lambda f=f, given=given: f(*given)) for name, f, given in functions]
        for name, call in rows:
            processor, wall = best(call, seconds if n > 100 else min(seconds, 2.0))
            print(f"| {n} | {name} | {processor:.3g} | {wall:.3g} |", flush=True)

    cluster = ap.plummer(1024, seed=1)
    state = tuple(jnp.asarray(a) for a in (cluster.pos, cluster.vel, cluster.m))
    for name, f in [
        ("20 steps of leapfrog, value", jax.jit(path)),
        ("20 steps, value and gradient by x, v", jax.jit(jax.value_and_grad(path, (0, 1)))),
        ("20 steps, value and gradient by x, v, m", jax.jit(jax.value_and_grad(path, (0, 1, 2)))),
    ]:
        processor, wall = best(lambda f=f: f(*state), seconds)
        print(f"| 1024 | {name} | {processor:.3g} | {wall:.3g} |", flush=True)

    print("\n| steps | growth | gradient in single beside double precision | way back in double precision |\n|---|---|---|---|")
    cluster = ap.plummer(100, seed=1)
    for steps in (10, 100, 300, 1000):
        arguments = (cluster.pos, cluster.vel, cluster.m, 0.01, steps, cluster.pos, 0 * cluster.pos, EPS)
        exact = ap.pull_leapfrog(*arguments)
        single = ap.pull_leapfrog(*arguments, accuracy="single")
        plain = reference(cluster, steps)
        print(
            f"| {steps} | {exact.growth:.2g} | {apart(single.pos, exact.pos):.1e} | {apart(exact.pos, plain):.1e} |",
            flush=True,
        )


def apart(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.abs(one - other).max() / np.abs(other).max())


def reference(cluster: ap.Bodies, steps: int) -> np.ndarray:
    """The same gradient by JAX, which keeps the states of all steps."""
    m = jnp.asarray(cluster.m)

    def step(state: Any, _: Any) -> Any:
        x, v, a = state
        v = v + 0.005 * a
        x = x + 0.01 * v
        a = written_out(x, m)
        return (x, v + 0.005 * a, a), None

    def last(x: Any) -> Any:
        begun = (x, jnp.asarray(cluster.vel), written_out(x, m))
        return jax.lax.scan(step, begun, None, length=steps)[0][0]

    x = jnp.asarray(cluster.pos)
    return np.asarray(jax.jit(lambda x, lam: jax.vjp(last, x)[1](lam)[0])(x, x))


if __name__ == "__main__":
    main()
