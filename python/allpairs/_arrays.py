"""Arguments as arrays that the library takes: checked, and converted where nothing is lost."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _foreign, _quantities
from ._errors import bad

Floats = NDArray[np.float64]
#: Whole numbers up to this one are float64 numbers.
_EXACT = 2**53
#: Types of arguments: arrays of numpy and what it makes arrays of, and arrays of other libraries.
Arrays = ArrayLike | _foreign.Foreign


def _array(argument: str, value: Any) -> NDArray[Any]:
    """Any array-like; what is on a GPU is copied to the host."""
    if isinstance(value, np.ma.MaskedArray):
        raise bad(argument, "is a masked array: fill it, or leave the masked bodies out")
    _quantities.unitless(argument, value)
    try:
        array = np.asarray(_foreign.on_host(value))
    except Exception as error:
        raise bad(argument, f"is not an array of numbers: {error}") from error
    if array.dtype.kind not in "fiub":
        raise bad(argument, f"must hold real numbers, not {array.dtype}")
    return array


def _in_memory(array: NDArray[Any], dtype: Any) -> NDArray[Any]:
    """The numbers as compiled code reads them: contiguous, and at addresses that suit their type."""
    contiguous = np.ascontiguousarray(array, dtype=dtype)
    return contiguous if contiguous.flags.aligned else contiguous.copy()


def floats(argument: str, value: Arrays) -> Floats:
    """float64, contiguous; a copy only where it must be."""
    array = _array(argument, value)
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        raise bad(argument, f"is {array.dtype}, of which float64 would lose digits: convert it first")
    if array.dtype.kind in "iu" and array.dtype.itemsize == 8 and array.size:
        if array.max() > _EXACT or array.min() < -_EXACT:
            raise bad(argument, "holds whole numbers beyond 2**53, of which float64 would lose digits")
    return _in_memory(array, np.float64)


def vectors(argument: str, value: Arrays, n: int | None = None) -> Floats:
    """(N, 3) of float64."""
    array = floats(argument, value)
    if array.ndim != 2 or array.shape[1] != 3:
        raise bad(argument, f"must have the shape (N, 3), not {array.shape}")
    if n is not None and len(array) != n:
        raise bad(argument, f"has {len(array)} rows where there are {n} bodies")
    return array


def scalars(argument: str, value: Any, n: int) -> Floats:
    """(N,) of float64; one number stands for all."""
    array = floats(argument, value)
    if array.size == 1 and array.ndim == 1 and np.ndim(value) == 0:
        array = np.full(n, array[0])
    if array.ndim != 1:
        raise bad(argument, f"must have the shape (N,), not {array.shape}")
    if len(array) != n:
        raise bad(argument, f"has {len(array)} elements where there are {n} bodies")
    return array


def whole(argument: str, value: Arrays, n: int, dtype: type[np.unsignedinteger[Any]]) -> NDArray[Any]:
    """(N,) of unsigned integers."""
    array = _array(argument, value)
    if array.dtype.kind not in "iu":
        raise bad(argument, f"must hold whole numbers, not {array.dtype}")
    if array.shape != (n,):
        raise bad(argument, f"must have the shape ({n},), not {array.shape}")
    if array.size and (array.min() < 0 or array.max() > np.iinfo(dtype).max):
        raise bad(argument, f"must be from 0 to {np.iinfo(dtype).max}")
    return _in_memory(array, dtype)


def number(argument: str, value: Any) -> float:
    """A finite number."""
    _quantities.unitless(argument, value)
    try:
        converted = float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise bad(argument, f"must be a number, got {value!r}") from error
    if not np.isfinite(converted):
        raise bad(argument, f"must be finite, got {converted}")
    return converted


def count(argument: str, value: Any, least: int = 0) -> int:
    """A whole number from `least` on."""
    try:
        converted = value.__index__()
    except AttributeError as error:
        raise bad(argument, f"must be a whole number, got {value!r}") from error
    if converted < least or converted >= 1 << 63:
        raise bad(argument, f"must be a whole number ≥ {least}, got {value!r}")
    return int(converted)
