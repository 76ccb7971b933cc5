"""The program that AMUSE starts, by the interpreter that runs AMUSE."""

import sys
from pathlib import Path

# The folder of the packages instead of this one: so they are found however AMUSE's own process finds them.
sys.path[0] = str(Path(__file__).resolve().parents[1])

from amuse_allpairs._worker import main  # noqa: E402

if __name__ == "__main__":
    main()
