"""Allpairs as a code of AMUSE: ``from amuse_allpairs import Allpairs``.

AMUSE is imported when `Allpairs` is taken from here. The worker that AMUSE starts needs numpy alone.
"""

from typing import Any

__all__ = ["Allpairs", "AllpairsInterface"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import interface

    return getattr(interface, name)
