"""Arguments as arrays that the library takes: checked, and converted where nothing is lost."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _foreign, _quantities
from ._errors import ArgumentError, bad

Floats = NDArray[np.float64]
#: Whole numbers up to this one are float64 numbers.
_EXACT = 2**53
#: Types of arguments: arrays of numpy and what it makes arrays of, and arrays of other libraries.
Arrays = ArrayLike | _foreign.Foreign


class Array(NDArray[Any] if TYPE_CHECKING else np.ndarray):  # type: ignore[misc]
    """Numbers of bodies: a quantity cannot become one of them, which would lose its unit.

    Those that a simulation gives out are read, and an attempt to write says how a simulation is changed. Copies, and
    results of computations, can be written to.
    """

    def __setitem__(self, index: Any, value: Any) -> None:
        self._may_change()
        unit = _quantities.unit_of(value)
        if unit is not None:
            raise ArgumentError(
                f"an element cannot be a quantity, in {unit}, which would lose its unit: assign the whole array, as in "
                "`bodies.pos = …`, which converts, or plain numbers in the units of the bodies"
            )
        super().__setitem__(index, value)

    def _may_change(self) -> None:
        if not self.flags.writeable:
            raise read_only("this array is")

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        array = np.asarray(array)
        return array[()] if return_scalar or array.ndim == 0 else array

    def copy(self, order: Any = "C") -> Any:
        return np.array(self, order=order, copy=True, subok=False)

    def __repr__(self) -> str:
        return repr(np.asarray(self))

    def __reduce__(self) -> Any:
        return np.asarray(self).copy().__reduce__()


def _in_place(name: str) -> Any:
    """An operator that changes an array, if it may be changed."""
    change = getattr(np.ndarray, name)

    def refusing(self: Array, other: Any) -> Any:
        self._may_change()
        return change(self, other)

    return refusing


for _name in "add sub mul matmul truediv floordiv mod pow and or xor lshift rshift".split():
    setattr(Array, f"__i{_name}__", _in_place(f"__i{_name}__"))


def read_only(what: str) -> ArgumentError:
    """The refusal to write to what a simulation gave out."""
    return ArgumentError(
        f"{what} a copy that a simulation gave out, and to write to it would not change the simulation: use `kick` or `set` "
        "of the simulation for that, or write to a copy (`.copy()`)"
    )


def own(array: NDArray[Any]) -> Array:
    """An array of bodies, which can be written to."""
    view: Array = (array if array.flags.writeable else array.copy()).view(Array)  # type: ignore[assignment]
    return view


def given(array: NDArray[Any]) -> Any:
    """An array that a simulation gives out, which cannot be written to."""
    view = array.view(Array)
    view.flags.writeable = False
    return view


def rows(index: Any, n: int) -> NDArray[Any]:
    """Numbers of the bodies that an index, a slice, a mask or a list of indices chooses of `n`."""
    is_switch = isinstance(index, (bool, np.bool_))
    if isinstance(index, (int, np.integer)) and not is_switch:
        return np.array([range(n)[index]])
    found = np.arange(n)[index]
    if is_switch or found.ndim > 1:
        raise bad("index", f"must be a number, a slice, a mask of all bodies or a list of numbers; got {index!r}")
    return np.atleast_1d(found)


def ids(argument: str, value: Any) -> NDArray[Any]:
    """Ids of bodies, (K,) of uint64: of one number or several."""
    array = np.atleast_1d(_array(argument, value))
    if array.size == 0:
        return np.zeros(0, dtype=np.uint64)
    return whole(argument, array, array.size, np.uint64)


def _array(argument: str, value: Any) -> NDArray[Any]:
    """Any array-like; what is on a GPU is copied to the host."""
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
    if isinstance(value, (bool, np.bool_, bytes)):
        raise bad(argument, f"must be a number, got {value!r}")
    try:
        converted = float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise bad(argument, f"must be a number, got {value!r}") from error
    if not np.isfinite(converted):
        raise bad(argument, f"must be finite, got {converted}")
    return converted


def count(argument: str, value: Any, least: int = 0) -> int:
    """A whole number from `least` on."""
    _quantities.unitless(argument, value)
    if isinstance(value, bool):
        raise bad(argument, f"must be a whole number, got {value!r}")
    try:
        converted = value.__index__()
    except (AttributeError, TypeError) as error:
        raise bad(argument, f"must be a whole number, got {value!r}") from error
    if converted < least or converted >= 1 << 63:
        raise bad(argument, f"must be a whole number ≥ {least}, got {value!r}")
    return int(converted)


def may_be_near(pos: Floats) -> bool:
    """Returns whether `in_one_place` may find places that are not one: a coordinate is that small, and not 0."""
    sizes = np.abs(pos)
    small = np.min(sizes, where=sizes > 0, initial=np.inf)
    largest = float(sizes.max(initial=0.0))
    # No place is further from the median than twice this.
    exponent = max(math.frexp(largest)[1] + 1, -340) if math.isfinite(largest) else 340
    return bool(small < math.ldexp(1.0, min(exponent, 340) - 340 + 53))


def in_one_place(pos: Floats, m: Floats, system: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Bodies in the place of another one that has mass, in the same system: pairs, that with mass first.

    Places so near each other that the square of their distance is 0 count as one; the second array says where they are one.
    """
    # The library's least distance: 2⁻³⁴⁰ of the size, and of 2⁻³⁴⁰ for smaller sizes.
    with np.errstate(over="ignore", invalid="ignore"):
        size = float(np.abs(pos - np.median(pos, axis=0)).max()) if len(pos) else 0.0
        exponent = min(max(math.frexp(size)[1], -340), 340) if math.isfinite(size) else 340
        rounded = np.round(pos * math.ldexp(1.0, 340 - exponent)) * math.ldexp(1.0, exponent - 340)
        place = np.where(np.abs(pos) < math.ldexp(1.0, exponent - 340 + 53), rounded, pos)
    order = np.lexsort((-m, *place.T, system))  # the heaviest in each place is the first
    at = np.column_stack([system, place])[order]
    same = np.flatnonzero((at[1:] == at[:-1]).all(axis=1))
    heavy = same[m[order[same]] > 0]
    pairs = np.column_stack([order[heavy], order[heavy + 1]])
    return pairs, (pos[pairs[:, 0]] == pos[pairs[:, 1]]).all(axis=1)
