"""Forces, potentials and fields in one call."""

from __future__ import annotations

from typing import overload

from numpy.typing import ArrayLike

from . import _arrays, _native
from ._arrays import Floats
from ._bodies import Bodies
from ._errors import bad, one_of

ACCURACIES = ("fast", "single", "double")


def accelerations(
    pos: ArrayLike,
    m: ArrayLike,
    eps: float = 0.0,
    *,
    G: float = 1.0,
    accuracy: str = "double",
    device: str = "auto",
    kernel: str | None = None,
) -> Floats:
    """Accelerations of bodies by each other, by direct summation.

    Parameters
    ----------
    pos : array_like, shape (N, 3)
        Positions.
    m : array_like, shape (N,), or float
        Masses.
    eps : float
        Softening length ≥ 0.
    G : float
        Gravitational constant.
    accuracy : {"double", "single", "fast"}
        Relative error: 1e-13, 1e-6 or 1e-5.
    device : str
        ``"auto"`` (the first GPU, or the CPU where there is none), ``"cpu"``, ``"cuda"``,
        ``"cuda:1"``, ``"emulator"``.
    kernel : str, optional
        A certain kernel, as `allpairs list` names it.

    Returns
    -------
    ndarray of float64, shape (N, 3)
    """
    positions = _arrays.vectors("pos", pos)
    masses = _arrays.scalars("m", m, len(positions))
    if accuracy not in ACCURACIES:
        one_of("accuracy", accuracy, ACCURACIES)
    if kernel is not None:
        kernel = one_of("kernel", kernel, _native.names()["kernel"])
    return _native.accelerations(
        positions, masses, _arrays.number("eps", eps), _arrays.number("G", G), accuracy, device, kernel
    )


def potential(pos: ArrayLike, m: ArrayLike, eps: float = 0.0, *, G: float = 1.0) -> Floats:
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
    """
    positions = _arrays.vectors("pos", pos)
    masses = _arrays.scalars("m", m, len(positions))
    return _native.potentials(positions, masses, _arrays.number("eps", eps), _arrays.number("G", G))


@overload
def field_at(points: ArrayLike, pos: Bodies, *, eps: float = ..., G: float | None = ...) -> tuple[Floats, Floats]: ...
@overload
def field_at(
    points: ArrayLike, pos: ArrayLike, m: ArrayLike, eps: float = ..., *, G: float | None = ...
) -> tuple[Floats, Floats]: ...


def field_at(
    points: ArrayLike,
    pos: ArrayLike | Bodies,
    m: ArrayLike | None = None,
    eps: float = 0.0,
    *,
    G: float | None = None,
) -> tuple[Floats, Floats]:
    """Accelerations and potentials that bodies cause at points, in double precision on the CPU.

    Parameters
    ----------
    points : array_like, shape (M, 3)
    pos : Bodies, or array_like of shape (N, 3)
        The bodies, or their positions.
    m : array_like, shape (N,), or float
        Their masses, where positions are given.
    eps : float
        Softening length ≥ 0. A body exactly at a point adds −G m/eps to the potential there, and
        nothing where eps is 0.
    G : float, optional
        Gravitational constant; that of the bodies' units, else 1.

    Returns
    -------
    acc : ndarray of float64, shape (M, 3)
    pot : ndarray of float64, shape (M,)
    """
    if isinstance(pos, Bodies):
        if m is not None:
            raise bad("m", "is that of the bodies already: leave it out")
        masses, positions = pos.m, pos.pos
        G = pos.G if G is None else G
    else:
        positions = _arrays.vectors("pos", pos)
        if m is None:
            raise bad("m", "is needed with positions")
        masses = _arrays.scalars("m", m, len(positions))
    g = 1.0 if G is None else _arrays.number("G", G)
    return _native.field_at(
        _arrays.vectors("points", points), positions, masses, _arrays.number("eps", eps), g
    )
