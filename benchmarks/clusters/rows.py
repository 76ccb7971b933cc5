"""The clusters that are run: one row of the table for each, with its initial conditions."""

from __future__ import annotations

import subprocess
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Callable, Iterator

import numpy as np

import allpairs as ap

SECONDS_OF_A_MYR = 1e6 * 365.25 * 86400
#: Virial radius of a Plummer sphere over its half-mass radius.
VIRIAL_RADII = 1.2994
#: Times of looks are multiples of this, which PeTar's steps divide.
TICK = 1 / 64


class NotMade(Exception):
    """Reason why a cluster cannot be made here."""


@dataclass(frozen=True)
class Cluster:
    """Initial conditions in units with G = 1 and a total mass of 1."""

    bodies: ap.Bodies
    #: Binaries: bodies 0 and 1, 2 and 3, and so on.
    pairs: int
    until: float
    looks: int = 8
    #: Myr in a unit of time, if the cluster has physical units.
    myr: float | None = None


@dataclass(frozen=True)
class Row:
    """A cluster of the benchmark."""

    name: str
    title: str
    #: Makes the cluster of a seed; raises `NotMade`.
    make: Callable[[int], Cluster]


def plummer(
    seed: int,
    *,
    stars: int,
    fraction: float,
    masses: str | None,
    until: float,
    looks: int,
    axes: tuple[float, float] | None = None,
) -> Cluster:
    """Plummer sphere of systems, of which a fraction are binaries with thermal eccentricities.

    Their semi-major axes lie between two `axes`. If these are not given, binaries of equal masses have 3 to 60 kT.
    """
    pairs = pairs_of(stars, fraction)
    options: dict[str, object] = {}
    if masses is not None:
        options |= {"masses": masses, "least_mass": 0.08, "greatest_mass": 50.0}
    if pairs:
        closest, widest = axes or (1 / (20 * stars), 1 / stars)
        options |= {"binaries": fraction, "closest_binary": closest, "widest_binary": widest}
    return Cluster(ap.plummer(stars, seed=seed, **options), pairs, until, looks)


def pairs_of(stars: int, fraction: float) -> int:
    """Number of binaries among stars, if this fraction of the systems are binaries."""
    return int(fraction * stars / (1 + fraction) + 0.5)


def wide_masses(seed: int, *, stars: int) -> Cluster:
    """B0: the benchmark of NBODY6++GPU, without binaries."""
    bodies = ap.plummer(stars, seed=seed, masses="kroupa", least_mass=0.08, greatest_mass=150.0)
    return Cluster(bodies, 0, 1.0, looks=2)


def mcluster(seed: int, *, program: str | None, stars: int, fraction: float, myr: float) -> Cluster:
    """B1: the stars that mcluster makes, with its defaults for masses, density and binaries."""
    if program is None:
        raise NotMade("not run: mcluster is not installed (--mcluster)")
    with tempfile.TemporaryDirectory() as folder:
        options = f"-N {stars} -b {fraction} -C 5 -u 1 -s {41 + seed} -o stars".split()
        said = subprocess.run([program, *options], cwd=folder, capture_output=True, text=True, check=False)
        made = Path(folder, "stars.dat.10")
        if not made.exists():
            raise NotMade(f"not run: mcluster ended with {said.returncode} and wrote no stars")
        columns = np.loadtxt(made)
    bodies = ap.Bodies(columns[:, 0], columns[:, 1:4], columns[:, 4:7], units="pc,Msun,km/s")
    half_mass_radius = 0.8  # pc, mcluster's default
    return in_units(bodies, round(fraction * stars / 2), VIRIAL_RADII * half_mass_radius, myr)


def merger(seed: int, *, stars: int) -> Cluster:
    """B3: two King models of half of the stars each, on an orbit of eccentricity 0.5, at its apocentre of 10 pc."""
    clusters = [
        ap.king(
            stars // 2, w0=6, seed=2 * seed + which, masses="kroupa", least_mass=0.08, greatest_mass=100.0,
            half_mass_radius="2 pc",
        )
        for which in (0, 1)
    ]
    e, apocentre = 0.5, 10.0
    masses = [cluster.m.sum() for cluster in clusters]
    centres = ap.orbit(masses, a=apocentre / (1 + e), e=e, f=np.pi, units=clusters[0].units)
    for cluster, x, v in zip(clusters, centres.pos, centres.vel):
        cluster.pos += x
        cluster.vel += v
    bodies = ap.concatenate(clusters)
    # For G = 1 and M = 1 the virial radius is −1/(2 U); here in pc.
    size = float(bodies.G * bodies.m.sum() ** 2 / (-2 * bodies.energy().potential))
    return in_units(bodies, 0, size, 50.6)


def in_units(bodies: ap.Bodies, pairs: int, size: float, myr: float) -> Cluster:
    """The cluster with its total mass and a size in pc as units, and G = 1."""
    units = ap.Units.of(f"{size!r}pc,{float(bodies.m.sum())!r}Msun")
    made = bodies.to(units)
    made.units = None
    unit = units.time / SECONDS_OF_A_MYR
    looks = 8
    step = max(1, round(myr / unit / looks / TICK)) * TICK
    return Cluster(made, pairs, looks * step, looks, unit)


#: Stars of the series, the time to which they are followed, and the number of looks: one at 262144 stars takes minutes.
SERIES = [
    (256, 1.0, 8), (1024, 1.0, 8), (4096, 1.0, 8), (16384, 0.25, 4), (65536, 0.125, 2), (262144, 0.0625, 1),
]


def rows(mcluster_program: str | None = None) -> Iterator[Row]:
    """All rows, in the order of the table."""
    for letter, masses, kind in (("e", None, "equal masses"), ("k", "kroupa", "Kroupa's masses")):
        for stars, until, looks in SERIES:
            for percent in (0, 10, 50):
                make = partial(plummer, stars=stars, fraction=percent / 100, masses=masses, until=until, looks=looks)
                yield Row(f"{letter}{stars}-{percent}", f"{stars} stars, {kind}, {percent} % binaries", make)
    for percent in (10, 50):
        make = partial(
            plummer, stars=1024, fraction=percent / 100, masses=None, until=1.0, looks=8, axes=(1e-4, 1e-2)
        )
        yield Row(f"w1024-{percent}", f"1024 stars, {percent} % binaries with axes from 1e-4 to 1e-2", make)
    for stars in (50_000, 100_000, 500_000, 1_000_000, 2_000_000):
        yield Row(f"b0-{stars}", f"B0: {stars} stars of 0.08 to 150 Msun", partial(wide_masses, stars=stars))
    for stars, myr in ((1000, 3.0), (16_000, 10.0), (100_000, 100.0)):
        for percent in (0, 50, 95):
            make = partial(mcluster, program=mcluster_program, stars=stars, fraction=percent / 100, myr=myr)
            yield Row(f"b1-{stars}-{percent}", f"B1: {stars} stars of mcluster -b {percent / 100}, {myr:g} Myr", make)
    for percent in (0, 5, 50, 100):
        make = partial(plummer, stars=16_384, fraction=percent / 100, masses=None, until=10.0, looks=8)
        yield Row(f"b2-{percent}", f"B2: 16384 stars, {percent} % binaries, 10 time units", make)
    yield Row("b3", "B3: merger of 2 × 25000 stars, 50.6 Myr", partial(merger, stars=50_000))


#: A set that takes about a minute on one core.
QUICK = "e256-*,k256-*,e1024-*,k1024-0"
