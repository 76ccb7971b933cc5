"""A program that runs under a time limit, and the times that it takes."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Mapping, Sequence

#: Files of a run's folder that hold the output of the program.
OUTPUT, ERRORS = "output.txt", "errors.txt"
#: Seconds between two looks at the process at most.
PAUSE = 0.05


@dataclass(frozen=True)
class Ended:
    """A process that has ended."""

    wall: float
    #: Seconds of processors, of user and system together.
    cpu: float
    #: Reason why the process did not end well, or nothing.
    why: str


def run(
    command: Sequence[str | Path], folder: Path, *, limit: float, stdin: Path | None, variables: Mapping[str, str]
) -> Ended:
    """Runs a command in a folder, and ends it and its children after `limit` seconds."""
    with (
        open(stdin or os.devnull, "rb") as given,
        open(folder / OUTPUT, "wb") as output,
        open(folder / ERRORS, "wb") as errors,
    ):
        began = time.perf_counter()
        process = subprocess.Popen(
            [os.fspath(word) for word in command],
            cwd=folder,
            stdin=given,
            stdout=output,
            stderr=errors,
            env={**os.environ, **variables},
            start_new_session=True,
        )
        is_over, pause = False, 1e-3
        try:
            while True:
                found, status, used = os.wait4(process.pid, os.WNOHANG)
                wall = time.perf_counter() - began
                if found:
                    break
                if wall > limit and not is_over:
                    os.killpg(process.pid, signal.SIGKILL)
                    is_over = True
                time.sleep(pause)
                pause = min(2 * pause, PAUSE)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    process.returncode = os.waitstatus_to_exitcode(status)
    why = ""
    if is_over:
        why = f"time limit of {limit:g} s"
    elif process.returncode:
        why = f"ended with {process.returncode}: {last_line(folder)}"
    return Ended(wall, used.ru_utime + used.ru_stime, why)


def last_line(folder: Path) -> str:
    """The last line that the program wrote to its errors, else to its output."""
    for name in (ERRORS, OUTPUT):
        lines = (folder / name).read_text(errors="replace").split("\n")
        said = [line.strip() for line in lines if line.strip()]
        if said:
            return said[-1][:120]
    return "nothing was said"
