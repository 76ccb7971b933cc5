"""Results of runs, and the table of them as CSV, Markdown and text."""

from __future__ import annotations

import csv
import math
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Iterable


@dataclass(frozen=True)
class Result:
    """One run of one program: a row of the CSV file, in which what is not known is nan or empty."""

    row: str
    bodies: int
    binaries: int
    seed: int
    code: str
    #: Time at which the run was to end, and the last time at which it was looked at.
    until: float = math.nan
    reached: float = math.nan
    #: Myr in a unit of time, if the cluster has physical units.
    myr: float = math.nan
    #: Wall seconds without start and end, by the program's own clock; wall and processor seconds of the whole process.
    loop: float = math.nan
    wall: float = math.nan
    cpu: float = math.nan
    #: |ΔE/E| of all bodies, the largest and the last one.
    largest: float = math.nan
    last: float = math.nan
    #: The largest |ΔE| over the energy without the binaries' inner energies, and the change of that energy.
    scaled: float = math.nan
    cluster: float = math.nan
    #: The largest |ΔE/E| that the program states.
    own: float = math.nan
    #: Binaries of the start that are still bound, and the median of their |Δa/a|.
    kept: int = -1
    widened: float = math.nan
    #: Reason why the run did not reach its end; empty if it did.
    why: str = ""

    @property
    def key(self) -> tuple[str, int, str]:
        """Run that this is the result of: a later one replaces it."""
        return self.row, self.seed, self.code


def read(file: Path) -> list[Result]:
    """Results of an earlier table."""
    if not file.exists():
        return []
    kinds = {field.name: {"int": int, "float": float, "str": str}[str(field.type)] for field in fields(Result)}
    with open(file, newline="") as lines:
        return [Result(**{name: kinds[name](value) for name, value in row.items()}) for row in csv.DictReader(lines)]


def write(results: Iterable[Result], folder: Path, about: list[str]) -> None:
    """Writes table.csv, table.md and table.txt, which say where they were measured."""
    results = list(results)
    with open(folder / "table.csv", "w", newline="") as lines:
        rows = csv.DictWriter(lines, [field.name for field in fields(Result)], lineterminator="\n")
        rows.writeheader()
        rows.writerows(asdict(result) for result in results)
    (folder / "table.md").write_text("\n".join([*about, "", *markdown(results)]) + "\n")
    (folder / "table.txt").write_text("\n".join([*about, "", *aligned(results)]) + "\n")


#: Headings of the columns that people read.
HEADINGS = [
    "row", "seed", "code", "until", "loop, s", "CPU, s", "largest |ΔE/E|", "last", "|ΔE|/|E_c|", "|ΔE_c/E_c|",
    "own |ΔE/E|", "binaries kept", "median |Δa/a|", "remark",
]


def cells(result: Result) -> list[str]:
    """A result in words, one for each heading."""
    r = result
    until = "" if math.isnan(r.until) else f"{r.until:g}"
    if math.isfinite(r.myr):
        until += f" ({r.until * r.myr:.3g} Myr)"
    # A run that did not end well has no time to compare, but a place that it reached.
    remark = f"{r.why}; reached {r.reached:g}" if r.why and r.reached > 0 else r.why
    kept = f"{r.kept} of {r.binaries}" if r.binaries and r.kept >= 0 else ""
    return [
        r.row, str(r.seed), r.code, until, seconds(r.loop), seconds(r.cpu), small(r.largest), small(r.last),
        small(r.scaled), small(r.cluster), small(r.own), kept, small(r.widened), remark,
    ]


def seconds(value: float) -> str:
    """Seconds to three digits; nothing if they are not known."""
    return "" if math.isnan(value) else f"{value:.2f}" if value < 100 else f"{value:.0f}"


def small(value: float) -> str:
    """A relative error to two digits; nothing if it is not known."""
    return "" if math.isnan(value) else f"{value:.1e}".replace("e-0", "e-").replace("e+0", "e")


def markdown(results: Iterable[Result]) -> list[str]:
    """Lines of the table in Markdown."""
    rows = [HEADINGS, ["---"] * len(HEADINGS), *map(cells, results)]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]


def aligned(results: Iterable[Result]) -> list[str]:
    """Lines of the table with columns of even width."""
    rows = [HEADINGS, *map(cells, results)]
    widths = [max(map(len, column)) for column in zip(*rows)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
