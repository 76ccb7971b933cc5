"""One run of one program, from its initial conditions to its line in the table."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import numpy as np

from . import process
from .codes import Code
from .energies import Look, Start
from .rows import Cluster, Row
from .table import Result


def measure(
    row: Row, seed: int, cluster: Cluster, start: Start, code: Code, folder: Path, *, limit: float, threads: int
) -> Result:
    """Runs a program on a cluster in a new folder, and compares its snapshots with the start."""
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    command = code.prepare(cluster, folder)
    count = str(threads)
    # PeTar needs a larger stack for its threads; its manual says so.
    variables = {"RAYON_NUM_THREADS": count, "OMP_NUM_THREADS": count, "OMP_STACKSIZE": "128M"}
    ended = process.run(command.words, folder, limit=limit, stdin=command.stdin, variables=variables)
    looks, why = looks_of(code, start, folder)
    reached = looks[-1].time if looks else 0.0
    if not ended.why and not why and not math.isclose(reached, cluster.until, rel_tol=1e-6):
        why = "ended early"
    last = looks[-1] if looks else None
    # Rounding to single precision moves the members of a hard binary by a share of their distance. A binary of the start
    # that is a point in the cluster's energy does no harm; others that have formed do.
    has_orbits = not (code.is_single and cluster.pairs)
    has_cluster = has_orbits or all(look.bound.all() for look in looks)
    return Result(
        row=row.name,
        bodies=len(cluster.bodies),
        binaries=cluster.pairs,
        seed=seed,
        code=code.name,
        until=cluster.until,
        reached=reached,
        myr=nan(cluster.myr),
        loop=nan(code.loop(folder)),
        wall=ended.wall,
        cpu=ended.cpu,
        largest=max((look.total for look in looks if has_orbits), default=math.nan),
        last=last.total if last and has_orbits else math.nan,
        scaled=max((look.scaled for look in looks if has_orbits), default=math.nan),
        cluster=max((look.cluster for look in looks if has_cluster), default=math.nan),
        own=nan(code.own_error(folder)),
        kept=int(last.bound.sum()) if last else -1,
        widened=float(np.median(last.widened)) if last and last.bound.any() and has_orbits else math.nan,
        why="; ".join(filter(None, [ended.why, why])),
    )


def looks_of(code: Code, start: Start, folder: Path) -> tuple[list[Look], str]:
    """Errors at the times of all snapshots that can be read, and why a later one cannot."""
    looks: list[Look] = []
    try:
        for bodies in code.snapshots(folder):
            looks.append(start.look(bodies, code.is_single))
    except (OSError, ValueError) as error:
        return looks, str(error)
    return looks, ""


def not_run(row: Row, seed: int, code: str, why: str) -> Result:
    """The line of a run that there was not."""
    return Result(row.name, 0, 0, seed, code, why=why)


def nan(value: float | None) -> float:
    """The value, or nan if there is none."""
    return math.nan if value is None else value
