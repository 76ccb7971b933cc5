"""Exceptions of the package.

All are `AllpairsError`; each is also the built-in exception that fits, so that
``except ValueError`` works as ever.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import Iterable

__all__ = [
    "AllpairsError",
    "ArgumentError",
    "FileError",
    "DeviceError",
    "ComputeError",
    "ClosedError",
    "InternalError",
]


class AllpairsError(Exception):
    """Any error of this package."""


class ArgumentError(AllpairsError, ValueError):
    """An argument that makes no sense.

    Attributes
    ----------
    argument : str or None
        Name of the argument, where it is one.
    """

    argument: str | None = None


class FileError(AllpairsError, OSError):
    """A file that cannot be read or written, with its name and the reason."""


class DeviceError(AllpairsError, RuntimeError):
    """A device or kernel that cannot be had, or a device that refused."""


class ComputeError(AllpairsError, RuntimeError):
    """A computation that could not go on; the simulation keeps the state that it reached."""


class ClosedError(AllpairsError, RuntimeError):
    """A simulation that was closed, or broken by an `InternalError`."""


class InternalError(AllpairsError, RuntimeError):
    """A defect of the library. Please report it with the message."""


_KINDS = {
    kind.__name__: kind
    for kind in (ArgumentError, FileError, DeviceError, ComputeError, ClosedError, InternalError)
}


def made(kind: str, name: str | None, text: str) -> AllpairsError:
    """The exception of a failure of the library."""
    if name is not None and f"`{name}`" not in text:
        text = f"`{name}`: {text}"
    error = _KINDS[kind](text)
    if isinstance(error, ArgumentError):
        error.argument = name
    return error


def bad(argument: str, text: str) -> ArgumentError:
    """An `ArgumentError` with a message that begins with the argument."""
    error = ArgumentError(f"`{argument}` {text}")
    error.argument = argument
    return error


def one_of(argument: str, value: object, names: Iterable[str]) -> str:
    """The name, if it is one of `names`; the error offers the nearest."""
    names = list(names)
    if isinstance(value, str):
        name = value.lower().replace("_", "-")
        if name in names:
            return name
        near = get_close_matches(name, names, n=1, cutoff=0.6)
        if near:
            raise bad(argument, f"has no {value!r}: did you mean {near[0]!r}?")
    listed = names if len(names) <= 20 else [*names[:20], "…"]
    raise bad(argument, f"must be one of {', '.join(listed)}; got {value!r}")
