"""Forces, potentials and fields in one call."""

from __future__ import annotations

import warnings
from typing import Any, Callable, NamedTuple, Sequence, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _arrays, _fields, _foreign, _in_place, _native
from ._arrays import Floats
from ._bodies import Bodies, Units, _units_of, measured, measured_array
from ._errors import bad, flag, one_of
from ._foreign import ForeignArray
from ._quantities import first_quantity, plain, result_like

ACCURACIES = _native.names()["accuracy"]
#: Types that numpy makes arrays of.
_Host = NDArray[Any] | Sequence[Any]
#: Makes a result of numbers and their dimension.
_Made = Callable[[Floats, str], Any]


def _units_and_results(units: str | Units | None, given: dict[str, Any]) -> tuple[Units | None, _Made]:
    """Units of the numbers of these arguments, and a function that makes results.

    Results are quantities where all arguments are and no `units` are named. Otherwise they are arrays of the library of
    the first argument.
    """
    like = first_quantity(list(given.values()))
    if units is not None or like is None:
        return None if units is None else Units.of(units), _as_arrays(next(iter(given.values())))
    known = _units_of({name: value for name, value in given.items() if value is not None}, None)
    return known, lambda numbers, dimension: result_like(like, numbers, dimension)


def _as_arrays(given: Any) -> _Made:
    made = _foreign.returning(given)
    return lambda numbers, _: made(numbers)


def _gravity(G: Any, units: Units | None) -> float:
    """The gravitational constant: if it is not given it follows from the units, otherwise it is 1."""
    if G is None:
        return 1.0 if units is None else units.G
    return measured("G", G, units, "constant of gravity")


def _warn_of_near(eps: float, pos: Floats, m: Floats, points: Floats | None = None) -> None:
    """Warns of bodies, or a point and a body, that are not in one place, and add nothing to each other's forces."""
    if eps != 0.0:
        return
    count = 0 if points is None else len(points)
    if points is not None:
        pos, m = np.concatenate([points, pos]), np.concatenate([np.zeros(count), m])
    if not _arrays.may_be_near(pos):
        return
    pairs, are_exact = _arrays.in_one_place(pos, m, np.zeros(len(m)))
    near = pairs[~are_exact & ((pairs[:, 1] < count) | (count == 0))]
    if not len(near):
        return
    first, second = (int(i) for i in near[0])
    who, lost = f"bodies {first} and {second}", "they add nothing to the forces on each other"
    if points is not None:
        who, lost = f"body {first - count} and point {second}", "the body adds nothing there"
    others = f", and so are {len(near) - 1} others" if len(near) > 1 else ""
    warnings.warn(
        f"{who} are so near each other that the square of their distance is 0{others}: without softening {lost}. "
        "Give an `eps`",
        stacklevel=3,
    )


@overload
def accelerations(
    pos: _Host,
    m: ArrayLike,
    eps: Any = ...,
    *,
    vel: None = ...,
    G: Any = ...,
    accuracy: str | None = ...,
    device: str = ...,
    kernel: str | None = ...,
    check: bool = ...,
    units: str | Units | None = ...,
) -> Floats: ...
@overload
def accelerations(
    pos: _Host,
    m: ArrayLike,
    eps: Any = ...,
    *,
    vel: ArrayLike,
    G: Any = ...,
    accuracy: str | None = ...,
    device: str = ...,
    kernel: str | None = ...,
    check: bool = ...,
    units: str | Units | None = ...,
) -> tuple[Floats, Floats]: ...
@overload
def accelerations(
    pos: ForeignArray,
    m: ForeignArray | float,
    eps: Any = ...,
    *,
    vel: None = ...,
    G: Any = ...,
    accuracy: str | None = ...,
    device: str = ...,
    kernel: str | None = ...,
    check: bool = ...,
    units: str | Units | None = ...,
) -> ForeignArray: ...
@overload
def accelerations(
    pos: ForeignArray,
    m: ForeignArray | float,
    eps: Any = ...,
    *,
    vel: ForeignArray,
    G: Any = ...,
    accuracy: str | None = ...,
    device: str = ...,
    kernel: str | None = ...,
    check: bool = ...,
    units: str | Units | None = ...,
) -> tuple[ForeignArray, ForeignArray]: ...


def accelerations(
    pos: Any,
    m: Any,
    eps: Any = 0.0,
    *,
    vel: Any = None,
    G: Any = None,
    accuracy: str | None = None,
    device: str = "auto",
    kernel: str | None = None,
    check: bool = True,
    units: str | Units | None = None,
) -> Any:
    """Accelerations of bodies by each other, by direct summation.

    Parameters
    ----------
    pos : array_like or quantity, shape (N, 3)
        Positions; also an array of PyTorch, CuPy, JAX or any library with DLPack's protocol. Those
        of PyTorch and CuPy that are on a GPU are used there, and nothing crosses the bus.
    m : array_like or quantity, shape (N,), or float
        Masses. Bodies without mass are accelerated by N_massive × N interactions, but by N² in arrays
        that are used on a GPU: `field_at` at them takes fewer.
    eps : float, str or quantity
        Softening length ≥ 0. Where it is 0, bodies in one place do not attract each other. A warning tells of bodies so
        near each other that the square of their distance is 0. (Arrays that are used on a GPU are not looked at.)
    vel : array_like or quantity, shape (N, 3), optional
        Velocities. With them the jerks, the derivatives of the accelerations in time, are computed too; arrays
        that are on a GPU go through the host then.
    G : float or quantity, optional
        Gravitational constant. If not given, it follows from the units, otherwise 1.
    accuracy : {"double", "single", "fast"}, optional
        Relative error: 1e-13, 1e-6 or 1e-5. Where not given double, but for float32 on a GPU
        single. A warning tells where close bodies have larger errors. (Arrays that are used on a GPU are not looked at.)
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
    units : str or Units, optional
        Units of all numbers, given and returned. Quantities are converted to them. Needed where only some arguments
        are quantities.

    Returns
    -------
    ndarray of float64, shape (N, 3)
        Or an array of the library of `pos`, on its device and of its precision. Of quantities without `units`, a
        quantity of their library. With `vel`, a pair of arrays: accelerations and jerks.
    """
    check = flag("check", check)
    if accuracy is not None and accuracy not in ACCURACIES:
        one_of("accuracy", accuracy, ACCURACIES)
    if kernel is not None:
        kernel = one_of("kernel", kernel, _native.names()["kernel"])
    known, made = _units_and_results(units, {"pos": pos, "m": m, "vel": vel, "eps": eps, "G": G})
    eps, g = measured("eps", eps, known, "length"), _gravity(G, known)
    pos, m = plain("pos", pos, "length", known), plain("m", m, "mass", known)
    if vel is None and _in_place.usable(pos, device):
        return _in_place.accelerations(pos, m, eps, g, accuracy, kernel, check)
    positions = _arrays.vectors("pos", pos)
    masses = _arrays.scalars("m", m, len(positions))
    velocities = None if vel is None else _arrays.vectors("vel", plain("vel", vel, "speed", known), len(positions))
    accuracy = accuracy or (None if kernel else "double")
    acc, jerk, remark = _native.accelerations(positions, masses, eps, g, accuracy, device, kernel, velocities)
    if remark is not None:
        warnings.warn(remark, stacklevel=2)
    _warn_of_near(eps, positions, masses)
    return made(acc, "acceleration") if jerk is None else (made(acc, "acceleration"), made(jerk, "jerk"))


class Pull(NamedTuple):
    """Accelerations, and the derivatives of L = Σ lam·acc."""

    #: Accelerations, shape (N, 3).
    acc: Any
    #: ∂L/∂pos, shape (N, 3).
    pos: Any
    #: ∂L/∂m, shape (N,); None where it was not asked for.
    m: Any
    #: ∂L/∂eps; None where it was not asked for.
    eps: float | None


def pull(
    pos: Any,
    m: Any,
    lam: Any,
    eps: float = 0.0,
    *,
    G: float = 1.0,
    accuracy: str = "double",
    masses: bool = True,
    softening: bool = True,
    device: str = "auto",
) -> Pull:
    """Accelerations and the derivatives of L = Σ lam·acc, in one sweep over the pairs.

    This is the product of `lam` and the Jacobian of the accelerations, which libraries of automatic
    differentiation ask for. `allpairs.jax` and `allpairs.torch` are made of it. It takes plain numbers, no quantities.

    Parameters
    ----------
    pos : array_like, shape (N, 3)
    m : array_like, shape (N,), or float
        Masses; bodies without mass have derivatives too.
    lam : array_like, shape (N, 3)
        Cotangents of the accelerations: ∂L/∂acc.
    eps : float
        Softening length ≥ 0. Where it is 0, no two bodies may be at the same place.
    G : float
    accuracy : {"double", "single", "fast"}
        Relative error of pairs: 1e-13 or 1e-6; fast is as single.
    masses, softening : bool
        False to leave out the derivative by `m`, or by `eps`, and the time that it takes.
    device : str
        As of `field_at`: a GPU, the CPU or the emulator.

    Returns
    -------
    Pull
        Named tuple of `acc`, `pos`, `m` and `eps`, in arrays of the library of `pos`.
    """
    accuracy = one_of("accuracy", accuracy, ACCURACIES)
    positions = _arrays.vectors("pos", pos)
    n = len(positions)
    acc, of_pos, of_m, of_eps = _native.pull(
        positions,
        _arrays.scalars("m", m, n),
        _arrays.vectors("lam", lam, n),
        _arrays.number("eps", eps),
        _arrays.number("G", G),
        accuracy,
        flag("masses", masses),
        flag("softening", softening),
        device,
    )
    made = _foreign.returning(pos)
    return Pull(made(acc), made(of_pos), None if of_m is None else made(of_m), of_eps)


class TrajectoryPull(NamedTuple):
    """Derivatives of a function of a trajectory's last state by what it begins with."""

    #: By positions, shape (N, 3).
    pos: Any
    #: By velocities, shape (N, 3).
    vel: Any
    #: By masses, shape (N,).
    m: Any
    #: By the softening length.
    eps: float
    #: By the length of a step.
    dt: float
    #: The largest derivative on the way, in units of the largest cotangent. Rounding errors grow as it does.
    growth: float


def pull_leapfrog(
    pos: Any,
    vel: Any,
    m: Any,
    dt: float,
    steps: int,
    lam_pos: Any,
    lam_vel: Any,
    eps: float = 0.0,
    *,
    G: float = 1.0,
    scheme: str = "leapfrog",
    accuracy: str = "double",
    device: str = "auto",
) -> TrajectoryPull:
    """Derivatives of a function of the state after some steps, by positions, velocities, masses, `eps` and `dt`.

    The steps are taken there and back, in the memory of one state. Arguments are plain numbers, no quantities.

    Parameters
    ----------
    pos, vel : array_like, shape (N, 3)
        The state at the beginning.
    m : array_like, shape (N,), or float
    dt : float
        Length of a step.
    steps : int
    lam_pos, lam_vel : array_like, shape (N, 3)
        Derivatives of the function by the last positions and velocities.
    eps : float
        Softening length ≥ 0.
    G : float
    scheme : {"leapfrog", "leapfrog-dkd", "yoshida4", "yoshida6"}
        Schemes that can be taken back. Hermite's schemes and block time steps cannot.
    accuracy : {"double", "single", "fast"}
        Precision of pairs; the state is float64.
    device : str
        As of `pull`. A GPU keeps the state from the first step to the last and back.

    Returns
    -------
    TrajectoryPull
        Named tuple of `pos`, `vel`, `m`, `eps`, `dt` and `growth`.
    """
    accuracy = one_of("accuracy", accuracy, ACCURACIES)
    scheme = one_of("scheme", scheme, _native.names()["integrator"])
    positions = _arrays.vectors("pos", pos)
    n = len(positions)
    of_pos, of_vel, of_m, of_eps, of_dt, growth = _native.trajectory_pull(
        positions,
        _arrays.vectors("vel", vel, n),
        _arrays.scalars("m", m, n),
        _arrays.number("dt", dt),
        _arrays.count("steps", steps),
        _arrays.vectors("lam_pos", lam_pos, n),
        _arrays.vectors("lam_vel", lam_vel, n),
        _arrays.number("eps", eps),
        _arrays.number("G", G),
        scheme,
        accuracy,
        device,
    )
    made = _foreign.returning(pos)
    return TrajectoryPull(made(of_pos), made(of_vel), made(of_m), of_eps, of_dt, growth)


@overload
def potential(
    pos: _Host, m: ArrayLike, eps: Any = ..., *, G: Any = ..., units: str | Units | None = ...
) -> Floats: ...
@overload
def potential(
    pos: ForeignArray, m: ForeignArray | float, eps: Any = ..., *, G: Any = ..., units: str | Units | None = ...
) -> ForeignArray: ...


def potential(pos: Any, m: Any, eps: Any = 0.0, *, G: Any = None, units: str | Units | None = None) -> Any:
    """Potential at each body of all others, −G Σ m_j/d_ij, in double precision on the CPU.

    Parameters
    ----------
    pos : array_like or quantity, shape (N, 3)
    m : array_like or quantity, shape (N,), or float
    eps : float, str or quantity
        Softening length ≥ 0. Where it is 0, bodies in one place add nothing to the potential of each other.
    G, units
        As of `accelerations`.

    Returns
    -------
    ndarray of float64, shape (N,)
        Or an array of the library of `pos`, or a quantity, as of `accelerations`.
    """
    known, made = _units_and_results(units, {"pos": pos, "m": m, "eps": eps, "G": G})
    positions = _arrays.vectors("pos", plain("pos", pos, "length", known))
    masses = _arrays.scalars("m", plain("m", m, "mass", known), len(positions))
    eps = measured("eps", eps, known, "length")
    found = _native.potentials(positions, masses, eps, _gravity(G, known))
    _warn_of_near(eps, positions, masses)
    return made(found, "potential")


@overload
def field_at(
    points: _Host,
    pos: Bodies,
    *,
    eps: Any = ...,
    G: Any = ...,
    accuracy: str = ...,
    device: str = ...,
    field: Any = ...,
    time: Any = ...,
    units: str | Units | None = ...,
) -> tuple[Floats, Floats]: ...
@overload
def field_at(
    points: _Host,
    *,
    G: Any = ...,
    field: Any,
    time: Any = ...,
    units: str | Units | None = ...,
) -> tuple[Floats, Floats]: ...
@overload
def field_at(
    points: _Host,
    pos: ArrayLike,
    m: ArrayLike,
    eps: Any = ...,
    *,
    G: Any = ...,
    accuracy: str = ...,
    device: str = ...,
    field: Any = ...,
    time: Any = ...,
    units: str | Units | None = ...,
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
    field: Any = ...,
    time: Any = ...,
    units: str | Units | None = ...,
) -> tuple[ForeignArray, ForeignArray]: ...
@overload
def field_at(
    points: ForeignArray,
    *,
    G: Any = ...,
    field: Any,
    time: Any = ...,
    units: str | Units | None = ...,
) -> tuple[ForeignArray, ForeignArray]: ...
@overload
def field_at(
    points: ForeignArray,
    pos: ForeignArray,
    m: ForeignArray | float,
    eps: Any = ...,
    *,
    G: Any = ...,
    accuracy: str = ...,
    device: str = ...,
    field: Any = ...,
    time: Any = ...,
    units: str | Units | None = ...,
) -> tuple[ForeignArray, ForeignArray]: ...


def field_at(
    points: Any,
    pos: Any = None,
    m: Any = None,
    eps: Any = 0.0,
    *,
    G: Any = None,
    accuracy: str = "double",
    device: str = "auto",
    field: Any = None,
    time: Any = None,
    units: str | Units | None = None,
) -> Any:
    """Accelerations and potentials at points, of bodies by direct summation and of external fields.

    Parameters
    ----------
    points : array_like or quantity, shape (M, 3)
        In the units of the `Bodies`; quantities are converted to them.
    pos : Bodies, or array_like of shape (N, 3), optional
        The bodies, or their positions. May be left out where there is a `field`.
    m : array_like, shape (N,), or float
        Masses of the bodies, where positions are given.
    eps : float, str or quantity
        Softening length ≥ 0. A body exactly at a point adds −G m/eps to the potential there, and
        nothing where eps is 0.
    G : float or quantity, optional
        Gravitational constant. If not given, it follows from the units, otherwise 1.
    accuracy : {"double", "single", "fast"}
        On a GPU: error of 1e-13 or 1e-6; fast is as single. The CPU computes in double precision.
    device : str
        ``"auto"`` (the first GPU, or the CPU where there is none), ``"cpu"``, ``"cuda"``,
        ``"cuda:1"``, ``"emulator"``.
    field : str, callable or object, or a list of them, optional
        External fields to add, as of `Simulation`: ``"mwpotential2014"``. They are computed on the CPU in double
        precision, potentials in half a millisecond for each point. Fields that depend on velocities are refused.
        The potential of an object without a method ``potential`` is nan.
    time : float, str or quantity, optional
        Time, for fields that move. The time of the bodies where not given, or else 0.
    units : str or Units, optional
        Units of all numbers, where there are no `Bodies`, which have their own. As of `accelerations`.

    Returns
    -------
    acc : ndarray of float64, shape (M, 3)
    pot : ndarray of float64, shape (M,)
        Or arrays of the library of `points`, as of `accelerations`. Of quantities without `Bodies` and `units`,
        quantities.

    Raises
    ------
    ArgumentError
        A field that does not exist, or a point in its singular centre; neither bodies nor a field.
    """
    start = 0.0
    if isinstance(pos, Bodies):
        if m is not None:
            raise bad("m", "is that of the bodies already: leave it out")
        if units is not None:
            raise bad("units", "are known from the bodies already: leave them out")
        masses, positions, known, start = pos.m, pos.pos, pos.units, pos.time
        made = _as_arrays(points)
    elif pos is None and field is None:
        raise bad("pos", "is needed, or a `field`")
    elif pos is None and m is not None:
        raise bad("pos", "is needed with `m`")
    elif pos is not None and m is None:
        raise bad("m", "is needed with positions")
    else:
        given = {"points": points, "pos": pos, "m": m, "eps": eps, "G": G, "time": time}
        known, made = _units_and_results(units, given)
        masses, positions = np.zeros(0), np.zeros((0, 3))
        if pos is not None:
            positions = _arrays.vectors("pos", plain("pos", pos, "length", known))
            masses = _arrays.scalars("m", plain("m", m, "mass", known), len(positions))
    g = _gravity(G, known)
    if accuracy not in ACCURACIES:
        one_of("accuracy", accuracy, ACCURACIES)
    at = _arrays.vectors("points", plain("points", points, "length", known))
    eps = measured("eps", eps, known, "length")
    acc, pot = _native.field_at(at, positions, masses, eps, g, accuracy, device)
    if pos is not None:
        _warn_of_near(eps, positions, masses, at)
    if field is not None:
        start = start if time is None else measured("time", time, known, "time")
        more, higher = _fields.at_points(at, _fields.fields(field, known), known, g, start)
        acc, pot = acc + more, pot + higher
    return made(acc, "acceleration"), made(pot, "potential")


def circular_velocity(
    R: Any,
    bodies: Bodies | None = None,
    *,
    field: Any = None,
    centre: Any = None,
    eps: Any = 0.0,
    G: Any = None,
    time: Any = None,
    units: str | Units | None = None,
    directions: int = 32,
    device: str = "auto",
) -> Floats:
    """Speeds of circular orbits in the plane z = 0, √(R ⟨−a_R⟩): a rotation curve.

    The acceleration inward is the mean over a ring of the radius R about the `centre`, parallel to the plane xy.

    Parameters
    ----------
    R : float, str, quantity or array_like
        Radii, in any shape, in the units of the bodies.
    bodies : Bodies, optional
        Bodies that attract.
    field : str, callable or object, or a list of them, optional
        External fields, as of `Simulation`: ``"mwpotential2014"``.
    centre : array_like or quantity, shape (3,), optional
        Centre of the rings; the origin where not given.
    eps : float, str or quantity
        Softening length ≥ 0 of the bodies.
    G, time, units
        As of `field_at`.
    directions : int
        Points on each ring.
    device : str
        As of `field_at`, for bodies.

    Returns
    -------
    ndarray of float64, in the shape of `R`
        Length over time in the units of the bodies; nan where the mean acceleration is outward. Of quantities without
        `bodies` and `units`, a quantity.

    Raises
    ------
    ArgumentError
        Neither bodies nor a field, or radii that are not > 0.

    Notes
    -----
    Binney and Tremaine, Galactic Dynamics (2008), equation 2.29, with the force averaged over the azimuth.
    """
    if bodies is not None and not isinstance(bodies, Bodies):
        raise bad("bodies", f"must be Bodies, not {type(bodies).__name__}")
    if bodies is None and field is None:
        raise bad("field", "is needed, or `bodies`")
    if bodies is not None and units is not None:
        raise bad("units", "are known from the bodies already: leave them out")
    R = _foreign.on_host(R)
    if bodies is not None:
        known, made = bodies.units, _as_arrays(R)
    else:
        known, made = _units_and_results(units, {"R": R, "centre": centre, "G": G, "time": time})
    numbers = plain("R", R, "length", known)
    shape = np.shape(numbers)
    radii = measured_array("R", numbers, known, "length").reshape(-1)
    if not (radii > 0).all():
        raise bad("R", "must be > 0")
    middle = np.zeros(3) if centre is None else measured_array("centre", centre, known, "length")
    if middle.shape != (3,):
        raise bad("centre", f"must be three numbers, not an array of the shape {middle.shape}")
    angles = 2.0 * np.pi * np.arange(_arrays.count("directions", directions, 1)) / directions
    outward = np.stack([np.cos(angles), np.sin(angles), np.zeros(len(angles))], axis=1)
    points = middle + radii.reshape(-1, 1, 1) * outward
    acc = np.zeros((points.size // 3, 3))
    at = points.reshape(-1, 3)
    if bodies is not None:
        acc = acc + field_at(at, bodies, eps=eps, G=G, device=device)[0]
    if field is not None:
        given, start = _fields.fields(field, known), 0.0 if bodies is None else bodies.time
        start = start if time is None else measured("time", time, known, "time")
        acc = acc + _fields.at_points(at, given, known, _gravity(G, known), start, potentials=False)[0]
    inward = -(acc.reshape(points.shape) * outward).sum(axis=2).mean(axis=1)
    with np.errstate(invalid="ignore"):
        speeds: Floats = made(np.asarray(np.sqrt(radii * inward)).reshape(shape), "speed")
    return speeds
