"""Kepler's orbits: bodies from elements, and elements of bodies."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _arrays
from ._arrays import Floats
from ._bodies import Bodies, Kind, Units, _units_of, in_units_of, measured_array
from ._errors import ArgumentError, bad
from ._quantities import in_radians

#: Units of orbits that are made of quantities alone.
_UNITS = "au,Msun,yr"
#: Elements that are lengths and times, with the units in which `Elements.quantity` gives them.
_LENGTHS = {"a": "au", "q": "au"}
_TIMES = {"period": "yr", "since_pericentre": "yr"}


@dataclass(frozen=True)
class Elements:
    """Osculating elements of Kepler orbits, each an array of the shape (N,).

    Lengths and times are in the units of the bodies, angles in radians. In the plane of reference, where
    `inc` is 0 or π, `Omega` is 0. On a circle `f` and `M` are counted from the node, and `omega` is 0.
    Rows are nan where there is no orbit: of a body about itself, and of one that moves straight to or from
    the other one, which has no plane.

    Attributes
    ----------
    a : ndarray
        Semi-major axis: negative on a hyperbola, inf on a parabola.
    e : ndarray
        Eccentricity.
    q : ndarray
        Distance at pericentre. `a` and `q` together keep all digits where `e` is close to 1.
    inc, Omega, omega : ndarray
        Inclination from 0 to π, longitude of the ascending node, and argument of pericentre from 0 to 2π.
    f : ndarray
        True anomaly from −π to π, negative before pericentre.
    M : ndarray
        Mean anomaly √(μ/|a|³) t since pericentre: from −π to π on an ellipse, nan on a parabola.
    period : ndarray
        Inf where the orbit is not bound.
    since_pericentre : ndarray
        Time since pericentre, on an ellipse the nearest; negative before it.
    units : Units or None
        Units of lengths and times.
    """

    a: Floats
    e: Floats
    q: Floats
    inc: Floats
    Omega: Floats
    omega: Floats
    f: Floats
    M: Floats
    period: Floats
    since_pericentre: Floats
    units: Units | None = None

    def __len__(self) -> int:
        return len(self.a)

    def __getitem__(self, index: int | slice | NDArray[Any]) -> Elements:
        """Elements of some of the bodies: by an index, a slice, a mask or a list of indices."""
        rows = _arrays.rows(index, len(self))
        return replace(self, **{name: getattr(self, name)[rows] for name in _ELEMENTS})

    def quantity(self, name: str) -> Any:
        """An element as an astropy quantity: in au, years or radians; `e` has no unit."""
        from astropy import units as u

        if name not in _ELEMENTS:  # `Omega` and `omega` are two elements, so capitals count
            raise bad("name", f"must be one of {', '.join(_ELEMENTS)}; got {name!r}")
        value = getattr(self, name)
        if name == "e":
            return value * u.dimensionless_unscaled
        if name not in _LENGTHS and name not in _TIMES:
            return value * u.rad
        if self.units is None:
            raise ArgumentError("these elements have no units: make the bodies with `units`")
        if name in _LENGTHS:
            return (value * self.units.length * u.m).to(_LENGTHS[name])
        return (value * self.units.time * u.s).to(_TIMES[name])


_ELEMENTS = tuple(field.name for field in fields(Elements) if field.name != "units")


def orbit(
    m: Any,
    *,
    a: Any = None,
    e: Any = None,
    q: Any = None,
    period: Any = None,
    inc: Any = 0.0,
    Omega: Any = 0.0,
    omega: Any = 0.0,
    M: Any = None,
    f: Any = None,
    since_pericentre: Any = None,
    about: Bodies | None = None,
    units: str | Units | None = None,
) -> Bodies:
    """Bodies on Kepler orbits: a pair, or bodies about others.

    Without `about`, a pair: elements are of the second body about the first, and the centre of mass rests at
    the origin. With `about`, the new bodies are put behind those, each on an orbit about their centre of mass.
    Elements may then be arrays, of one number for each new body: a million asteroids are one call. To
    put planets about the centre of mass of all inner bodies (Jacobi's coordinates), add them one by one.

    Parameters
    ----------
    m : array_like, str or quantity
        Two masses of a pair. With `about`, masses of the new bodies; one number stands for all.
    a, e, q, period : float, str, quantity or array_like, optional
        Size and shape: semi-major axis, eccentricity, distance at pericentre, and period. Two of them, or `a`
        or `period` alone for a circle. A hyperbola has e > 1 and a < 0, and a parabola has e = 1 and needs `q`.
        Near e = 1, `a` with `q` keeps all digits.
    inc, Omega, omega : float, str, quantity or array_like
        Inclination, longitude of the ascending node, and argument of pericentre. Angles are in
        radians, or have a unit: ``"30 deg"``.
    M, f, since_pericentre : float, str, quantity or array_like, optional
        Place on the orbit: mean anomaly, true anomaly, or time since pericentre. One of them at most; at
        pericentre where none is given.
    about : Bodies, optional
        The bodies in the middle, such as a star. Their units hold.
    units : str or Units, optional
        Units of a pair, such as ``"au,Msun"``. If not given, and all arguments have units, they are
        au, solar masses and years.

    Returns
    -------
    Bodies
        The pair, or `about` and behind them the new bodies, with the next ids after the largest.

    Raises
    ------
    ArgumentError
        Elements that do not go together or that no orbit has; the error names one of them.

    Notes
    -----
    The relative motion obeys d²r/dt² = −μ r/r³ with μ = G (M + m), where M is the mass of `about` or of the
    first body. Formulas are in Murray and Dermott, Solar System Dynamics (1999), chapter 2. Kepler's equation is
    solved as (1 − e) E + e (E − sin E) = M. A series for E − sin E keeps all digits near a parabola.
    """
    given = {"m": m, "a": a, "q": q, "period": period, "since_pericentre": since_pericentre}
    if about is None:
        known = _units_of({name: value for name, value in given.items() if value is not None}, units, _UNITS)
        known_g = 1.0 if known is None else known.G
        masses = measured_array("m", m, known, "mass")
        if masses.shape != (2,):
            raise bad("m", f"must be the two masses of a pair, or have `about` with it; it has the shape {masses.shape}")
        middle, around = masses[:1].sum(), masses[1:]
    else:
        if not isinstance(about, Bodies):
            raise bad("about", f"must be Bodies, not {type(about).__name__}")
        if not len(about):
            raise bad("about", "has no bodies")
        if units is not None and (about.units is None or not about.units.are_those_of(Units.of(units))):
            raise bad("units", f"must be the units of `about`, {about.units}, or left out")
        known, known_g = about.units, about.G
        middle, around = about.m.sum(), np.atleast_1d(measured_array("m", m, known, "mass"))
    if around.size and around.min() < 0 or middle < 0:
        raise bad("m", "must be ≥ 0")

    def lengths(argument: str, value: Any) -> Floats | None:
        return None if value is None else measured_array(argument, value, known, "length", finite=argument != "a")

    size = lengths("a", a)
    pericentre = lengths("q", q)
    shape = None if e is None else _finite("e", _arrays.floats("e", e))
    duration = None if period is None else measured_array("period", period, known, "time")
    angles = {"inc": _angles("inc", inc), "Omega": _angles("Omega", Omega), "omega": _angles("omega", omega)}
    places = {
        "M": None if M is None else _angles("M", M),
        "f": None if f is None else _angles("f", f),
        "since_pericentre": None
        if since_pericentre is None
        else measured_array("since_pericentre", since_pericentre, known, "time"),
    }
    stated = [name for name, value in places.items() if value is not None]
    if len(stated) > 1:
        raise bad(stated[1], f"and `{stated[0]}` both say where the body is: give one of them")
    place = stated[0] if stated else "M"
    at = places[place] if stated else np.zeros(())
    named = {"m": around, "a": size, "q": pericentre, "e": shape, "period": duration, place: at, **angles}
    n = _common_length({name: value for name, value in named.items() if value is not None}, about is None)

    def each(value: Floats | None) -> Floats | None:
        return None if value is None else np.broadcast_to(value, (n,))

    around = np.broadcast_to(around, (n,))
    mu = known_g * (middle + around)
    if n and mu.min() <= 0:
        raise bad("m", "is 0 in the middle too: one of the bodies needs a mass")
    pericentres, less = _conic(mu, each(size), each(shape), each(pericentre), each(duration))
    anomaly, tangent = _anomaly(mu, pericentres, less, place, np.broadcast_to(np.asarray(at), (n,)))
    in_plane = _in_plane(mu, pericentres, less, anomaly, tangent)
    node, across = _axes(*(np.broadcast_to(value, (n,)) for value in angles.values()))
    r = in_plane[0][:, None] * node + in_plane[1][:, None] * across
    v = in_plane[2][:, None] * node + in_plane[3][:, None] * across
    if about is None:
        shares = np.array([-masses[1], masses[0]]) / masses.sum()
        return Bodies(masses, shares[:, None] * r + 0.0, shares[:, None] * v + 0.0, units=known)  # no −0
    position, velocity = _centre(about)
    largest = int(about.id.max())
    if largest + n >= 1 << 64:
        raise bad("about", f"has the id {largest}, and there are not enough larger ones")
    new = Bodies._of(
        (
            np.concatenate([about.pos, position + r]),
            np.concatenate([about.vel, velocity + v]),
            np.concatenate([about.m, around]),
            np.concatenate([about.id, np.arange(1, n + 1, dtype=np.uint64) + np.uint64(largest)]),
            np.concatenate([about.kind, np.full(n, Kind.STAR, dtype=np.uint8)]),
        ),
        about.time,
        None,
    )
    new._units = about.units
    if about._group is not None:
        new._group = np.concatenate([about._group, np.full(n, about._group[0])])
    return new


def elements(bodies: Bodies, about: Bodies | None = None) -> Elements:
    """Elements of orbits of bodies about others: see `Bodies.elements`."""
    if about is None:
        if not len(bodies):
            raise bad("about", "is needed: there are no bodies, of which the heaviest would be taken")
        about = bodies[int(bodies.m.argmax())]
    elif not isinstance(about, Bodies):
        raise bad("about", f"must be Bodies, not {type(about).__name__}")
    elif not len(about):
        raise bad("about", "has no bodies")
    about = in_units_of("about", about, bodies.units)
    position, velocity = _centre(about)
    mu = bodies.G * (about.m.sum() + bodies.m)
    if len(mu) and mu.min() <= 0:
        raise bad("about", "has no mass, and neither has a body about it")
    with np.errstate(invalid="ignore", divide="ignore"):
        return _elements(bodies.pos - position, bodies.vel - velocity, mu, bodies.units)


def _elements(r: Floats, v: Floats, mu: Floats, units: Units | None) -> Elements:
    distance = np.sqrt((r * r).sum(axis=1))
    spin = np.cross(r, v)
    # Where r and v are almost parallel, the product is rounded; the plane holds the body at least.
    spin -= (spin * r).sum(axis=1)[:, None] / distance[:, None] ** 2 * r
    momentum = np.sqrt((spin * spin).sum(axis=1))
    # A body in the middle, or one that falls straight, has no orbit with a plane.
    momentum[momentum == 0] = np.nan
    inward = (r * v).sum(axis=1)
    p = momentum**2 / mu
    e_cos, e_sin = p / distance - 1.0, momentum * inward / (mu * distance)
    e = np.hypot(e_cos, e_sin)
    # 1/a, which is exact wherever the energy is; 1 − e follows from it, also close to a parabola.
    curvature = 2.0 / distance - (v * v).sum(axis=1) / mu
    less = p * curvature / (1.0 + e)
    eccentric = e > 0.5
    e = np.where(eccentric, 1.0 - less, e)
    q = p / (1.0 + e)
    parabolic = curvature == 0
    a = np.where(parabolic, np.inf, 1.0 / np.where(parabolic, 1.0, curvature))
    bound, open_ = curvature > 0, curvature < 0
    q = np.where(bound, np.minimum(q, a), q)  # on a circle they differ by rounding
    width = np.where(parabolic, 1.0, np.abs(a))

    inc = np.arctan2(np.hypot(spin[:, 0], spin[:, 1]), spin[:, 2])
    Omega = np.where((spin[:, 0] == 0) & (spin[:, 1] == 0), 0.0, np.arctan2(spin[:, 0], -spin[:, 1]))
    node = np.stack([np.cos(Omega), np.sin(Omega), np.zeros(len(Omega))], axis=1)
    across = np.cross(spin / momentum[:, None], node)
    latitude = np.arctan2((r * across).sum(axis=1), (r * node).sum(axis=1))

    # One anomaly comes from the state and the other ones from it: where the pericentre is hardly defined, all
    # have one error, which `omega` makes good.
    f = np.where(e == 0, latitude, np.arctan2(e_sin, e_cos))
    ratio = np.sqrt(np.abs(less) / (1.0 + e))
    E = 2.0 * np.arctan2(ratio * np.sin(0.5 * f), np.cos(0.5 * f))
    sin_E, cos_E = inward / np.sqrt(mu * width), 1.0 - distance / width
    E = np.where(bound & eccentric, np.arctan2(sin_E, cos_E), E)
    F = np.arcsinh(np.where(open_, inward / (e * np.sqrt(mu * width)), 0.0))
    from_E = 2.0 * np.arctan2(np.sin(0.5 * E), ratio * np.cos(0.5 * E))
    from_F = 2.0 * np.arctan2(np.tanh(0.5 * F), ratio)
    s = inward / np.sqrt(2.0 * mu * q)
    f = np.select([bound & eccentric, open_, parabolic], [from_E, from_F, 2.0 * np.arctan(s)], f)

    motion = np.sqrt(mu / width**3)
    M = np.select(
        [bound, open_],
        [less * E + e * _excess(E), _growth(F, e, -less)],
        np.nan,
    )
    of_parabola = np.sqrt(2.0 * q**3 / mu) * (s + s**3 / 3.0)
    none = np.isnan(momentum)
    return Elements(
        a=np.where(none, np.nan, a),
        e=e,
        q=q,
        inc=np.where(none, np.nan, inc),
        Omega=np.where(none, np.nan, Omega % (2.0 * math.pi)),
        omega=np.where(e == 0, 0.0, (latitude - f) % (2.0 * math.pi)),
        f=f,
        M=M,
        period=np.where(none, np.nan, np.where(bound, 2.0 * math.pi / motion, np.inf)),
        since_pericentre=np.where(parabolic, of_parabola, M / motion),
        units=units,
    )


def _centre(bodies: Bodies) -> tuple[Floats, Floats]:
    """Position and velocity of the centre of mass; of bodies without mass, their mean."""
    total = float(bodies.m.sum())
    if len(bodies) == 1:
        return bodies.pos[0], bodies.vel[0]
    shares = bodies.m / total if total > 0 else np.full(len(bodies), 1.0 / len(bodies))
    return np.asarray(shares @ bodies.pos), np.asarray(shares @ bodies.vel)


def _angles(argument: str, value: Any) -> Floats:
    return _finite(argument, _arrays.floats(argument, in_radians(argument, value)))


def _finite(argument: str, array: Floats) -> Floats:
    if not np.isfinite(array).all():
        raise bad(argument, "must be finite")
    return array


def _common_length(named: dict[str, Floats], is_pair: bool) -> int:
    """Number of orbits that arrays of elements are for."""
    n, first = 1, ""
    for name, value in named.items():
        if value.ndim > 1 or is_pair and value.size != 1:
            right = "one number for a pair" if is_pair else "a number, or of the shape (K,)"
            raise bad(name, f"must be {right}; it has the shape {value.shape}")
        if value.ndim == 1 and not is_pair:
            if first and len(value) != n and 1 not in (n, len(value)):
                raise bad(name, f"is for {len(value)} bodies, and `{first}` is for {n}")
            if not first or n == 1:
                n, first = len(value), name
    return n


def _conic(
    mu: Floats, a: Floats | None, e: Floats | None, q: Floats | None, period: Floats | None
) -> tuple[Floats, Floats]:
    """Distance at pericentre, and 1 − e, of what was given of size and shape."""
    if period is not None:
        if a is not None:
            raise bad("period", "and `a` both are the size: give one of them")
        if (period <= 0).any():
            raise bad("period", "must be > 0")
        if e is not None and (e >= 1).any():
            raise bad("period", "is of bound orbits, for which `e` must be < 1")
        a = np.cbrt(mu * (period / (2.0 * math.pi)) ** 2)
    if e is not None and (e < 0).any():
        raise bad("e", f"must be ≥ 0, got {e.min()}")
    if q is not None and (~(q > 0)).any():
        raise bad("q", "must be > 0")
    size = "period" if period is not None else "a"
    if a is None:
        if q is None:
            raise bad("a", "is needed, or another size of the orbit: `q` or `period`")
        if e is None:
            raise bad("e", "is needed with `q`, or `a`")
        return q, 1.0 - e
    if (a == 0).any() or np.isnan(a).any():
        raise bad(size, "must be a number other than 0")
    if q is not None:
        if e is not None:
            raise bad("e", f"follows from `{size}` and `q`: leave one of them out")
        less = q / a
        if (less > 1).any():
            raise bad("q", f"must be at most the semi-major axis, {float(a[less > 1][0])!r}")
        return q, less
    if e is None:
        e = np.zeros_like(a)
    for wrong, text in (
        (e == 1, "has no finite value on a parabola (`e` = 1): give `q` instead"),
        ((e < 1) & (a < 0), "must be > 0 where `e` < 1"),
        ((e > 1) & (a > 0), "must be < 0 where `e` > 1, on a hyperbola"),
        (np.isinf(a), "must be finite, or have `q` with it"),
    ):
        if wrong.any():
            raise bad(size, f"{text}; got {float(a[wrong][0])!r} and `e` = {float(e[wrong][0])!r}")
    return a * (1.0 - e), 1.0 - e


def _anomaly(
    mu: Floats, q: Floats, less: Floats, place: str, at: Floats
) -> tuple[Floats, Floats]:
    """Eccentric anomalies (hyperbolic ones where 1 − e < 0), and tan(f/2) on parabolas."""
    e = 1.0 - less
    parabolic = less == 0
    found, tangent = np.zeros(len(q)), np.zeros(len(q))
    if not np.isfinite(at).all():
        raise bad(place, "must be finite")
    if place == "f":
        turned = np.cos(at)
        beyond = (less <= 0) & (1.0 + e * turned <= 0)
        if beyond.any():
            raise bad("f", f"is {float(at[beyond][0])!r}, which is beyond the asymptotes of an orbit with `e` ≥ 1")
        ratio = np.sqrt(np.abs(less) / (1.0 + e))
        half = 0.5 * at
        found = 2.0 * np.arctan2(ratio * np.sin(half), np.cos(half))
        open_ = less < 0
        found[open_] = 2.0 * np.arctanh(ratio[open_] * np.tan(half[open_]))
        tangent[parabolic] = np.tan(half[parabolic])
        return found, tangent
    if place == "M":
        if parabolic.any() and (at[parabolic] != 0).any():
            raise bad("M", "is not defined on a parabola: give `f` or `since_pericentre`")
        M = at
    else:
        M = at * np.sqrt(mu * (np.abs(less) / q) ** 3)
        # Barker's equation, s + s³/3 = t √(μ/2q³), by the formula of Cardano.
        W = 1.5 * (at * np.sqrt(mu / (2.0 * q**3)))[parabolic]
        root = np.cbrt(np.abs(W) + np.sqrt(W * W + 1.0))
        # root − 1/root = (root³ − root⁻³)/(root² + 1 + root⁻²), which loses no digits where W is small.
        tangent[parabolic] = 2.0 * W / (root**2 + 1.0 + root**-2)
    bound, open_ = less > 0, less < 0
    found[bound] = _solve_ellipse(M[bound], e[bound], less[bound])
    found[open_] = _solve_hyperbola(M[open_], e[open_], -less[open_])
    return found, tangent


def _excess(E: Floats) -> Floats:
    """E − sin E, to the last digits also where E is small."""
    square = E * E
    series = np.zeros_like(E)
    for k in range(10, 0, -1):  # E³/3! − E⁵/5! + …
        series = (E - series) * square / ((2 * k) * (2 * k + 1))
    small = np.abs(E) < 1.0
    return np.where(small, series, E - np.sin(E))


def _growth(F: Floats, e: Floats, more: Floats) -> Floats:
    """e sinh F − F, as (e − 1) F + e (sinh F − F)."""
    square = F * F
    series = np.zeros_like(F)
    for k in range(10, 0, -1):  # F³/3! + F⁵/5! + …
        series = (F + series) * square / ((2 * k) * (2 * k + 1))
    small = np.abs(F) < 1.0
    with np.errstate(over="ignore"):
        return more * F + e * np.where(small, series, np.sinh(F) - F)


def _solve_ellipse(M: Floats, e: Floats, less: Floats) -> Floats:
    """E of (1 − e) E + e (E − sin E) = M, by Newton from above, where the function is convex."""
    M = M - 2.0 * math.pi * np.round(M / (2.0 * math.pi))
    left = np.abs(M)
    with np.errstate(divide="ignore"):
        E = np.minimum(math.pi, np.minimum(left / less, np.cbrt(12.0 * left / np.maximum(e, 1e-300))))
    for _ in range(100):
        slope = less + 2.0 * e * np.sin(0.5 * E) ** 2
        better = E - (less * E + e * _excess(E) - left) / slope
        better = np.clip(better, 0.0, math.pi)
        done = np.abs(better - E) <= 4e-16 * E
        E = better
        if done.all():
            break
    return np.copysign(E, M)


def _solve_hyperbola(M: Floats, e: Floats, more: Floats) -> Floats:
    """F of e sinh F − F = M, by Newton from above, where the function is convex."""
    left = np.abs(M)
    F = np.minimum(left / more, np.cbrt(6.0 * left / e))
    F = np.minimum(F, np.arcsinh((left + F) / e))
    for _ in range(100):
        slope = more + 2.0 * e * np.sinh(0.5 * F) ** 2
        better = np.maximum(F - (_growth(F, e, more) - left) / slope, 0.0)
        done = np.abs(better - F) <= 4e-16 * F
        F = better
        if done.all():
            break
    return np.copysign(F, M)


def _in_plane(
    mu: Floats, q: Floats, less: Floats, anomaly: Floats, tangent: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """Position and velocity in the plane of the orbit, with the pericentre on the first axis."""
    e = 1.0 - less
    open_, parabolic = less < 0, less == 0
    size = q / np.where(parabolic, 1.0, np.abs(less))
    E, F = np.where(open_, 0.0, anomaly), np.where(open_, anomaly, 0.0)
    half = np.where(open_, np.sinh(0.5 * F), np.sin(0.5 * E)) ** 2
    sine = np.where(open_, np.sinh(F), np.sin(E))
    cosine = np.where(open_, np.cosh(F), np.cos(E))
    r = q + 2.0 * size * e * half
    x = q - 2.0 * size * half
    y = np.sqrt(size * q * (1.0 + e)) * sine
    vx = -np.sqrt(mu * size) * sine / r
    vy = np.sqrt(mu * q * (1.0 + e)) * cosine / r
    s = tangent
    far = q * (1.0 + s * s)
    speed = np.sqrt(2.0 * mu * q) / far
    return (
        np.where(parabolic, q * (1.0 - s * s), x),
        np.where(parabolic, 2.0 * q * s, y),
        np.where(parabolic, -speed * s, vx),
        np.where(parabolic, speed, vy),
    )


def _axes(inc: Floats, Omega: Floats, omega: Floats) -> tuple[Floats, Floats]:
    """Directions of pericentre, and of the motion there."""
    ci, si = np.cos(inc), np.sin(inc)
    cO, sO = np.cos(Omega), np.sin(Omega)
    co, so = np.cos(omega), np.sin(omega)
    return (
        np.stack([cO * co - sO * so * ci, sO * co + cO * so * ci, so * si], axis=1),
        np.stack([-cO * so - sO * co * ci, -sO * so + cO * co * ci, co * si], axis=1),
    )
