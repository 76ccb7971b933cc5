"""Forces, potentials and fields in one call."""

from __future__ import annotations

from typing import Any, Sequence, overload

from numpy.typing import ArrayLike, NDArray

from . import _arrays, _foreign, _in_place, _native
from ._arrays import Floats
from ._bodies import Bodies, measured
from ._errors import bad, one_of
from ._foreign import ForeignArray
from ._quantities import plain

ACCURACIES = _native.names()["accuracy"]
#: Types that numpy makes arrays of.
_Host = NDArray[Any] | Sequence[Any]


@overload
def accelerations(
    pos: _Host,
    m: ArrayLike,
    eps: float = ...,
    *,
    G: float = ...,
    accuracy: str | None = ...,
    device: str = ...,
    kernel: str | None = ...,
    check: bool = ...,
) -> Floats: ...
@overload
def accelerations(
    pos: ForeignArray,
    m: ForeignArray | float,
    eps: float = ...,
    *,
    G: float = ...,
    accuracy: str | None = ...,
    device: str = ...,
    kernel: str | None = ...,
    check: bool = ...,
) -> ForeignArray: ...


def accelerations(
    pos: Any,
    m: Any,
    eps: float = 0.0,
    *,
    G: float = 1.0,
    accuracy: str | None = None,
    device: str = "auto",
    kernel: str | None = None,
    check: bool = True,
) -> Any:
    """Accelerations of bodies by each other, by direct summation.

    Parameters
    ----------
    pos : array_like, shape (N, 3)
        Positions; also an array of PyTorch, CuPy, JAX or any library with DLPack's protocol. Those
        of PyTorch and CuPy that are on a GPU are used there, and nothing crosses the bus.
    m : array_like, shape (N,), or float
        Masses. Bodies without mass are accelerated by N_massive × N interactions, but by N² in arrays
        that are used on a GPU: `field_at` at them takes fewer.
    eps : float
        Softening length ≥ 0.
    G : float
        Gravitational constant.
    accuracy : {"double", "single", "fast"}, optional
        Relative error: 1e-13, 1e-6 or 1e-5. Where not given double, but for float32 on a GPU
        single.
    device : str
        ``"auto"`` (the GPU on which `pos` is, else the first, or the CPU where there is none),
        ``"cpu"``, ``"cuda"``, ``"cuda:1"``, ``"emulator"``.
    kernel : str, optional
        A certain kernel, as `allpairs list` names it.
    check : bool
        True to look at arrays that are used on a GPU: NaN, infinity and masses below 0 are
        errors then, units are scaled to those in which no number leaves its range, and the fastest
        kernel for such masses is taken. Without it the call returns before the GPU has begun; where
        coordinates or masses are far from 1, float32 may overflow, and masses in an array, which may
        then be any, take a slower kernel in float32 than one number for all.

    Returns
    -------
    ndarray of float64, shape (N, 3)
        Or an array of the library of `pos`, on its device and of its precision.
    """
    if accuracy is not None and accuracy not in ACCURACIES:
        one_of("accuracy", accuracy, ACCURACIES)
    if kernel is not None:
        kernel = one_of("kernel", kernel, _native.names()["kernel"])
    eps, g = _arrays.number("eps", eps), _arrays.number("G", G)
    if _in_place.usable(pos, device):
        return _in_place.accelerations(pos, m, eps, g, accuracy, kernel, check)
    positions = _arrays.vectors("pos", pos)
    masses = _arrays.scalars("m", m, len(positions))
    found = _native.accelerations(positions, masses, eps, g, accuracy or (None if kernel else "double"), device, kernel)
    return _foreign.returning(pos)(found)


@overload
def potential(pos: _Host, m: ArrayLike, eps: float = ..., *, G: float = ...) -> Floats: ...
@overload
def potential(
    pos: ForeignArray, m: ForeignArray | float, eps: float = ..., *, G: float = ...
) -> ForeignArray: ...


def potential(pos: Any, m: Any, eps: float = 0.0, *, G: float = 1.0) -> Any:
    """Potential at each body of all others, −G Σ m_j/d_ij, in double precision on the CPU.

    Parameters
    ----------
    pos : array_like, shape (N, 3)
    m : array_like, shape (N,), or float
    eps : float
        Softening length ≥ 0.
    G : float

    Returns
    -------
    ndarray of float64, shape (N,)
        Or an array of the library of `pos`, as of `accelerations`.
    """
    positions = _arrays.vectors("pos", pos)
    masses = _arrays.scalars("m", m, len(positions))
    found = _native.potentials(positions, masses, _arrays.number("eps", eps), _arrays.number("G", G))
    return _foreign.returning(pos)(found)


@overload
def field_at(
    points: _Host,
    pos: Bodies,
    *,
    eps: Any = ...,
    G: Any = ...,
    accuracy: str = ...,
    device: str = ...,
) -> tuple[Floats, Floats]: ...
@overload
def field_at(
    points: _Host,
    pos: ArrayLike,
    m: ArrayLike,
    eps: float = ...,
    *,
    G: float | None = ...,
    accuracy: str = ...,
    device: str = ...,
) -> tuple[Floats, Floats]: ...
@overload
def field_at(
    points: ForeignArray,
    pos: Bodies,
    *,
    eps: Any = ...,
    G: Any = ...,
    accuracy: str = ...,
    device: str = ...,
) -> tuple[ForeignArray, ForeignArray]: ...
@overload
def field_at(
    points: ForeignArray,
    pos: ForeignArray,
    m: ForeignArray | float,
    eps: float = ...,
    *,
    G: float | None = ...,
    accuracy: str = ...,
    device: str = ...,
) -> tuple[ForeignArray, ForeignArray]: ...


def field_at(
    points: Any,
    pos: Any,
    m: Any = None,
    eps: Any = 0.0,
    *,
    G: Any = None,
    accuracy: str = "double",
    device: str = "auto",
) -> Any:
    """Accelerations and potentials that bodies cause at points, by direct summation.

    Parameters
    ----------
    points : array_like or quantity, shape (M, 3)
        In the units of the bodies; quantities are converted to them.
    pos : Bodies, or array_like of shape (N, 3)
        The bodies, or their positions.
    m : array_like, shape (N,), or float
        Masses of the bodies, where positions are given.
    eps : float, or for Bodies str or quantity
        Softening length ≥ 0. A body exactly at a point adds −G m/eps to the potential there, and
        nothing where eps is 0.
    G : float, optional
        Gravitational constant. If not given, it follows from the units of the bodies, otherwise 1.
    accuracy : {"double", "single", "fast"}
        On a GPU: error of 1e-13 or 1e-6; fast is as single. The CPU computes in double precision.
    device : str
        ``"auto"`` (the first GPU, or the CPU where there is none), ``"cpu"``, ``"cuda"``,
        ``"cuda:1"``, ``"emulator"``.

    Returns
    -------
    acc : ndarray of float64, shape (M, 3)
    pot : ndarray of float64, shape (M,)
        Or arrays of the library of `points`, as of `accelerations`.
    """
    units = None
    if isinstance(pos, Bodies):
        if m is not None:
            raise bad("m", "is that of the bodies already: leave it out")
        masses, positions, units = pos.m, pos.pos, pos.units
        G = pos.G if G is None else G
    else:
        positions = _arrays.vectors("pos", pos)
        if m is None:
            raise bad("m", "is needed with positions")
        masses = _arrays.scalars("m", m, len(positions))
    g = 1.0 if G is None else measured("G", G, units, "constant of gravity")
    if accuracy not in ACCURACIES:
        one_of("accuracy", accuracy, ACCURACIES)
    acc, pot = _native.field_at(
        _arrays.vectors("points", plain("points", points, "length", units)),
        positions,
        masses,
        measured("eps", eps, units, "length"),
        g,
        accuracy,
        device,
    )
    made = _foreign.returning(points)
    return made(acc), made(pot)
