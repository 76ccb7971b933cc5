"""Exceptions of the package.

All are `AllpairsError`; each is also the built-in exception that fits, so that
``except ValueError`` works as ever.
"""

from __future__ import annotations

import os
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterable

import numpy as np

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


class _UnknownNameError(ArgumentError, AttributeError):
    """An attribute that a class of this package does not have."""


class Named:
    """A class with known attributes: another name is refused, with the nearest.

    A name that is spelled wrongly would be a new attribute otherwise, without any effect. Classes of users that
    are made of these may have attributes of their own.
    """

    #: Names that people know from elsewhere, and ours.
    _OTHER_NAMES: dict[str, str] = {}

    if not TYPE_CHECKING:  # a checker of types knows the names itself

        def __setattr__(self, name: str, value: Any) -> None:
            kind = type(self)
            is_known = name.startswith("_") or hasattr(kind, name) or name in kind.__annotations__
            if kind.__module__.startswith("allpairs.") and not is_known:
                raise self._unknown(name)
            super().__setattr__(name, value)

        def __getattr__(self, name: str) -> Any:
            raise self._unknown(name)

    def _unknown(self, name: str) -> AttributeError:
        kind = type(self)
        known = [known for known in [*dir(kind), *kind.__annotations__] if not known.startswith("_")]
        near = [kind._OTHER_NAMES.get(name.lower(), "")] + get_close_matches(name, known, n=1, cutoff=0.6)
        named = next((f": did you mean `{one}`?" for one in near if one), "")
        error = _UnknownNameError(f"{kind.__name__} has no attribute `{name}`{named}")
        error.argument = name
        return error


def made(kind: str, name: str | None, text: str) -> AllpairsError:
    """The exception of a failure of the library."""
    # With a value it is named too, as in `integrator="hermite4"`, but not by the advice behind the colon.
    reason = text.partition(": ")[0]
    if name is not None and f"`{name}`" not in text and f"`{name}=" not in reason:
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


def flag(argument: str, value: object) -> bool:
    """True or False; texts such as "no" would be true."""
    if isinstance(value, (bool, int, np.bool_)) and value in (0, 1):
        return bool(value)
    raise bad(argument, f"must be True or False, got {value!r}")


def write_text(path: str | os.PathLike[str], text: str, overwrite: bool) -> None:
    """Writes a file, whole or not at all; one that is there is replaced only if `overwrite` says so."""
    target = Path(path)
    if not flag("overwrite", overwrite) and target.exists():
        raise FileError(f"{target} already exists: choose another name, or `overwrite=True`")
    partial = target.with_name(target.name + ".partial")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(target)
    except OSError as error:
        raise FileError(f"cannot write {target}: {error}") from error
