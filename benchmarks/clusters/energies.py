"""Energies of a cluster, summed pair by pair in numpy: no program that is measured takes part."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import allpairs as ap

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

#: Bodies whose distances from all later bodies are in memory together, per thread.
BLOCK = 64


def energy(m: Floats, pos: Floats, vel: Floats, threads: int = 1) -> float:
    """Total energy for G = 1 without softening: each pair once, in double precision."""

    def of_block(first: int) -> float:
        last = min(first + BLOCK, len(m))
        x, y, z = (pos[first:last, None, k] - pos[None, first:, k] for k in range(3))
        distance = np.sqrt(x * x + y * y + z * z)
        # Pairs within the block are there twice, and bodies with themselves: only later bodies count.
        distance[np.tril_indices(last - first)] = np.inf
        with np.errstate(divide="ignore"):  # two bodies at one place: the energy is −∞
            return float(m[first:last] @ (m[first:] / distance).sum(axis=1))

    with ThreadPoolExecutor(threads) as pool:
        potential = math.fsum(pool.map(of_block, range(0, len(m), BLOCK)))
    return math.fsum(0.5 * m * (vel * vel).sum(axis=1)) - potential


@dataclass(frozen=True)
class Look:
    """Errors at one time, relative to the start."""

    time: float
    #: |ΔE| of all bodies over |E| of all bodies.
    total: float
    #: |ΔE| of all bodies over the energy of the cluster without the inner energies of its binaries.
    scaled: float
    #: Relative change of the energy without the inner energies of the binaries that are still bound.
    cluster: float
    #: True for each binary of the start that is still bound.
    bound: Mask
    #: |Δa/a| of the bound binaries.
    widened: Floats


class Start:
    """The state at the start, with which later states are compared.

    The first `pairs` pairs of bodies, 0 and 1, 2 and 3, …, are the binaries of the cluster.
    """

    def __init__(self, bodies: ap.Bodies, pairs: int, threads: int = 1) -> None:
        self._bodies, self._pairs, self._threads = bodies, pairs, threads
        self.axes = semi_major_axes(bodies, pairs)
        self.total = energy(bodies.m, bodies.pos, bodies.vel, threads)
        self._clusters: dict[bytes, float] = {}
        self.cluster = self._cluster(np.ones(pairs, dtype=np.bool_))

    def _cluster(self, bound: Mask) -> float:
        """Energy at the start without the inner energies of these binaries."""
        key = bound.tobytes()
        if key not in self._clusters:
            self._clusters[key] = energy(*systems(self._bodies, bound), self._threads)
        return self._clusters[key]

    def look(self, bodies: ap.Bodies, is_single: bool = False) -> Look:
        """Compares a later state with the start.

        Positions in single precision (`is_single`) do not tell the orbit of a hard binary. Its members then count
        as bound if they are within four semi-major axes of the start.
        """
        if len(bodies) != len(self._bodies):
            raise ValueError(f"{len(bodies)} of {len(self._bodies)} bodies are left at time {bodies.time:g}")
        bodies = bodies[np.argsort(bodies.id)]
        if not np.array_equal(bodies.id, self._bodies.id):
            raise ValueError(f"the bodies at time {bodies.time:g} have other ids than at the start")
        axes = semi_major_axes(bodies, self._pairs)
        bound = axes > 0
        if is_single:
            first, second = bodies.pos[0 : 2 * self._pairs : 2], bodies.pos[1 : 2 * self._pairs : 2]
            bound = np.linalg.norm(second - first, axis=1) < 4 * self.axes
        total = energy(bodies.m, bodies.pos, bodies.vel, self._threads) - self.total
        before = self._cluster(bound)
        now = energy(*systems(bodies, bound), self._threads) if self._pairs else before + total
        return Look(
            time=bodies.time,
            total=abs(total / self.total),
            scaled=abs(total / self.cluster),
            cluster=abs((now - before) / before),
            bound=bound,
            widened=np.abs(axes[bound] / self.axes[bound] - 1),
        )


def semi_major_axes(bodies: ap.Bodies, pairs: int) -> Floats:
    """Semi-major axes of the first pairs of bodies, negative or infinite where they are not bound."""
    if not pairs:
        return np.zeros(0)
    first, second = bodies[: 2 * pairs : 2], bodies[1 : 2 * pairs : 2]
    relative = ap.Bodies(first.m + second.m, second.pos - first.pos, second.vel - first.vel)
    axes: Floats = relative.elements(about=ap.Bodies(0, [[0, 0, 0]])).a
    return np.where(np.isfinite(axes), axes, -1.0)


def systems(bodies: ap.Bodies, bound: Mask) -> tuple[Floats, Floats, Floats]:
    """Masses, positions and velocities with one body at the centre of mass of each bound pair."""
    first = 2 * np.flatnonzero(bound)
    second = first + 1
    single = np.ones(len(bodies), dtype=np.bool_)
    single[first] = single[second] = False
    m = bodies.m[first] + bodies.m[second]
    share = (bodies.m[second] / m)[:, None]
    pos = bodies.pos[first] + share * (bodies.pos[second] - bodies.pos[first])
    vel = bodies.vel[first] + share * (bodies.vel[second] - bodies.vel[first])
    return (
        np.concatenate([m, bodies.m[single]]),
        np.concatenate([pos, bodies.pos[single]]),
        np.concatenate([vel, bodies.vel[single]]),
    )
