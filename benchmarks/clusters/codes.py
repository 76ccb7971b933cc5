"""The programs that are measured: input files, commands, and what they write."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import struct
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator, Protocol

import numpy as np

import allpairs as ap

from .process import OUTPUT
from .rows import Cluster


@dataclass(frozen=True)
class Command:
    """A command to run in a folder, with a file for its standard input."""

    words: list[str | Path]
    stdin: Path | None = None


class Code(Protocol):
    """A program that follows clusters."""

    name: str
    #: True if its snapshots are in single precision.
    is_single: bool

    def prepare(self, cluster: Cluster, folder: Path) -> Command:
        """Writes the input files, and returns the command."""

    def loop(self, folder: Path) -> float | None:
        """Wall seconds without start and end, as the program measures them."""

    def own_error(self, folder: Path) -> float | None:
        """Largest relative error of the energy that the program itself states."""

    def snapshots(self, folder: Path) -> Iterator[ap.Bodies]:
        """States after the start, in the order of time, with ids from 0."""


class Allpairs:
    """Allpairs, with the integrator and accuracy that it chooses, or with further options."""

    is_single = False

    def __init__(self, program: list[str], device: str, options: str = "") -> None:
        self._program, self._device, self._options = program, device, shlex.split(options)
        self.name = " ".join(["Allpairs", *self._options])

    def prepare(self, cluster: Cluster, folder: Path) -> Command:
        cluster.bodies.save(folder / "start.allpairs")
        return Command([
            *self._program, "run", "start.allpairs", "--softening", "0", "--block-steps", "--device", self._device,
            "--until", repr(cluster.until), "--snapshot-every", repr(cluster.until / cluster.looks),
            "--no-picture", "--out", "run", *self._options,
        ])

    def loop(self, folder: Path) -> float | None:
        return number(r"^\d+ steps? in (\S+) s,", folder / OUTPUT)

    def own_error(self, folder: Path) -> float | None:
        return number(r"^ *energy +\S+ +\S+ +\S+ +(\S+)", folder / OUTPUT)

    def snapshots(self, folder: Path) -> Iterator[ap.Bodies]:
        files = sorted((folder / "run").glob("snapshot-*.allpairs"))
        return (ap.load(file) for file in files[1:])


class PeTar:
    """PeTar as it is installed, with its defaults and the number of binaries, as its manual asks."""

    name = "PeTar"
    is_single = False

    def __init__(self, program: str) -> None:
        self._program = program

    def prepare(self, cluster: Cluster, folder: Path) -> Command:
        with warnings.catch_warnings():
            # Of numbers without units, and of ids that begin with 1.
            warnings.simplefilter("ignore", UserWarning)
            cluster.bodies.save(folder / "input", format="petar")
        every = cluster.until / cluster.looks
        return Command([self._program, "-b", str(cluster.pairs), "-t", repr(cluster.until), "-o", repr(every), "input"])

    def loop(self, folder: Path) -> float | None:
        profile = folder / "data.prof.rank.0"
        if not profile.exists():
            return None
        # Rank, time, steps since the row before, bodies, and mean seconds of a step.
        rows = [line.split() for line in profile.read_text().splitlines()]
        return sum(float(row[2]) * float(row[4]) for row in rows if len(row) > 4)

    def own_error(self, folder: Path) -> float | None:
        found = re.findall(r"^Physic: +\S+ +\S+ +(\S+) +(\S+)", text(folder / OUTPUT), re.M)
        return max((abs(float(error) / float(total)) for error, total in found), default=None)

    def snapshots(self, folder: Path) -> Iterator[ap.Bodies]:
        files = [file for file in folder.glob("data.*") if re.fullmatch(r"data\.\d+", file.name)]
        return map(petars, sorted(files, key=lambda file: int(file.suffix[1:]))[1:])


def petars(file: Path) -> ap.Bodies:
    """Bodies of a text snapshot `data.N` of PeTar without stellar evolution: the columns of its input."""
    with open(file) as lines:
        head = lines.readline().split()
        columns = np.loadtxt(lines, ndmin=2)
    if columns.shape != (int(head[1]), 20):
        raise ValueError(f"{file.name} has {columns.shape[0]} rows of {columns.shape[1]} columns, not {head[1]} of 20")
    m, pos, vel, number = columns[:, 0], columns[:, 1:4], columns[:, 4:7], columns[:, 9]
    return ap.Bodies(m, pos, vel, id=number.astype(np.int64) - 1, time=float(head[2]))


class Nbody6:
    """NBODY6++GPU with the parameters of its examples, KS pairs with slow-down, and a chain."""

    name = "NBODY6++GPU"
    is_single = True

    def __init__(self, program: str) -> None:
        self._program = program

    def prepare(self, cluster: Cluster, folder: Path) -> Command:
        n = len(cluster.bodies)
        cluster.bodies.save(folder / "dat.10", format="nbody6")
        neighbours = 60 if n < 4096 else 80 if n < 16_384 else 120
        # Distance and step at which a pair is regularised; of two mean bodies that meet with the mean speed.
        near = 2 / n
        step = 0.04 * (near**3 * n) ** 0.5
        given = folder / "input.nml"
        given.write_text(PARAMETERS.format(
            n=n, neighbours=neighbours, every=cluster.until / cluster.looks, until=cluster.until, near=near, step=step,
            pairs=cluster.pairs, primordial=2 if cluster.pairs else 0,
        ))
        return Command([self._program], given)

    def loop(self, folder: Path) -> float | None:
        # Of the last table of times, the first row: rank, ranks, bodies, total, start.
        found = re.findall(r"^ +rank +PE .*\n +\d+ +\d+ +\d+ +(\S+) +(\S+)", text(folder / OUTPUT), re.M)
        return float(found[-1][0]) - float(found[-1][1]) if found else None

    def own_error(self, folder: Path) -> float | None:
        found = re.findall(r"ADJUST:.* DETOT *(\S+) +E *(\S+)", text(folder / OUTPUT))
        return max((abs(float(error) / float(energy)) for error, energy in found), default=None)

    def snapshots(self, folder: Path) -> Iterator[ap.Bodies]:
        files = sorted(folder.glob("conf.3_*"), key=lambda file: float(file.name.removeprefix("conf.3_")))
        return (conf3(file) for file in files[1:])


#: Input of NBODY6++GPU. KZ(3) writes conf.3; 8 and NBIN0 take the first bodies as binaries; 15 follows stable triples;
#: 22 reads dat.10 as it is; 26 slows pairs down; 30 allows a chain. Stars neither evolve nor escape.
PARAMETERS = """\
&INNBODY6
KSTART=1,TCOMP=1.0E8,TCRTP0=1.0E8,isernb=40,iserreg=40,iserks=640 /
&ININPUT
N={n},NFIX=1,NCRIT=10,NRAND=1,NNBOPT={neighbours},NRUN=1,NCOMM=10,
ETAI=0.02,ETAR=0.02,RS0=0.3,DTADJ={every!r},DELTAT={every!r},TCRIT={until!r},QE=1.0E3,RBAR=1.0,ZMBAR=1.0,
KZ(1:10)= 0 0 1 0 1 0 0 {primordial} 0 1
KZ(11:20)= 0 0 0 0 2 0 0 0 0 0
KZ(21:30)= 0 2 0 0 0 2 0 0 0 2
KZ(31:40)= 0 0 0 0 1 0 1 1 2 1
KZ(41:50)= 0 0 0 0 0 0 0 0 0 0,
DTMIN={step!r},RMIN={near!r},ETAU=0.1,ECLOSE=1.0,GMIN=1.0E-6,GMAX=0.01,SMAX=0.125,LEVEL='C' /
&INSSE /
&INBSE /
&INCOLL /
&INDATA
ALPHAS=2.35,BODY1=1.0,BODYN=1.0,NBIN0={pairs},NHI0=0,ZMET=0.001,EPOCH0=0.0,DTPLOT=1.0 /
&INSETUP /
&INSCALE
Q=0.5,VXROT=0.0,VZROT=0.0,RTIDE=0.0 /
&INXTRNL0 /
&INBINPOP /
&INHIPOP /
"""


def conf3(file: Path) -> ap.Bodies:
    """Bodies of a file conf.3 of NBODY6++GPU: Fortran's records, numbers in single precision.

    The first record has four integers: entries, two numbers of the run, and the length of a header. The second has
    the header, of which the first two are the time and the number of regularised pairs. Then come masses, densities,
    numbers of neighbours, positions, velocities, potentials and names. Behind the bodies are the centres of mass of
    pairs.
    """
    head, body = records(file.read_bytes(), str(file))
    entries, _, _, length = struct.unpack("<4i", head)
    values = np.frombuffer(body, "<f4")
    if len(values) != length + 11 * entries:
        raise ValueError(f"{file} has {len(values)} numbers, and {length + 11 * entries} are needed")
    time, pairs = float(values[0]), round(float(values[1]))
    n = entries - pairs
    columns = np.split(values[length:], entries * np.array([1, 2, 3, 6, 9, 10]))
    m, pos, vel = columns[0], columns[3].reshape(-1, 3), columns[4].reshape(-1, 3)
    names = columns[6].view("<i4")[:n].astype(np.int64)
    # The centre of mass of a chain has the name 0, in the place of one of its members.
    missing = np.setdiff1d(np.arange(1, n + 1), names)
    if len(missing) == 1:
        names[(names < 1) | (names > n)] = missing
    if not np.array_equal(np.sort(names), np.arange(1, n + 1)):
        raise ValueError(f"{file} does not name {len(missing)} of {n} bodies")
    return ap.Bodies(m[:n].astype(float), pos[:n].astype(float), vel[:n].astype(float), id=names - 1, time=time)


def records(content: bytes, name: str) -> list[bytes]:
    """Fortran's records of a file: each between two copies of its length."""
    found: list[bytes] = []
    at = 0
    while at < len(content):
        (length,) = struct.unpack_from("<i", content, at)
        end = at + 4 + length
        if length < 0 or content[end : end + 4] != content[at : at + 4]:
            raise ValueError(f"{name} is cut off in its record {len(found) + 1}")
        found.append(content[at + 4 : end])
        at = end + 4
    return found


def text(file: Path) -> str:
    """The content of a file, or nothing where there is none."""
    return file.read_text(errors="replace") if file.exists() else ""


def number(pattern: str, file: Path) -> float | None:
    """The number that the first group of a pattern finds in a file."""
    found = re.search(pattern, text(file), re.M)
    return float(found[1]) if found else None


class NoProgram(Exception):
    """Reason why a program that was asked for cannot be run."""


def found_program(given: str | None, variable: str, *names: str) -> str | None:
    """Path of a program: as given, of an environment variable, or by one of its names on the PATH."""
    chosen = given or os.environ.get(variable)
    if chosen is not None:
        path = shutil.which(chosen)
        if path is None:
            raise NoProgram(f"{chosen} is not a program that can be run")
        return os.path.abspath(path)
    return next(filter(None, map(shutil.which, names)), None)
