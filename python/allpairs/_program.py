"""The program `allpairs`."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from . import _native


def main() -> None:
    """Runs the command line."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # as in any program; runs handle it themselves
    sys.exit(_native.run_program(sys.argv))


def run(arguments: list[str]) -> "subprocess.CompletedProcess[str]":
    """Runs the program as another process, and returns what it wrote."""
    here = os.fspath(Path(__file__).parents[1])
    paths = [here, *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.run(
        [sys.executable, "-c", "from allpairs._program import main; main()", *arguments],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )
