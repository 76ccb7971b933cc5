"""Runs clusters with Allpairs, PeTar and NBODY6++GPU, and writes one table of times and errors.

    cd benchmarks
    python -m clusters --quick                                  # a minute on one core
    python -m clusters --rows 'e1024-*,k1024-*' --limit 300     # four seeds each
    python -m clusters --list

Needs the package `allpairs`. The other programs are found on the PATH, or by an option or environment variable
(PETAR, NBODY6, MCLUSTER); those that are not there are left out, and the table says so. It is written anew after
each run. Rows of an earlier table in the same folder stay, unless they are run again.
"""

from __future__ import annotations

import argparse
import datetime
import fnmatch
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import numpy as np

from . import rows as all_rows
from . import table
from .codes import Allpairs, Code, Nbody6, NoProgram, PeTar, found_program, text
from .energies import Start
from .measure import measure, not_run
from .rows import NotMade, Row


def main() -> None:
    options = arguments()
    rows = list(all_rows.rows(found_program(options.mcluster, "MCLUSTER", "mcluster")))
    if options.list:
        for row in rows:
            print(f"{row.name:16} {row.title}")
        return
    chosen = chosen_rows(rows, all_rows.QUICK if options.quick else options.rows)
    codes, missing = programs(options)
    seeds = options.seeds or ([1] if options.quick else [1, 2, 3, 4])
    folder = options.out.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    results = {result.key: result for result in table.read(folder / "table.csv")}
    order = {row.name: index for index, row in enumerate(rows)}
    about = conditions(options, missing)
    for row in chosen:
        for seed in seeds:
            for result in runs(row, seed, codes, folder, options):
                results[result.key] = result
                print("  ".join(filter(None, table.cells(result))), flush=True)
                ordered = sorted(results.values(), key=lambda r: (order.get(r.row, -1), r.seed, r.code))
                table.write(ordered, folder, about)
    print(f"\nwrote {os.path.relpath(folder)}/table.md, table.txt and table.csv")


def arguments() -> argparse.Namespace:
    def seeds(words: str) -> list[int]:
        return [int(word) for word in words.split(",")]

    parser = argparse.ArgumentParser(
        prog="python -m clusters", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--quick", action="store_true", help="run small clusters, one seed each")
    what.add_argument("--rows", help="run these: names with * and ?, separated by commas")
    what.add_argument("--list", action="store_true", help="list all rows, and end")
    parser.add_argument("--seeds", type=seeds, help="seeds, such as 1,2,3,4, which are the default of --rows")
    parser.add_argument("--codes", default="allpairs,petar,nbody6", help="programs to run: allpairs, petar, nbody6")
    parser.add_argument("--device", default="cpu", help="device of Allpairs: cpu or cuda")
    parser.add_argument("--threads", type=int, default=1, help="threads of each program, and of the sums")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds after which a run is ended")
    parser.add_argument("--options", default="", help="further options of `allpairs run`, such as '--eta 0.02'")
    parser.add_argument("--out", type=Path, default=Path("clusters-out"), help="folder of the table and of the runs")
    parser.add_argument("--allpairs", help="path of Allpairs; if not given, ALLPAIRS, the PATH, or the package's own")
    parser.add_argument("--petar", help="path of PeTar; if not given, PETAR or the PATH")
    parser.add_argument("--nbody6", help="path of NBODY6++GPU; if not given, NBODY6 or the PATH")
    parser.add_argument("--mcluster", help="path of mcluster, for B1; if not given, MCLUSTER or the PATH")
    options = parser.parse_args()
    if options.threads < 1 or not options.limit > 0:
        parser.error("--threads must be ≥ 1 and --limit > 0")
    return options


def chosen_rows(rows: list[Row], patterns: str) -> list[Row]:
    """The rows with these names."""
    words = [word.strip() for word in patterns.split(",")]
    for word in words:
        if not fnmatch.filter([row.name for row in rows], word):
            sys.exit(f"python -m clusters: no row is called {word}: `python -m clusters --list` lists all")
    return [row for row in rows if any(fnmatch.fnmatchcase(row.name, word) for word in words)]


def programs(options: argparse.Namespace) -> tuple[list[Code], list[str]]:
    """The programs that were asked for, and the names of those that are not installed."""
    asked = [word.strip() for word in options.codes.split(",")]
    unknown = set(asked) - {"allpairs", "petar", "nbody6"}
    if unknown:
        sys.exit(f"python -m clusters: no program is called {', '.join(unknown)}: there are allpairs, petar and nbody6")
    codes: list[Code] = []
    missing = []
    if "allpairs" in asked:
        codes.append(Allpairs(allpairs_command(options), options.device, options.options))
    if "petar" in asked:
        petar = found_program(options.petar, "PETAR", "petar")
        codes += [PeTar(petar)] if petar else []
        missing += [] if petar else [PeTar.name]
    if "nbody6" in asked:
        names = ["nbody6++.avx", "nbody6++.sse", "nbody6++", "nbody6++.avx.gpu", "nbody6++.sse.gpu"]
        nbody6 = found_program(options.nbody6, "NBODY6", *names)
        codes += [Nbody6(nbody6)] if nbody6 else []
        missing += [] if nbody6 else [Nbody6.name]
    return codes, missing


def allpairs_command(options: argparse.Namespace) -> list[str]:
    """The command of Allpairs; the package has one, if there is no other."""
    program = found_program(options.allpairs, "ALLPAIRS", "allpairs")
    return [program] if program else [sys.executable, "-c", "from allpairs._program import main; main()"]


def runs(row: Row, seed: int, codes: list[Code], folder: Path, options: argparse.Namespace) -> list[table.Result]:
    """Results of all programs on a cluster."""
    try:
        cluster = row.make(seed)
    except NotMade as why:
        return [not_run(row, seed, code.name, str(why)) for code in codes]
    start = Start(cluster.bodies, cluster.pairs, options.threads)
    results = []
    for code in codes:
        place = folder / "runs" / f"{row.name}-{seed}-{code.name.replace(' ', '').replace('/', '')}"
        results.append(measure(row, seed, cluster, start, code, place, limit=options.limit, threads=options.threads))
    return results


def conditions(options: argparse.Namespace, missing: list[str]) -> list[str]:
    """Lines about where and how the table was measured."""
    command = [*allpairs_command(options), "--version"]
    version = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split("\n")[0]
    lines = [
        f"{version}, device {options.device}, threads for each program: {options.threads}, numpy {np.__version__}",
        f"{processor()}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} at the start, "
        f"{datetime.date.today().isoformat()}",
    ]
    return lines + [f"Not installed, and left out: {name}" for name in missing]


def processor() -> str:
    """Name of the processor."""
    info = text(Path("/proc/cpuinfo"))
    named = re.search(r"^model name\s*: (.*)$", info, re.M)
    return named[1] if named else platform.processor() or platform.machine()


if __name__ == "__main__":
    try:
        main()
    except NoProgram as why:
        sys.exit(f"python -m clusters: {why}")
