"""Bodies: arrays of positions, velocities and masses, with units if they have any."""

from __future__ import annotations

import math
import os
import warnings
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Iterator, NamedTuple, Sequence

import numpy as np
from numpy.typing import NDArray

from . import _arrays, _native
from ._arrays import Arrays, Floats
from ._errors import ArgumentError, Named, bad, flag, one_of
from ._quantities import has_unit, in_si, lacks_unit, looked_at, plain, recorded, unitless

if TYPE_CHECKING:
    from ._orbits import Elements


class Kind(IntEnum):
    """Kind of matter that a body stands for. Gravity treats all alike."""

    GAS = 0
    DARK = 1
    STAR = 2


@dataclass(frozen=True)
class Energy:
    """Energy of a state, in mass · length² / time² of its units."""

    kinetic: float
    potential: float
    #: In external fields; 0 where there are none.
    external: float = 0.0
    #: The part of the kinetic energy that is the motion of the centre of mass.
    bulk: float = 0.0

    @property
    def total(self) -> float:
        """Kinetic plus potential energy, that in external fields too."""
        return self.kinetic + self.potential + self.external

    @property
    def virial_ratio(self) -> float:
        """2K/|U| in the frame of the centre of mass: 1 in equilibrium, 0 at rest."""
        return 2.0 * max(self.kinetic - self.bulk, 0.0) / abs(self.potential) if self.potential else float("nan")

    def __float__(self) -> float:
        return self.total

    def __repr__(self) -> str:
        fields = f"external={self.external:.6g}, " if self.external else ""
        return (
            f"Energy(kinetic={self.kinetic:.6g}, potential={self.potential:.6g}, {fields}"
            f"total={self.total:.6g})"
        )


@dataclass(frozen=True)
class Units:
    """A system of units.

    Written as a list of a length, a mass, and a time or speed, such as ``"pc,Msun,km/s"``; of two
    of them for a system in which G = 1, such as ``"au,Msun"``; or as ``"si"``, ``"pc"``, ``"kpc"``
    or ``"au"``.

    Attributes
    ----------
    text : str
        The list, exact.
    length, mass, time : float
        The units in m, kg and s.
    G : float
        The gravitational constant in them.
    names : str
        Their names, such as ``"pc, Msun, km/s"``.
    """

    text: str
    length: float
    mass: float
    time: float
    G: float
    names: str = ""

    def __str__(self) -> str:
        return self.names

    def __repr__(self) -> str:
        return f"Units({self.names!r})"

    @staticmethod
    def of(value: str | Units) -> Units:
        """The system that a text names."""
        if isinstance(value, Units):
            return value
        if not isinstance(value, str):
            raise bad("units", f"must be text such as 'pc,Msun,km/s', got {value!r}")
        text, length, mass, time, g, names = _native.units(value)
        return Units(text, length, mass, time, g, names)

    def si(self, dimension: str) -> tuple[str, float]:
        """A unit of SI, and the size of the unit here in it: of a length, mass, time, speed …"""
        return in_si(dimension, self)

    def are_those_of(self, other: Units) -> bool:
        """Compare with other units; True if they are the same but for rounding of their definitions."""
        pairs = [(self.length, other.length), (self.mass, other.mass), (self.time, other.time)]
        return all(math.isclose(a, b, rel_tol=1e-6) for a, b in pairs)


class _Made(NamedTuple):
    """The generator that made bodies: choices of a simulation follow its advice."""

    name: str
    of: str | None


#: Dimensions of the arrays, and units in which `quantity` gives them.
_DIMENSIONS = {"pos": ("length", "pc"), "vel": ("speed", "km/s"), "m": ("mass", "Msun")}


def time_in_words(time: float, units: Units | None, asked: str | None = None) -> str:
    """A time for people: in the unit that was `asked` for, or a handy one, if the units are known."""
    if units is None or time == 0 or not math.isfinite(time):
        return f"{time:g}"
    name, factor = _native.shown_time(units.text, time, asked)
    return f"{time * factor:g} {name}"


def length_in_words(length: float, units: Units | None) -> str:
    """A length for people, with the unit of the bodies if that has a name."""
    name = "" if units is None else units.names.split(", ")[0]
    return f"{length:g} {name}" if name.isalpha() and length != 0 else f"{length:g}"


def measured(argument: str, value: Any, units: Units | None, dimension: str) -> float:
    """A number in the units of the bodies: of a number, a text such as "10 Myr", or a quantity."""
    return _arrays.number(argument, plain(argument, value, dimension, units))


def measured_array(argument: str, value: Any, units: Units | None, dimension: str, *, finite: bool = True) -> Floats:
    """Numbers in the units of the bodies: of numbers, texts or quantities, also in lists."""
    array = _arrays.floats(argument, plain(argument, value, dimension, units))
    if finite and not np.isfinite(array).all():
        raise bad(argument, "must be finite")
    return array


def _units_of(given: dict[str, Any], units: str | Units | None, default: str = "pc") -> Units | None:
    """Units of the numbers of these arguments: the default if all are quantities. A zero has any unit."""
    for name, value in given.items():
        looked_at(name, value)
    if units is not None:
        return Units.of(units)
    having = [name for name, value in given.items() if has_unit(value)]
    if not having:
        return None
    lacking = [name for name, value in given.items() if lacks_unit(value)]
    mixed = [name for name in lacking if name in having]
    if mixed:
        raise bad("units", f"is needed: `{mixed[0]}` has numbers with a unit and numbers without, so name the units of the numbers")
    if lacking:
        listed = " and ".join(f"`{name}`" for name in lacking)
        has = "has" if len(lacking) == 1 else "have"
        raise bad("units", f"is needed: `{having[0]}` has a unit and {listed} {has} none, so name the units of the numbers")
    return Units.of(default)


#: Ids in ascending order and the group of each; without ids, the one group of all.
Grouping = tuple[NDArray[Any], NDArray[Any]]


def grouping(bodies: Bodies) -> Grouping | None:
    """Groups by the ids of bodies; None where groups are not known, or where ids do not name one body each."""
    group = bodies._group
    if group is None:
        return None
    if len(group) and (group == group[0]).all():
        return np.zeros(0, dtype=np.uint64), group[:1].copy()
    order = np.argsort(bodies.id, kind="stable")
    ids = np.asarray(bodies.id)[order]
    return None if (ids[1:] == ids[:-1]).any() else (ids, np.asarray(group)[order])


def groups_of(known: Grouping | None, ids: NDArray[Any]) -> NDArray[Any] | None:
    """Groups of bodies with these ids: −1 for ids that are not known."""
    if known is None:
        return None
    sorted_ids, groups = known
    if not len(sorted_ids):
        return np.full(len(ids), groups[0] if len(groups) else -1, dtype=np.int64)
    at = np.minimum(np.searchsorted(sorted_ids, ids), len(sorted_ids) - 1)
    return np.where(sorted_ids[at] == ids, groups[at], -1)


def groups_with(before: Bodies, ids: NDArray[Any], new: Bodies) -> Grouping | None:
    """Groups of bodies, and of new ones with these ids; new ones are of no group where theirs is not known."""
    theirs = np.full(len(ids), -1, dtype=np.int64) if new._group is None else new._group
    together = Bodies.__new__(Bodies)
    together._id = np.concatenate([before.id, ids])
    together._group = np.concatenate([before.group, theirs])
    return grouping(together)


def in_units_of(argument: str, bodies: Bodies, units: Units | None) -> Bodies:
    """Bodies in these units, converted if theirs are others."""
    theirs = bodies.units
    if (theirs is None) != (units is None):
        raise bad(
            argument,
            f"has bodies in different units, {theirs or 'none'} and {units or 'none'}, which cannot be converted: "
            "assign `units` to the bodies without",
        )
    if theirs is None or units is None or theirs.text == units.text:
        return bodies
    return bodies.to(units)


class Bodies(Named):
    """N bodies.

    Parameters
    ----------
    m : array_like, shape (N,), or float
        Masses, at least 0; one number stands for all.
    pos : array_like, shape (N, 3)
        Positions.
    vel : array_like, shape (N, 3), optional
        Velocities; at rest where not given.
    id : array_like of int, shape (N,), optional
        Names of the bodies; 0, 1, … where not given.
    kind : array_like of int, shape (N,), optional
        0 gas, 1 dark matter, 2 star (`Kind`); stars where not given.
    group : array_like of int, shape (N,), optional
        Systems that the bodies belong to, from 0 on; 0 where not given.
    time : float, str or quantity
        Time of the state.
    units : str or Units, optional
        Units of the numbers, such as ``"kpc,1e10Msun,km/s"``, from which G follows. Without
        units, G is 1. Astropy quantities are converted to these units (pc, Msun and km/s where
        none are given).

    Attributes
    ----------
    pos, vel : ndarray of float64, shape (N, 3)
    m : ndarray of float64, shape (N,)
    id : ndarray of uint64, shape (N,)
    kind : ndarray of uint8, shape (N,)
        The arrays themselves, C-contiguous and writable: ``bodies.pos[:, 0] += 1`` moves them.
        They are copies of what was given, and simulations and files copy from them.
    time : float
    units : Units or None

    Raises
    ------
    ArgumentError
        Arrays of wrong shapes or types, numbers that are not finite, masses below 0.
    """

    _OTHER_NAMES = {
        **dict.fromkeys(("mass", "masses"), "m"),
        **dict.fromkeys(("position", "positions", "x", "xyz", "coordinates", "r"), "pos"),
        **dict.fromkeys(("velocity", "velocities", "v", "vxyz"), "vel"),
        **dict.fromkeys(("ids", "key", "number"), "id"),
        **dict.fromkeys(("type", "types", "kinds"), "kind"),
        **dict.fromkeys(("groups", "system", "systems", "galaxy"), "group"),
        "t": "time",
        "unit": "units",
    }
    #: None where it is not known.
    _group: NDArray[Any] | None = None

    def __init__(
        self,
        m: Arrays,
        pos: Arrays,
        vel: Arrays | None = None,
        *,
        id: Arrays | None = None,
        kind: Arrays | None = None,
        group: Arrays | None = None,
        time: Any = 0.0,
        units: str | Units | None = None,
    ) -> None:
        given = {"pos": pos, "m": m, "vel": vel}
        if not has_unit(time):  # one with a unit needs bodies with units, and gives them none
            given["time"] = time
        self._units = _units_of({name: each for name, each in given.items() if each is not None}, units)
        self._pos = _arrays.own(_arrays.vectors("pos", self._plain("pos", pos)).copy())
        n = len(self._pos)
        self._vel = _arrays.own(np.zeros((n, 3)))
        if vel is not None:
            self._vel = _arrays.own(_arrays.vectors("vel", self._plain("vel", vel), n).copy())
        self._m = _arrays.own(_arrays.scalars("m", self._plain("m", m), n).copy())
        self._id: NDArray[Any] = np.arange(n, dtype=np.uint64)
        if id is not None:
            self._id = _arrays.whole("id", id, n, np.uint64).copy()
        self._kind: NDArray[Any] = np.full(n, Kind.STAR, dtype=np.uint8)
        if kind is not None:
            self._kind = _arrays.whole("kind", kind, n, np.uint8).copy()
        self._group = np.zeros(n, dtype=np.int64) if group is None else _whole_groups(group, n)
        self._time = measured("time", time, self._units, "time")
        self._made_by: _Made | None = None
        for name, array in (("pos", self.pos), ("vel", self.vel), ("m", self.m)):
            strange = np.argwhere(~np.isfinite(array))
            if len(strange):
                raise bad(name, f"of body {strange[0][0]} is {array[tuple(strange[0])]}: it must be finite")
        if n and self.m.min() < 0:
            i = int(self.m.argmin())
            raise bad("m", f"of body {i} is {self.m[i]}: it must be ≥ 0")
        if n and self.kind.max() > Kind.STAR:
            raise bad("kind", f"holds {self.kind.max()}: use 0 (gas), 1 (dark) or 2 (star)")

    @classmethod
    def _of(
        cls,
        arrays: _native._Arrays,
        time: float,
        units: str | None,
        made_by: _Made | None = None,
    ) -> Bodies:
        """Bodies of arrays that the library gave, which are theirs now."""
        bodies = cls.__new__(cls)
        *floats, bodies._id, bodies._kind = arrays
        bodies._pos, bodies._vel, bodies._m = map(_arrays.own, floats)
        bodies._time = time
        bodies._units = None if units is None else Units.of(units)
        bodies._made_by = made_by
        return bodies

    def _give(self) -> Bodies:
        """These bodies, as a simulation gives them out: arrays that cannot be written to."""
        for name in ("_pos", "_vel", "_m", "_id", "_kind"):
            setattr(self, name, _arrays.given(getattr(self, name)))
        if self._group is not None:
            self._group = _arrays.given(self._group)
        return self

    def _may_change(self) -> None:
        """Refuses to change bodies that a simulation has given out."""
        if not self._pos.flags.writeable:
            raise _arrays.read_only("these bodies are")

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Arrays of copies, and of pickles, can be written to."""
        self.__dict__.update(state)
        self._pos, self._vel, self._m = map(_arrays.own, (self._pos, self._vel, self._m))

    def _native(self) -> _native._Arrays:
        """The arrays as the library takes them."""
        return self._pos, self._vel, self._m, self._id, self._kind

    def _plain(self, name: str, value: Any) -> Any:
        """Numbers of positions, velocities or masses, in the units of the bodies."""
        dimension, _ = _DIMENSIONS[name]
        return plain(name, value, dimension, self._units)

    @property
    def pos(self) -> Floats:
        """Positions, (N, 3). Others that are assigned must be of as many bodies."""
        return self._pos

    @pos.setter
    def pos(self, value: Any) -> None:
        self._may_change()
        self._pos = _arrays.own(_arrays.vectors("pos", self._plain("pos", value), len(self)))

    @property
    def vel(self) -> Floats:
        """Velocities, (N, 3)."""
        return self._vel

    @vel.setter
    def vel(self, value: Any) -> None:
        self._may_change()
        self._vel = _arrays.own(_arrays.vectors("vel", self._plain("vel", value), len(self)))

    @property
    def m(self) -> Floats:
        """Masses, (N,)."""
        return self._m

    @m.setter
    def m(self, value: Any) -> None:
        self._may_change()
        self._m = _arrays.own(_arrays.scalars("m", self._plain("m", value), len(self)))

    @property
    def id(self) -> NDArray[Any]:
        """Names of the bodies, (N,) of uint64."""
        return self._id

    @id.setter
    def id(self, value: Any) -> None:
        self._may_change()
        self._id = _arrays.whole("id", value, len(self), np.uint64)

    @property
    def kind(self) -> NDArray[Any]:
        """Kinds of matter, (N,) of uint8: see `Kind`."""
        return self._kind

    @kind.setter
    def kind(self, value: Any) -> None:
        self._may_change()
        self._kind = _arrays.whole("kind", value, len(self), np.uint8)

    @property
    def group(self) -> NDArray[Any]:
        """The system that each body belongs to, (N,) of int64: 0, 1, …; −1 for bodies of none.

        `galaxy_collision`, `many_galaxies` and `concatenate` number their systems. Groups stay with bodies that
        are chosen, sorted or converted, and with their ids in a simulation. Files do not keep them: with the
        bodies that a run began with, write ``snapshot.group = start.group_of(snapshot.id)``.
        """
        if self._group is None:
            raise bad(
                "group",
                "of these bodies is not known, because files do not keep it: assign it, such as "
                "`bodies.group = start.group_of(bodies.id)` with the bodies that the run began with",
            )
        return self._group

    @group.setter
    def group(self, value: Any) -> None:
        self._may_change()
        self._group = _whole_groups(value, len(self))

    def group_of(self, ids: Arrays) -> NDArray[Any]:
        """Groups of the bodies with these ids, (K,) of int64; −1 for ids that no body has.

        Raises
        ------
        ArgumentError
            Groups are not known, or several bodies have one id.
        """
        wanted = _arrays.ids("ids", ids)
        if len(np.unique(self.id)) != len(self):
            raise bad("ids", "are not unique: several of these bodies have the same")
        self.group  # refused here if it is not known
        order = np.argsort(self.id)
        found = groups_of((np.asarray(self.id)[order], np.asarray(self.group)[order]), wanted)
        assert found is not None
        return found

    @property
    def time(self) -> float:
        """Time of the state."""
        return self._time

    @time.setter
    def time(self, value: Any) -> None:
        self._may_change()
        self._time = measured("time", value, self._units, "time")

    @property
    def units(self) -> Units | None:
        """Units of the numbers. To assign others changes no number, of which there is a warning; `to` converts them."""
        return self._units

    @units.setter
    def units(self, value: str | Units | None) -> None:
        self._may_change()
        units = None if value is None else Units.of(value)
        if self._units is not None and units is not None and units != self._units:
            warnings.warn(
                f"numbers in {self._units} are called numbers in {units}: `to` would convert them", stacklevel=2
            )
        self._units = units

    def __len__(self) -> int:
        return len(self._pos)

    def __repr__(self) -> str:
        units = f", in {self.units}" if self.units else ""
        return f"<Bodies: {len(self)} of total mass {self.m.sum():.6g}, t = {time_in_words(self.time, self.units)}{units}>"

    def __str__(self) -> str:
        number = f"{len(self)} {'body' if len(self) == 1 else 'bodies'}"
        units = "" if self.units is None else f", in {' and '.join(self.units.names.rsplit(', ', 1))}"
        return f"{number} of total mass {self.m.sum():.6g}{units}"

    def __getitem__(self, index: int | slice | Sequence[int] | NDArray[Any]) -> Bodies:
        """Some of the bodies, as a copy: by an index, a slice, a mask or a list of indices.

        One body or a slice of bodies that a simulation gave out cannot be written to either, as a part of an array.
        """
        rows = _arrays.rows(index, len(self))
        chosen = Bodies._of(
            (
                np.array(self.pos[rows]),
                np.array(self.vel[rows]),
                np.array(self.m[rows]),
                np.array(self.id[rows]),
                np.array(self.kind[rows]),
            ),
            self.time,
            None,
        )
        chosen._units = self._units
        chosen._group = None if self._group is None else np.array(self._group[rows])
        is_part = isinstance(index, (int, np.integer, slice)) and not self._pos.flags.writeable
        return chosen._give() if is_part else chosen

    def __iter__(self) -> Iterator[Bodies]:
        """The bodies one by one."""
        return (self[i] for i in range(len(self)))

    def __add__(self, other: Bodies) -> Bodies:
        """Puts others behind these bodies, at the time of these: see `concatenate`."""
        if not isinstance(other, Bodies):
            return NotImplemented
        return _joined("bodies", [self, other], self.time, None)

    def copy(self) -> Bodies:
        """A copy that shares nothing."""
        other = Bodies._of(
            (self.pos.copy(), self.vel.copy(), self.m.copy(), self.id.copy(), self.kind.copy()),
            self.time,
            None,
            self._made_by,
        )
        other._units = self._units
        other._group = None if self._group is None else np.array(self._group)
        return other

    @property
    def G(self) -> float:
        """The gravitational constant in the units of the bodies; 1 where they have none."""
        return 1.0 if self.units is None else self.units.G

    def _constants(self, eps: Any, G: Any) -> tuple[float, float]:
        """Softening length and gravitational constant in the units of the bodies."""
        g = self.G if G is None else measured("G", G, self._units, "constant of gravity")
        return measured("eps", eps, self._units, "length"), g

    def energy(self, eps: Any = 0.0, *, G: Any = None) -> Energy:
        """Kinetic and potential energy in double precision, by direct summation.

        Parameters
        ----------
        eps : float, str or quantity
            Softening length ≥ 0.
        G : float or quantity, optional
            Gravitational constant; `Bodies.G` where not given.
        """
        return self._energy(*_native.energy(self._native(), *self._constants(eps, G)))

    def _energy(self, kinetic: float, potential: float, external: float = 0.0) -> Energy:
        """Energy of these bodies with the motion of their centre of mass."""
        mass, momentum = float(self.m.sum()), self.m @ self.vel
        return Energy(kinetic, potential, external, float(0.5 * momentum @ momentum / mass) if mass > 0 else 0.0)

    def accelerations(self, eps: Any = 0.0, **options: Any) -> Floats:
        """Accelerations by each other, (N, 3): see `allpairs.accelerations`."""
        from ._forces import accelerations

        if "units" in options:
            raise bad("units", "are known from the bodies already: leave them out")
        eps, options["G"] = self._constants(eps, options.get("G"))
        acc: Floats = accelerations(self.pos, self.m, eps, **options)
        return acc

    def potential(self, eps: Any = 0.0, *, G: Any = None) -> Floats:
        """Potential at each body of all others, (N,): see `allpairs.potential`."""
        from ._forces import potential

        eps, g = self._constants(eps, G)
        return potential(self.pos, self.m, eps, G=g)

    def bound(self, eps: Any = 0.0, *, G: Any = None) -> NDArray[np.bool_]:
        """A mask of the bodies that are bound to each other as one system.

        A body is bound if ½|v − V|² + φ < 0. Here φ is the potential of all other bound bodies, and V the velocity
        of the centre of mass of all bound bodies. At first all bodies count as bound. The half of the others with
        the largest energy is taken out, and energies are computed anew, until all that are left are bound. Then
        bodies that these bind come back, each once at most. External fields do not count.

        Parameters
        ----------
        eps : float, str or quantity
            Softening length ≥ 0.
        G : float or quantity, optional
            Gravitational constant; `Bodies.G` where not given.

        Returns
        -------
        ndarray of bool, shape (N,)
            ``bodies[bodies.bound()]`` are the bound bodies, ``bodies.m[bodies.bound()].sum()`` is
            their mass. One body alone is not bound.

        Notes
        -----
        Takes out bodies step by step, as SUBFIND does (Springel et al. 2001, MNRAS 328, 726), but
        with potentials by direct summation: at most four sums over all pairs, of bodies that leave and come back.
        """
        from ._forces import field_at

        eps, g = self._constants(eps, G)
        pos, vel, m = (np.asarray(array) for array in (self.pos, self.vel, self.m))
        bound, came_back = np.ones(len(m), dtype=bool), np.zeros(len(m), dtype=bool)
        potential = self.potential(eps, G=g)  # of the bound bodies, at all

        def of(some: NDArray[Any]) -> Floats:
            """The potential of some bodies at all, without the part of each at itself."""
            heavy = some[m[some] > 0]
            found: Floats = field_at(pos, pos[heavy], m[heavy], eps, G=g)[1]
            if eps > 0:
                found[heavy] += g * m[heavy] / eps
            return found

        while bound.sum() > 1 and (mass := m[bound].sum()) > 0:
            middle = m[bound] @ vel[bound] / mass
            energy = 0.5 * ((vel - middle) ** 2).sum(axis=1) + potential
            free = np.flatnonzero(bound & ~(energy < 0))
            if len(free):
                out = free[np.argsort(-energy[free], kind="stable")[: (len(free) + 1) // 2]]
                bound[out] = False
                potential -= of(out)
                continue
            back = np.flatnonzero(~bound & ~came_back & (energy < 0))
            if not len(back):
                return bound
            bound[back] = came_back[back] = True
            potential += of(back)
        return np.zeros(len(m), dtype=bool)

    def elements(self, about: Bodies | None = None) -> Elements:
        """Osculating elements of the bodies' Kepler orbits about others.

        Parameters
        ----------
        about : Bodies, optional
            The body in the middle, such as ``bodies[0]``, or several, of which the centre of mass counts. The
            heaviest of these bodies where not given.

        Returns
        -------
        Elements
            Arrays with a row for each body, nan for a body about itself: `a`, `e`, `q`, `inc`, `Omega`, `omega`,
            `f`, `M`, `period` and `since_pericentre`.

        Raises
        ------
        ArgumentError
            Nothing is in the middle, or it has no mass and neither has a body about it.

        Notes
        -----
        The mass that attracts is the sum of the masses of `about` and the body. `orbit` is the inverse.
        """
        from ._orbits import elements

        return elements(self, about)

    def to(self, units: str | Units, *, given: str | Units | None = None) -> Bodies:
        """The bodies in other units.

        Parameters
        ----------
        units : str or Units
            Units to convert to; ``"nbody"`` for total mass 1, potential energy −1/2 and G = 1.
        given : str or Units, optional
            Units that they are in, where they do not know.
        """
        source = self.units if given is None else Units.of(given)
        if source is None:
            raise bad("given", "is needed: these bodies have no units to convert from")
        if self.units is not None and not self.units.are_those_of(source):
            raise bad("given", f"must be the units of these bodies, {self.units}, or left out, got {given}")
        target = units.text if isinstance(units, Units) else units
        if not isinstance(target, str):
            raise bad("units", f"must be text such as 'pc,Msun,km/s', got {units!r}")
        converted = Bodies._of(*_native.convert(self._native(), self.time, source.text, target), self._made_by)
        converted._group = None if self._group is None else np.array(self._group)
        return converted

    def quantity(self, name: str) -> Any:
        """`pos`, `vel`, `m` or `time` as an astropy quantity."""
        from astropy import units as u

        if self.units is None:
            raise ArgumentError("these bodies have no units: make them with `units`")
        name = one_of("name", name, [*_DIMENSIONS, "time"])
        if name == "time":
            return recorded(name, lambda _: self.time, self.units)
        dimension, sky = _DIMENSIONS[name]
        unit, size = self.units.si(dimension)
        return (getattr(self, name) * size * u.Unit(unit)).to(sky)

    def save(
        self, path: str | os.PathLike[str], *, format: str | None = None, overwrite: bool = False
    ) -> None:
        """Writes a snapshot file, whole or not at all: see `allpairs.save`."""
        if format is not None:
            format = one_of("format", format, _native.names()["format"])
        text = None if self.units is None else self.units.text
        overwrite = flag("overwrite", overwrite)
        for remark in _native.save(os.fspath(path), self._native(), self.time, text, format, overwrite):
            warnings.warn(f"{os.fspath(path)}: {remark}", stacklevel=2)


def _whole_groups(value: Any, n: int) -> NDArray[Any]:
    unitless("group", value)
    array = np.asarray(value)
    if array.dtype.kind not in "iu" or array.shape != (n,):
        raise bad("group", f"must hold whole numbers in the shape ({n},), not {array.dtype} in the shape {array.shape}")
    if array.size and (array.min() < -1 or array.max() >= 1 << 62):
        raise bad("group", "must be from 0 on, or −1 for bodies of none")
    return np.array(array, dtype=np.int64)


def concatenate(bodies: Sequence[Bodies], *, ids: str = "new") -> Bodies:
    """Puts bodies together, one after another, in the units of the first.

    `group` says of each body which part it comes from. Parts with several groups of their own, such as a
    `galaxy_collision`, keep them: each part's numbers follow the numbers of the part before.

    Parameters
    ----------
    bodies : sequence of Bodies
        Bodies of the same time.
    ids : {"new", "keep"}
        ``"new"`` numbers all from 0 on, ``"keep"`` keeps ids, which must be unique.

    Raises
    ------
    ArgumentError
        Bodies with units and without, bodies of different times, or ids that are not unique.
    """
    parts = [bodies] if isinstance(bodies, Bodies) else list(bodies)
    for part in parts:
        if not isinstance(part, Bodies):
            raise bad("bodies", f"must be a list of Bodies, not of {type(part).__name__}")
    if not parts:
        raise bad("bodies", "must have one part at least")
    ids = one_of("ids", ids, ("new", "keep"))
    first = parts[0]
    parts = [in_units_of("bodies", part, first.units) for part in parts]
    for part in parts:
        if not math.isclose(part.time, first.time, rel_tol=1e-9, abs_tol=0.0):
            raise bad(
                "bodies",
                f"are of different times, {first.time!r} and {part.time!r}: assign `time` to those that shall be of another",
            )
    kept = None
    if ids == "keep":
        kept = np.concatenate([part.id for part in parts])
        sorted_ids = np.sort(kept)
        twice = sorted_ids[1:][sorted_ids[1:] == sorted_ids[:-1]]
        if len(twice):
            raise bad("ids", f"cannot be kept, because several bodies have the id {twice[0]}: use ids=\"new\"")
    return _joined("bodies", parts, first.time, kept)


def _joined(argument: str, parts: Sequence[Bodies], time: float, ids: NDArray[Any] | None) -> Bodies:
    """Bodies one after another, with these ids or new ones."""
    first = parts[0]
    parts = [in_units_of(argument, part, first.units) for part in parts]
    groups: list[NDArray[Any]] = []
    next_group = 0
    for part in parts:
        own = np.zeros(len(part), dtype=np.int64) if part._group is None else np.asarray(part._group)
        groups.append(np.where(own >= 0, own + next_group, -1))
        next_group = max([next_group, *(int(group.max()) + 1 for group in groups[-1:] if group.size)])
    joined = Bodies._of(
        (
            np.concatenate([part.pos for part in parts]),
            np.concatenate([part.vel for part in parts]),
            np.concatenate([part.m for part in parts]),
            np.arange(sum(map(len, parts)), dtype=np.uint64) if ids is None else ids,
            np.concatenate([part.kind for part in parts]),
        ),
        time,
        None,
    )
    joined._units = first._units
    joined._group = np.concatenate(groups)
    return joined


def load(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    physical: str | None = None,
) -> Bodies:
    """Reads a snapshot file.

    Parameters
    ----------
    path : path_like
        A file in Allpairs's own format, HDF5 as Gadget, Arepo and SWIFT write it, Gadget's binary
        formats, PeTar's, NEMO, REBOUND, NumPy, VTK, a table of text, or Tipsy. The content tells which, or `format`.
    format : str, optional
        ``"allpairs"``, ``"hdf5"``, ``"npz"``, ``"vtp"``, ``"csv"``, ``"tipsy"``,
        ``"tipsy-native"``, ``"tipsy-ids"``, ``"petar"`` or ``"nbody6"``.
    physical : {"proper", "peculiar"}, optional
        Makes a cosmological snapshot physical at its time, without factors of a and h. Without this, such a
        snapshot is refused. ``"proper"`` velocities have the expansion of space about the centre of mass, as
        Newton's law needs it. ``"peculiar"`` ones do not.

    Returns
    -------
    Bodies
        With time and units where the file records them. What the file holds and is not
        simulated is told by a warning.

    Raises
    ------
    FileError
        There is no such file, or it is damaged: with the place in it.
    """

    if format is not None:
        format = one_of("format", format, _native.names()["format"])
    if physical is not None:
        physical = one_of("physical", physical, _native.names()["physical"])
    arrays, time, units, _, notes = _native.load(os.fspath(path), format, physical)
    for note in notes:
        warnings.warn(f"{os.fspath(path)}: {note}", stacklevel=2)
    return Bodies._of(arrays, time, units)


def save(
    path: str | os.PathLike[str],
    bodies: Bodies,
    *,
    format: str | None = None,
    overwrite: bool = False,
) -> None:
    """Writes bodies to a snapshot file, whole or not at all.

    Parameters
    ----------
    path : path_like
        File to write; its name tells the format (.allpairs, .hdf5, .npz, .vtp, .csv, .tipsy,
        .bin, .petar, .nbody6) unless `format` does.
    bodies : Bodies
    format : str, optional
        As for `load`. ``"petar"`` is PeTar's input, in pc, Msun and Myr if the bodies have units. ``"nbody6"`` is
        the table that NBODY6 reads as ``dat.10``. A warning tells what these do not keep.
    overwrite : bool
        Replace a file that is there; else it is an error.
    """
    bodies.save(path, format=format, overwrite=overwrite)


def convert(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    units: str | Units | None = None,
    given: str | Units | None = None,
    overwrite: bool = False,
) -> Bodies:
    """Changes the format of a snapshot file, and its units if asked; returns the bodies written."""
    overwrite = flag("overwrite", overwrite)
    bodies = load(source)
    if units is not None:
        bodies = bodies.to(units, given=given)
    bodies.save(target, overwrite=overwrite)
    return bodies
