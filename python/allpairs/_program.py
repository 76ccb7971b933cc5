"""The program `allpairs`."""

import signal
import sys

from . import _native


def main() -> None:
    """Runs the command line."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # as in any program; runs handle it themselves
    sys.exit(_native.run_program(sys.argv))
