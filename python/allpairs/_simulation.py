"""Simulations: bodies on their way through time."""

from __future__ import annotations

import csv
import math
import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any, Callable, Iterator, Mapping, Sequence, TypedDict, TypeVar

import numpy as np
from numpy.typing import NDArray

from . import _arrays, _bodies, _errors, _fields, _native, _quantities
from ._arrays import Floats
from ._bodies import Bodies, Energy, Units, length_in_words, measured, time_in_words
from ._errors import ClosedError, ComputeError, FileError, Named, bad, flag, one_of
from ._forces import ACCURACIES
from ._integrators import Integrator
from ._quantities import plain, unit_of
from ._scheduled import Change, ChangeOf, DueBody, Partner, Schedule

#: Type of the rows of `Simulation.log`.
LOG = np.dtype([("steps", np.uint64)] + [(name, np.float64) for name in _native.Simulation.columns()])
#: Type of `Simulation.events`: of an escape, `id` has the body twice and `mass` a zero behind its own.
EVENTS = np.dtype(
    [
        ("step", np.uint64),
        ("time", np.float64),
        ("kind", "U9"),
        ("id", np.uint64, (2,)),
        ("mass", np.float64, (2,)),
        ("pos", np.float64, (3,)),
        ("speed", np.float64),
        ("outcome", "U6"),
    ]
)
#: Seconds after which `integrate` says how long it takes, if it takes longer than these.
HINT_AFTER, LONG = 10.0, 60.0

#: Drift of the energy from which on `integrate` warns.
MAX_DRIFT = 0.01
_T = TypeVar("_T")


@dataclass(frozen=True)
class Brought:
    """Quantities that changes of a simulation brought, summed over all of them."""

    energy: float
    mass: float
    momentum: list[float]
    #: About the origin of coordinates.
    angular_momentum: list[float]


class Settings(TypedDict):
    """Settings by which a simulation is built and resumed, as in `native/settings.rs`.

    The native part returns them with its choices for all settings that were left open.
    """

    systems: int
    start: float
    units: str | None
    made_by: tuple[str, str | None] | None
    law: str | None
    repulsion: float | None
    drag: float | None
    field: list[Any]
    orbit: str | None
    integrator: str | None
    damping: float | None
    g: float | None
    softening: float | None
    dt: float | None
    eta: float | None
    block: bool | None
    neighbours: str | None
    groups: bool | None
    accuracy: str | None
    kernel: str | None
    shape: tuple[int | None, int | None, int | None]
    tuned: bool
    allow_inaccurate: bool
    device: str
    radii: list[float] | None
    on_collision: str | None
    escape_radius: float | None
    on_escape: str | None


class Simulation(Named):
    """A simulation of bodies.

    If you do not give a setting, the library chooses it as the program does: the device, the
    kernel, and the softening, step and integrator that suit the bodies.

    Parameters
    ----------
    bodies : Bodies
        Bodies at the start; they are copied.
    softening : float, str or quantity, optional
        Softening length ε ≥ 0. Without softening, two bodies in one place do not attract each other, which a warning
        says. For bodies with units, this and all other lengths may have a unit:
        ``"0.01 pc"``.
    accuracy : {"fast", "single", "double"}, optional
        Accepted error of forces.
    integrator : Integrator or str, optional
        Integrator, such as ``ap.Hermite4(eta=0.01)`` or ``"yoshida4"``.
    dt, eta, block, neighbours
        See `Integrator`. For an integrator that is given by name, or not given.
    groups : bool, optional
        True to follow close pairs and multiples apart, as one body each for the steps of all others
        (regularisation). With `block` and a `softening` of 0, on CPUs or GPUs. If not given,
        they are followed wherever that can be done and there are at least 16 bodies. On a GPU, bodies
        that begin without pairs have them followed while there are hard ones.
    device : str
        ``"auto"``, ``"cpu"``, ``"cuda"``, ``"cuda:1"`` or ``"emulator"``.
    kernel : str, optional
        Name of a kernel (see ``allpairs list``). If not given, the fastest that ``allpairs tune``
        found here, or the preferred kernel of the device.
    shape : dict, optional
        Another launch geometry than the kernel's: ``"block"``, threads per block. Two-dimensional
        blocks also have ``"len"``, threads along the sources, and ``"luf"``, sources per thread.
    tuned : bool
        True to use the kernels that ``allpairs tune`` found.
    G : float or quantity, optional
        Gravitational constant. If not given, it follows from the units of the bodies; without
        units it is 1.
    law : {"gravity", "unit", "attract-repel"}, optional
        Force law. `repulsion` and `drag` are for attract-repel. If not given, it is the law of the
        kernel's study, else gravity.
    field : str, callable or object, or a list of them, optional
        External fields that also accelerate the bodies. A text names a field of the program, such
        as ``"nfw:mass=1e12Msun,scale=16kpc"`` or ``"mwpotential2014"``. Numbers without a unit are
        in the units of the bodies. You can also pass a function of the time and a position (3,)
        that returns an acceleration (3,), or an object with such a method ``acceleration``. It is
        computed body by body on a CPU, which takes microseconds per body. The object may have
        ``jerk(time, position, velocity)``, for hermite4, and ``potential(time, position)``, for
        the energy, which is not watched without it. Times, positions and velocities are numbers in
        the units of the bodies; results may be quantities. A step in which the field raises an
        exception, or returns a number that is not finite, is taken back.
    orbit : str or pair, optional
        Orbit of the origin of the bodies' own frame: ``"x=8kpc,vy=220km/s"``, or position and
        velocity as quantities or in the units of the bodies. The frame does not rotate, and its origin falls freely
        in the fields. Far from a galaxy's centre a cluster then keeps all its digits. `origin` is
        the position of the origin.
    radii : float, str, quantity or array, optional
        A radius for all bodies, or one for each. Two bodies collide if their distance falls to the
        sum of their radii at any time of a step. A warning says if the softening is more than this sum.
    on_collision : {"log", "stop", "merge", "bounce"}, optional
        Consequence of a collision. All collisions are entries of `events`. ``"stop"`` ends
        `integrate` after the step, ``"merge"`` makes one body of two, and with ``"bounce"`` bodies
        rebound as elastic spheres.
    escape_radius : float, str or quantity, optional
        Distance from the centre of mass beyond which a body has escaped.
    on_escape : {"log", "stop", "remove"}, optional
        Consequence of an escape.
    allow_inaccurate : bool
        True to compute forces even if their error has no bound.
    systems : int
        Number of independent systems of equal size, one after another among the bodies. They do not
        attract each other; see `batch`.

    Raises
    ------
    ArgumentError
        A setting makes no sense; the error names it.
    DeviceError
        A device or kernel is not available.

    Notes
    -----
    Several threads may use a simulation: one thread computes, and the others wait. Different
    simulations compute at the same time. A simulation that was pickled continues with the same
    bits.
    """

    _OTHER_NAMES = {
        **dict.fromkeys(("time", "now"), "t"),
        **dict.fromkeys(("eps", "epsilon"), "softening"),
        **dict.fromkeys(("g", "gravity"), "G"),
        **dict.fromkeys(("particles", "pos", "vel", "m", "mass", "position", "velocity"), "bodies"),
        "timestep": "dt",
    }

    def __init__(
        self,
        bodies: Bodies,
        *,
        softening: Any = None,
        accuracy: str | None = None,
        integrator: Integrator | str | None = None,
        dt: Any = None,
        eta: float | None = None,
        block: bool | None = None,
        neighbours: int | str | None = None,
        groups: bool | None = None,
        device: str = "auto",
        kernel: str | None = None,
        shape: Mapping[str, int] | None = None,
        tuned: bool = True,
        G: Any = None,
        law: str | None = None,
        repulsion: float | None = None,
        drag: float | None = None,
        field: Any = None,
        orbit: Any = None,
        radii: Any = None,
        on_collision: str | None = None,
        escape_radius: Any = None,
        on_escape: str | None = None,
        allow_inaccurate: bool = False,
        systems: int = 1,
    ) -> None:
        if not isinstance(bodies, Bodies):
            raise bad("bodies", f"must be Bodies, such as ap.plummer(1000), not {type(bodies).__name__}")
        if isinstance(integrator, Integrator):
            if dt is not None or eta is not None or block is not None or neighbours is not None:
                raise bad(
                    "integrator",
                    "takes the steps that it was made with: give `dt`, `eta`, `block` and `neighbours` to it alone",
                )
            way = integrator
        else:
            way = Integrator(integrator or "", dt, eta, block, neighbours=neighbours)
        if way.damping is not None and way.name not in ("damped-euler", ""):
            raise bad("damping", f"is for damped-euler, not {way.name}")
        names = _native.names()
        if law is not None:
            law = one_of("law", law, names["law"])
        shape = dict(shape or {})

        def threads(name: str) -> int | None:
            count = None if name not in shape else _arrays.count("shape", shape.pop(name), 1)
            if count is not None and count >= 1 << 32:
                raise bad("shape", f"has too many for a GPU: {count}")
            return count

        geometry = (threads("block"), threads("len"), threads("luf"))
        if shape:
            one_of("shape", next(iter(shape)), ("block", "len", "luf"))

        def number(argument: str, value: float | None) -> float | None:
            return None if value is None else _arrays.number(argument, value)

        def measure(argument: str, value: Any, dimension: str) -> float | None:
            return None if value is None else measured(argument, value, bodies.units, dimension)

        if on_collision is not None and radii is None:
            raise bad("on_collision", "is for bodies with `radii`")
        if on_escape is not None and escape_radius is None:
            raise bad("on_escape", "is for an `escape_radius`")
        outcome = None if radii is None else one_of("on_collision", on_collision or "log", names["on_collision"])
        if escape_radius is not None:
            on_escape = one_of("on_escape", on_escape or "log", names["on_escape"])

        self._settings: Settings = {
            "systems": _arrays.count("systems", systems, 1),
            "start": bodies.time,
            "units": bodies.units.text if bodies.units else None,
            "made_by": bodies._made_by,
            "law": law,
            "repulsion": number("repulsion", repulsion),
            "drag": number("drag", drag),
            "field": _fields.fields(field, bodies.units),
            "orbit": _fields.orbit(orbit, bodies.units),
            "integrator": one_of("integrator", way.name, names["integrator"]) if way.name else None,
            "damping": number("damping", way.damping),
            "g": measure("G", G, "constant of gravity"),
            "softening": measure("softening", softening, "length"),
            "dt": measure("dt", way.dt, "time"),
            "eta": number("eta", way.eta),
            "block": None if way.block is None else flag("block", way.block),
            "neighbours": _neighbours(way.neighbours),
            "groups": None if groups is None else flag("groups", groups),
            "accuracy": None if accuracy is None else one_of("accuracy", accuracy, ACCURACIES),
            "kernel": None if kernel is None else one_of("kernel", kernel, names["kernel"]),
            "shape": geometry,
            "tuned": flag("tuned", tuned),
            "allow_inaccurate": flag("allow_inaccurate", allow_inaccurate),
            "device": str(device),
            "radii": None if radii is None else _radii(radii, bodies),
            "on_collision": outcome,
            "escape_radius": measure("escape_radius", escape_radius, "length"),
            "on_escape": on_escape,
        }
        if self._settings["systems"] >= 1 << 32:
            raise bad("systems", f"is too many: {systems}")
        self._begin(bodies._native(), None)
        self._rows: list[tuple[float, ...]] = []
        self._events: list[tuple[Any, ...]] = []
        self._schedule = Schedule()
        self._changing: int | None = None
        self._warned = self._warned_of_particles = False
        self._asked: str | None = None
        self._grouping = _bodies.grouping(bodies)
        for remark in self._remarks(bodies, on_collision):
            warnings.warn(remark, stacklevel=2)

    def _remarks(self, bodies: Bodies, on_collision: str | None) -> Iterator[str]:
        """Words about settings that do not go together, and about bodies in one place."""
        units, attract = bodies.units, self._settings["law"] in (None, "gravity")
        if units is not None and self._settings["g"] and attract and abs(self.G / units.G - 1) > 0.01:
            yield f"`G` is {self.G:g}, and in units of {units.names} it is {units.G:g}: leave it out, unless you mean it"
        if self._settings["systems"] == 1 and len(twice := _with_ids_of_others(bodies)):
            yield f"several bodies have the id {twice[0]}: `set`, `remove` and `schedule` need an id for each"
        largest = np.sort(self._settings["radii"] or [0.0])[-2:].sum()
        if on_collision is not None and largest == 0:
            yield f"`radii` are all 0, so that no bodies meet, and `on_collision={on_collision!r}` has no effect before `set` or `add`"
        if self.softening == 0 and (same := _in_one_place(bodies, self._settings["systems"])) is not None:
            count, first, second, is_exact = same
            where = "in one place" if is_exact else "so near each other that the square of their distance is 0"
            others = f", and so are {count - 1} others" if count > 1 else ""
            yield (
                f"the bodies with the ids {first} and {second} are {where}{others}: without softening they do not attract "
                "each other. Leave one of them out, or give a `softening`"
            )

    def _begin(self, arrays: _native._Arrays, saved: bytes | None) -> None:
        begun = _native.Simulation.begin(arrays, self._settings, saved)
        self._simulation, self._settings, self._place, choices, remarks = begun
        self._choices = {name: (value, why) for name, value, why in choices}
        for remark in remarks:
            warnings.warn(remark, stacklevel=4)

    # What it is

    @property
    def t(self) -> float:
        """Time reached."""
        return self._simulation.clock()[0]

    @property
    def steps(self) -> int:
        """Steps done since the simulation began."""
        return self._simulation.clock()[1]

    @property
    def dt(self) -> float:
        """The time step; with `eta`, the next step."""
        return self._simulation.clock()[2]

    @property
    def softening(self) -> float:
        """Softening length."""
        return _chosen(self._settings["softening"])

    @property
    def G(self) -> float:
        """Gravitational constant."""
        return _chosen(self._settings["g"])

    @property
    def integrator(self) -> Integrator:
        """The integrator and its steps, as they were at the beginning: see `followed_from`."""
        at = self._settings
        neighbours: int | str | None = at["neighbours"]
        if neighbours not in (None, "auto"):
            neighbours = int(neighbours)
        return Integrator(
            _chosen(at["integrator"]), at["dt"], at["eta"], at["block"], at["damping"], neighbours
        )

    @property
    def kernel(self) -> str:
        """The kernel that computes the forces."""
        return _chosen(self._settings["kernel"])

    @property
    def chosen(self) -> dict[str, str]:
        """Settings that you did not give, and that were chosen: each with its value and the reason."""
        return {
            name: f"{value}: {why}" if why else value for name, (value, why) in self._choices.items()
        }

    @property
    def followed_from(self) -> float | None:
        """Time from which on pairs are followed apart; None if they are since the beginning, or are not.

        A GPU takes the steps of single bodies without softening by itself. While there are hard pairs, the simulation
        follows pairs apart. Where `chosen` says so, it does so by another integrator.
        """
        return self._simulation.followed_from()

    @property
    def device(self) -> str:
        """Device that it computes on."""
        return self._settings["device"]

    @property
    def interactions(self) -> float:
        """Interactions computed for steps so far."""
        return self._simulation.interactions()

    @property
    def bodies(self) -> Bodies:
        """The bodies as they are now: a copy with arrays that cannot be written to.

        `kick`, `set`, `add` and `remove` change the simulation; ``simulation.bodies.copy()`` is a copy
        that you can change.
        """
        return self._given(*self._simulation.bodies())

    def _given(self, arrays: _native._Arrays, time: float) -> Bodies:
        """Bodies of the simulation, with arrays that cannot be written to."""
        bodies = Bodies._of(arrays, time, self._settings["units"], None)
        bodies._group = _bodies.groups_of(self._grouping, bodies.id)
        return bodies._give()

    @property
    def accelerations(self) -> Floats:
        """Accelerations that were computed last, (N, 3).

        After a whole step of leapfrog, Yoshida's or Hermite's schemes, they belong to the present
        positions.
        """
        accelerations: Floats = _arrays.given(self._simulation.accelerations())
        return accelerations

    @property
    def origin(self) -> tuple[Floats, Floats] | None:
        """Position and velocity of the origin in the frame of the fields, if it is on an `orbit`.

        Add them to the positions and velocities of the bodies to get the frame of the fields.
        """
        origin = self._simulation.origin()
        if origin is None:
            return None
        position, velocity = origin
        return _arrays.given(np.array(position)), _arrays.given(np.array(velocity))

    def energy(self) -> Energy:
        """Energy of the present state, in double precision."""
        return self.bodies._energy(*self._simulation.energy())

    @property
    def brought(self) -> Brought:
        """Energy, mass and momenta that `kick`, `set`, `add` and `remove` have brought so far.

        The energy in `log`, `diagnostics` and `energy_error` is without the part that they brought.
        """
        return Brought(*self._simulation.brought())

    @property
    def energy_error(self) -> float:
        """|E − E₀| / |E₀| since the beginning; nan if the energy is not known.

        A field that moves, or a field of your own without a potential, changes the energy by an
        amount that is not known.
        """
        return float(self.diagnostics()["energy_drift"])

    @property
    def largest_energy_error(self) -> float:
        """The largest `energy_error` that `integrate` recorded; nan if it recorded none."""
        return float(self.log["energy_drift"].max()) if self._rows else math.nan

    @property
    def events(self) -> NDArray[Any]:
        """Collisions and escapes up to now: a structured array of the type `EVENTS`."""
        return np.array(self._seen(), dtype=EVENTS)

    def _seen(self) -> list[tuple[Any, ...]]:
        self._events.extend(self._simulation.events())
        return self._events

    @property
    def stopped_by(self) -> str | None:
        """The encounter that ended the last `integrate` or `step`, as a text."""
        return self._simulation.stopped_by()

    @property
    def radii(self) -> Floats | None:
        """Radii of the bodies as they are now, if the simulation searches for encounters."""
        radii = self._simulation.radii()
        return None if radii is None else _arrays.given(np.array(radii))

    def diagnostics(self) -> NDArray[Any]:
        """The present state as a record of the type `LOG`.

        Time, energies, their drift, virial ratio, momentum (px, py, pz), angular momentum (lx, ly,
        lz), centre of mass (cx, cy, cz), and the radii that hold 10, 50 and 90 % of the mass.
        """
        return self._sample(math.inf)[0]

    def _sample(self, max_drift: float) -> tuple[NDArray[Any], bool]:
        """A record of the present state, and whether the energy has drifted by more than `max_drift`."""
        steps, values, has_drifted = self._simulation.sample(max_drift)
        row = np.array((steps, *values), dtype=LOG)
        if self._simulation.unwatched() is not None:
            row["energy_drift"], has_drifted = np.nan, False
        return row, has_drifted

    @property
    def log(self) -> NDArray[Any]:
        """Rows that `integrate` recorded: a structured array of the type `LOG`."""
        return np.array(self._rows, dtype=LOG)

    @property
    def _units(self) -> Units | None:
        units = self._settings["units"]
        return None if units is None else Units.of(units)

    def _in_words(self, time: float) -> str:
        """A time in the unit that `integrate` was asked for."""
        return time_in_words(time, self._units, self._asked)

    # What it does

    def step(self, n: int = 1) -> None:
        """Takes `n` steps. A step ends where a body changes: see `schedule`."""
        left = _arrays.count("n", n)

        def move(due: float) -> None:
            nonlocal left
            # Steps that another thread takes meanwhile are not of these.
            left -= self._simulation.step(left, due)

        self._go(move, lambda: left <= 0)
        self._watch(level=3)

    def _go(self, move: Callable[[float], None], is_done: Callable[[], bool]) -> None:
        """Moves on until that is done, with the changes of bodies on the way: `move` goes no farther than the time
        that it gets."""
        self._refuse_within_change()
        while True:
            due = self._schedule.next_time()
            move(due)
            if self.t < due:
                return
            self._change_due()
            if is_done() or self.stopped_by is not None:
                return

    def schedule(self, ids: Any, t: Any, change: ChangeOf) -> None:
        """Lets bodies change at times to come, as stars that lose mass do.

        The simulation stands exactly at each time, and calls `change` with the body as it is then (`DueBody`: id, time,
        mass, position, velocity, radius, and the partner that it is bound to). The function returns a `Change`, or None
        to change nothing. Changes at one time are made at once, after all of them are known. The energy that they bring
        is counted apart: see `brought`.

        Parameters
        ----------
        ids : int or array_like of int
            Ids of the bodies.
        t : float, str, quantity or array_like
            The time, or a time for each, beyond the present.
        change : callable
            Function of a `DueBody`. It may look at the simulation, but neither change it nor let it go on. To be kept in
            checkpoints it must be possible to pickle it: a function of a module, or a method of an object, which then
            keeps its state.

        Raises
        ------
        ArgumentError
            An unknown id, or a time that is not beyond the present. Nothing is scheduled then.

        Examples
        --------
        >>> stars = ap.plummer(100, seed=1)
        >>> simulation = ap.Simulation(stars, softening=0.01, dt=0.01)
        >>> simulation.schedule(7, 0.123, lambda star: ap.Change(m=star.m / 2))
        >>> simulation.integrate(0.2).bodies.m[7]
        0.005
        """
        given = _arrays.ids("ids", ids)
        times = _arrays.scalars("t", plain("t", t, "time", self._units), len(given))
        if not callable(change):
            raise bad("change", f"must be a function of a `DueBody`, not {type(change).__name__}")
        if self.integrator.eta is None and self.dt < 0:
            raise bad("t", "is for simulations that go forward in time, and `dt` is negative")
        unknown = [id for id, body in zip(given.tolist(), self._simulation.due(given.tolist())) if body is None]
        if unknown:
            raise bad("ids", f"no body has the id {unknown[0]}")
        now = self.t
        early = times[~(times > now)]
        if len(early):
            raise bad("t", f"must be beyond the present, {now!r}, got {float(early[0])!r}")
        for id, time in zip(given.tolist(), times.tolist()):
            self._schedule.add(id, time, change)

    def unschedule(self, ids: Any = None) -> None:
        """Forgets the changes to come of some bodies, or of all."""
        self._schedule.forget(None if ids is None else set(_arrays.ids("ids", ids).tolist()))

    @property
    def scheduled(self) -> list[tuple[float, int]]:
        """Times and ids of the changes to come, in their order."""
        return [(entry.t, entry.id) for entry in self._schedule]

    def _refuse_within_change(self) -> None:
        if self._changing is not None:
            raise bad(
                "change",
                f"(of the body {self._changing}) may look at the simulation, but neither change it nor let it go on: "
                "return a `Change`",
            )

    def _change_due(self) -> None:
        """Makes the changes that are due at the present time."""
        now = self.t
        entries = self._schedule.next()
        found = self._simulation.due([entry.id for entry in entries])
        changes: dict[int, tuple[float | None, list[float] | None, float | None, bool]] = {}
        later = []
        gone = [entry.id for entry, body in zip(entries, found) if body is None]
        for entry, body in zip(entries, found):
            if body is None:
                continue
            id, m, pos, vel, radius, pair = body
            partner = None if pair is None else Partner(*pair)
            due = DueBody(id, now, m, _arrays.given(np.array(pos)), _arrays.given(np.array(vel)), radius, partner)
            self._changing = id
            try:
                change = entry.change(due)
                made = self._change_of(change, id)
            except BaseException as error:
                if hasattr(error, "add_note"):
                    error.add_note(f"in the change of the body {id} at time {self._in_words(now)}, which is still due")
                raise
            finally:
                self._changing = None
            if change is None:
                continue
            if id in changes:
                raise bad("change", f"of the body {id} was made twice at time {now!r}: make one change of both")
            changes[id] = made
            if change.next is not None:
                time = measured("next", change.next, self._units, "time")
                if not (now < time < math.inf):
                    raise bad("next", f"must be beyond the present, {now!r}, got {time!r} for the body {id}")
                later.append((id, time, entry.change))
        self._simulation.change([(id, *made) for id, made in changes.items()])
        self._schedule.take(len(entries))
        for id, time, function in later:
            self._schedule.add(id, time, function)
        if gone:
            names = ", ".join(map(str, gone))
            what = f"the body {names} was" if len(gone) == 1 else f"the bodies {names} were"
            warnings.warn(
                f"{what} to change at time {self._in_words(now)}, and is not there any more: it merged, escaped or was removed",
                stacklevel=4,
            )

    def _change_of(
        self, change: Change | None, id: int
    ) -> tuple[float | None, list[float] | None, float | None, bool]:
        """A change in the units of the simulation."""
        if change is None:
            return None, None, None, False
        if not isinstance(change, Change):
            raise bad("change", f"must return a `Change` or None, not {type(change).__name__}")
        units = self._units

        def scalar(argument: str, value: Any, dimension: str) -> float | None:
            return None if value is None else measured(argument, value, units, dimension)

        kick = None if change.kick is None else self._vectors("kick", change.kick, "speed", 1)[0].tolist()
        return scalar("m", change.m, "mass"), kick, scalar("radius", change.radius, "length"), flag("removed", change.removed)

    def at(self, t: Any) -> Bodies:
        """The bodies as they will be at a later time. The simulation stays where it is.

        The steps that it takes later are those that it takes without this: the steps up to `t` are taken, and taken
        back, which costs their time.

        Parameters
        ----------
        t : float, str or quantity

        Raises
        ------
        ArgumentError
            The time lies before the present, or beyond the next change of a body (`schedule`).
        ComputeError
            An encounter would stop the simulation before, or a number would not be finite.
        """
        time, now = measured("t", t, self._units, "time"), self.t
        backwards = self.integrator.eta is None and self.dt < 0
        if (now < time) if backwards else (time < now):
            raise bad("t", f"is {time!r}, and the simulation is at {now!r} already")
        if time > self._schedule.next_time():
            raise bad("t", f"is {time!r}, and a body changes at {self._schedule.next_time()!r}: integrate to that time first")
        arrays, reached = self._simulation.at(time)
        if reached != time:
            raise ComputeError(f"an encounter would stop the simulation at {reached!r}, before {time!r}")
        return self._given(arrays, reached)

    def kick(self, dv: Any, ids: Any = None) -> None:
        """Adds to velocities at the present time.

        It costs one evaluation of the forces; bodies keep their block time steps, unless their
        accelerations change much faster than before. The energy that it brings is counted apart: see
        `brought`.

        Parameters
        ----------
        dv : array_like or quantity, shape (N, 3) or (3,)
            Change of each velocity, or of all.
        ids : int or array_like of int, optional
            Ids of the bodies; all bodies, in their order, where not given.

        Raises
        ------
        ArgumentError
            An unknown id, a wrong shape or a number that is not finite; the simulation is as before.
        """
        self._refuse_within_change()
        given = None if ids is None else _arrays.ids("ids", ids)
        n = self._simulation.number() if given is None else len(given)
        self._simulation.kick(given, self._vectors("dv", dv, "speed", n))

    def set(self, ids: Any, *, m: Any = None, pos: Any = None, vel: Any = None, radii: Any = None) -> None:
        """Gives bodies other masses, positions, velocities or radii at the present time.

        Bodies with another mass or position begin with new block time steps; others keep their
        steps, unless their accelerations change much. Energy, mass and momenta that it brings are
        counted apart: see `brought`.

        Parameters
        ----------
        ids : int or array_like of int
            Ids of the bodies (``simulation.bodies.id``).
        m, radii : float, str, quantity or array_like, shape (K,), optional
            Masses, and radii where encounters are searched for; one number stands for all.
        pos, vel : array_like or quantity, shape (K, 3) or (3,), optional

        Raises
        ------
        ArgumentError
            An unknown id, a wrong shape, a number that makes no sense, or a body in the place of another
            one without softening. The simulation is as before.
        """
        self._refuse_within_change()
        given = _arrays.ids("ids", ids)
        n, units = len(given), self._units

        def scalars(argument: str, value: Any, dimension: str) -> Floats | None:
            if value is None:
                return None
            return _arrays.scalars(argument, plain(argument, value, dimension, units), n)

        self._simulation.set(
            given,
            scalars("m", m, "mass"),
            None if pos is None else self._vectors("pos", pos, "length", n),
            None if vel is None else self._vectors("vel", vel, "speed", n),
            scalars("radii", radii, "length"),
        )

    def add(self, bodies: Bodies, *, ids: Any = None, radii: Any = None) -> NDArray[Any]:
        """Adds bodies at the present time, behind those that there are.

        Parameters
        ----------
        bodies : Bodies
            In the units of the simulation; their time does not matter.
        ids : array_like of int, optional
            Ids that no other body has, such as ``bodies.id``. Where not given, the next after the
            largest.
        radii : float, str, quantity or array_like, optional
            Radii, where encounters are searched for; 0 where not given.

        Returns
        -------
        ndarray of uint64
            The ids of the new bodies.

        Raises
        ------
        ArgumentError
            Ids of other bodies, other units, a place where another body is; the simulation is as before.
        """
        self._refuse_within_change()
        if not isinstance(bodies, Bodies):
            raise bad("bodies", f"must be Bodies, not {type(bodies).__name__}")
        ours, theirs = self._units, bodies.units
        if (ours is None) != (theirs is None) or (ours and theirs and not ours.are_those_of(theirs)):
            raise bad("bodies", f"have the units {theirs}, and the simulation has {ours}: convert them (`to`) first")
        pos, vel, m, id, kind = bodies._native()
        if ids is not None:
            id = _arrays.whole("ids", ids, len(bodies), np.uint64)
        each = None
        if radii is not None:
            each = _arrays.scalars("radii", plain("radii", radii, "length", ours), len(bodies))
        before = self.bodies if self._grouping is not None else None
        new = self._simulation.add((pos, vel, m, id, kind), ids is not None, each)
        if before is not None:
            self._grouping = _bodies.groups_with(before, new, bodies)
        return new

    def remove(self, ids: Any) -> None:
        """Removes bodies at the present time; the others keep their ids and their order.

        Parameters
        ----------
        ids : int or array_like of int
            Ids of the bodies.

        Raises
        ------
        ArgumentError
            An unknown id, or no body would be left; the simulation is as before.
        """
        self._refuse_within_change()
        self._simulation.remove(_arrays.ids("ids", ids))

    def _vectors(self, argument: str, value: Any, dimension: str, n: int) -> Floats:
        """A vector for each of `n` bodies, in the units of the bodies; one stands for all."""
        array = _arrays.floats(argument, plain(argument, value, dimension, self._units))
        if array.shape == (3,):
            array = np.tile(array, (n, 1))
        return _arrays.vectors(argument, array, n)

    def integrate(
        self,
        t: Any,
        *,
        every: Any = None,
        callback: Callable[[Simulation], object] | None = None,
        progress: bool = False,
        max_drift: float = MAX_DRIFT,
        max_steps: int | None = None,
        max_seconds: float | None = None,
    ) -> Simulation:
        """Continues to exactly time `t`: the last step is shortened.

        Parameters
        ----------
        t : float, str or quantity
            End time; for bodies with units also ``"10 Myr"``. If the simulation is there already,
            nothing is done. To an earlier time it goes back: with `eta` by steps that follow the motion, otherwise with
            a negative `dt`. An encounter that stops the run ends it before: see
            `stopped_by`.
        every : float, str or quantity, optional
            Time between rows of `log`. A row is recorded, and `callback` called, after the first
            whole step at or beyond each multiple of `every` from the present, and at the end. This
            does not change the steps. If `every` is shorter than the steps, each step is one row.
        callback : callable, optional
            Called with the simulation at each look; without `every`, at the end. A callback that
            returns True stops the run. It must return True, False or None.
        progress : bool
            Shows a progress bar if tqdm is installed. Without a bar, a warning after ten seconds says how long the call
            takes, if that is more than a minute.
        max_drift : float
            Warns, once, when the energy has drifted by more than this fraction, or is not a number. Without `every`, the
            energy is looked at from time to time and at the end, as long as that takes little time. In a field of your
            own without a `potential`, it cannot be watched, and `every` says so once. Warns, once, of test particles
            too. Their energies are judged where one body has mass, or where only fields at rest pull. Their Jacobi
            constants are judged where two bodies on a circle dominate.
        max_steps : int, optional
            Ends the run before `t` after this number of steps.
        max_seconds : float, optional
            Ends the run before `t` after the first step that ends this long after the call. Where a run ended is its
            time `t`; it goes on with the same bits.

        Returns
        -------
        Simulation
            Itself.

        Raises
        ------
        KeyboardInterrupt
            Ctrl-C. The simulation is at the end of its last whole step and can continue.
        ArgumentError
            The steps do not lead to `t`, because the simulation is beyond it.
        ComputeError
            The force cannot be computed any more, a number is not finite, or a step would be too
            short. The simulation has its last good state again.
        """
        units = self._units
        end = measured("t", t, units, "time")
        self._asked = t if isinstance(t, str) else None if unit_of(t) is None else f"1 {unit_of(t)}"
        if every is not None:
            every = measured("every", every, units, "time")
            if not every > 0:
                raise bad("every", f"must be > 0, got {every}")
        if callback is not None and not callable(callback):
            raise bad("callback", f"must be a function of the simulation, not {type(callback).__name__}")
        if not _arrays.number("max_drift", max_drift) >= 0:
            raise bad("max_drift", f"must be ≥ 0, got {max_drift}")
        first, began = self.steps, monotonic()
        most = (1 << 64) - 1 if max_steps is None else _arrays.count("max_steps", max_steps, 0)
        seconds = math.inf if max_seconds is None else _arrays.number("max_seconds", max_seconds)
        if not seconds >= 0:
            raise bad("max_seconds", f"must be ≥ 0, got {max_seconds}")

        def left() -> tuple[int, float]:
            return max(most - (self.steps - first), 0), max(seconds - (monotonic() - began), 0.0)

        start, follows = self.t, self.integrator.eta is not None
        backwards = not follows and self.dt < 0
        returns = follows and end < start
        sign = -1.0 if backwards or returns else 1.0
        if returns:
            for argument, given in (("max_steps", max_steps), ("max_seconds", max_seconds)):
                if given is not None:
                    raise bad(argument, f"is for runs forward in time, and {end!r} lies before the present, {start!r}")
            if self.scheduled:
                raise bad("t", f"is {end!r}, before the present, {start!r}, and changes of bodies are scheduled")

        def go(target: float, exactly: bool) -> None:
            if returns:
                self._refuse_within_change()
                self._simulation.go_back(target)
                return
            self._go(
                lambda due: self._simulation.go_on(target, exactly, (due, *left()), look),
                lambda: (self.t - target) * sign >= 0 or min(left()) <= 0,
            )

        bar = _bar(abs(end - start)) if progress else None
        is_told = bar is not None

        def look(time: float, caller: int = 6) -> None:
            """Shows the time reached; says once how long all takes, if that is long."""
            nonlocal is_told
            if bar is not None:
                bar.update(max(abs(time - start) - bar.n, 0.0))
            passed = monotonic() - began
            if is_told or passed < HINT_AFTER or time == start:
                return
            is_told = True
            needed = min(passed * abs((end - start) / (time - start)), seconds)
            if needed >= LONG:
                warnings.warn(
                    f"integrate needs about {_duration(needed)}: in {_duration(passed)} it went from "
                    f"{self._in_words(start)} to {self._in_words(time)}, of {self._in_words(end)}. "
                    "`progress=True` shows a bar, and Ctrl-C keeps what is done",
                    stacklevel=caller,
                )

        stopped = False
        if (end - start) * sign < 0:
            way = "forward: it would have to go back in time, for which `dt` must be negative"
            if backwards:
                way = "back in time: it would have to go forward, for which `dt` must be positive"
            raise bad("t", f"is {end!r}, and the simulation is at {start!r} and goes {way}")
        if every is not None and (end - start) * sign > 0:
            if abs(end - start) / every > 2**53:
                raise bad("every", f"is too short, {every!r}: no step of a run over {abs(end - start)!r} is as short")
            if not self._rows:
                self._look(None, max_drift)
            multiple = 1
            while not stopped:
                target = start + sign * multiple * every
                if (end - target) * sign <= 0 or (end - self.t - self.dt) * sign <= 0:
                    break  # the end, which is reached exactly
                before = self.steps
                go(target, False)
                look(self.t, caller=3)
                if self.steps != before:
                    stopped = self._look(callback, max_drift) or self.stopped_by is not None
                if min(left()) <= 0:
                    break
                # A step may pass several multiples.
                passed = math.floor((self.t - start) * sign / every * (1.0 + 1e-12))
                multiple = max(multiple, passed) + 1
        if not stopped:
            before = self.steps
            go(end, True)
            if every is None:
                self._watch(max_drift, 3)
                if callback is not None:
                    _says_stop(callback(self))
            elif self.steps != before or not self._rows:
                self._look(callback, max_drift)
        if bar is not None:
            bar.update(abs(self.t - start) - bar.n)
            bar.close()
        return self

    def run_until(self, t: Any) -> Simulation:
        """Continues to time `t`, like `integrate` without rows of `log`."""
        return self.integrate(t)

    def _look(self, callback: Callable[[Simulation], object] | None, max_drift: float) -> bool:
        now, has_drifted = self._sample(max_drift)
        self._rows.append(now.item())
        unwatched = self._simulation.unwatched()
        if unwatched is not None and not self._warned:
            self._warned = True
            warnings.warn(f"the energy is not watched: {unwatched}", stacklevel=3)
        ratio = float(now["virial_ratio"])
        unknown = self._units is None and self._settings["made_by"] is None and not self._settings["field"]
        odd = _native.odd_motion(ratio) if len(self._rows) == 1 and unknown else None
        if odd is not None:
            warnings.warn(
                f"2K/|U| = {ratio:.3g}: the bodies {odd}. They have no units, and G is {self.G:g}: give `units` to "
                "the bodies, or `G`",
                stacklevel=3,
            )
        if has_drifted:
            self._warn_of_drift(float(now["time"]), float(now["energy_drift"]), max_drift)
        self._watch(max_drift)
        return callback is not None and _says_stop(callback(self))

    def _watch(self, max_drift: float = MAX_DRIFT, level: int = 4) -> None:
        """Warns of drifts that were found on the way."""
        energy, particles = self._simulation.drifts()
        if energy is not None and not energy[1] <= max_drift:
            self._warn_of_drift(*energy, max_drift, level + 1)
        if particles is not None and particles[1] > max_drift and not self._warned_of_particles:
            time, drift, constant = particles
            self._warned_of_particles = True
            warnings.warn(
                f"at time {self._in_words(time)} the {constant} of a test particle has changed by {drift:.2g} of its "
                f"potential at the start, more than `max_drift` {max_drift:g}: a smaller {self._better()} would help",
                stacklevel=level,
            )

        if (outrun := self._simulation.outrun()) is not None:
            time, dt, suited, why = outrun
            now, taken = self._in_words(suited), self._in_words(abs(dt))
            warnings.warn(
                f"at time {self._in_words(time)} a step of {now} would be chosen ({why.replace(' at the start', '')}), and "
                f"steps of {taken} are taken, which were chosen at the start: give a smaller `dt`, or "
                "`integrator=ap.Hermite6(eta=0.02)`",
                stacklevel=level,
            )

    def _better(self) -> str:
        return "`eta`" if self.integrator.eta is not None else "`dt`"

    def _warn_of_drift(self, time: float, drift: float, max_drift: float, level: int = 4) -> None:
        if self._warned:
            return
        self._warned = True
        warnings.warn(
            f"at time {self._in_words(time)} the energy has drifted by {drift:.2g}, more than `max_drift` {max_drift:g}: "
            f"a smaller {self._better()} or a larger `softening` would help",
            stacklevel=level,
        )

    def close(self) -> None:
        """Gives back memory and device; the simulation cannot be used any more."""
        self._refuse_within_change()
        self._simulation.close()

    def __enter__(self) -> Simulation:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # What is kept

    def save(
        self, path: str | os.PathLike[str], *, format: str | None = None, overwrite: bool = False
    ) -> None:
        """Writes a snapshot of the bodies as they are now: see `allpairs.save`."""
        self.bodies.save(path, format=format, overwrite=overwrite)

    def quantity(self, name: str) -> Any:
        """`t`, `dt` or `softening`, or a column of `log` such as `time` or `r50`, as an astropy quantity.

        `origin` and `origin_velocity` belong to an `orbit`, and `events.time`, `events.mass`, `events.pos` and
        `events.speed` columns of `events`. Times and lengths are in the units of the bodies if these have names, and in
        years next to au. Else they are in Myr and pc. Speeds are in km/s, energies in Msun km²/s².
        Bodies without units are refused.
        """

        def values(name: str) -> Any:
            if name in ("t", "dt", "softening"):
                return getattr(self, name)
            if name.startswith("events."):
                return self.events[name.removeprefix("events.")]
            if name.startswith("origin"):
                if self.origin is None:
                    raise bad("name", f"is {name}, and the bodies are on no `orbit`")
                return self.origin[0 if name == "origin" else 1]
            if not self._rows:
                raise bad("log", "is empty: integrate with `every` to record one")
            return self.log[name]

        return _quantities.recorded(name, values, self._units)

    def write_log(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Writes the rows of `log` as a table, as the program's diagnostics.csv: see `allpairs.plot`.

        Parameters
        ----------
        path : path_like
            File to write, whole or not at all. Numbers read back with all digits. They are in the units that the
            first line names, or in the units of the bodies if these are not known. What is not known is empty.
        overwrite : bool
            Replace a file that is there; else it is an error.

        Raises
        ------
        ArgumentError
            There are no rows: `integrate` records them with `every`.
        FileError
            The file is there already, or cannot be written.
        """
        if not self._rows:
            raise bad("log", "is empty: integrate with `every` to record one")
        headings, factors = _native.log_columns(self._settings["units"], _quantities.time_unit(self._units))
        lines = [",".join(["step", *headings])]
        for steps, *values in self._rows:
            given = (factor * value for factor, value in zip(factors, values, strict=True))
            numbers = (repr(value) if math.isfinite(value) else "" for value in given)
            lines.append(",".join([str(steps), *numbers]))
        _errors.write_text(path, "\n".join([*lines, ""]), overwrite)

    def checkpoint(self, path: str | os.PathLike[str]) -> None:
        """Writes a file from which `resume` continues with the same bits; it replaces an older one."""
        target = Path(path)
        partial = target.with_name(target.name + ".partial")
        try:
            partial.write_bytes(self._pickled())
            partial.replace(target)
        except OSError as error:
            raise FileError(f"cannot write the checkpoint {target}: {error}") from error

    def _pickled(self) -> bytes:
        import pickle

        state = self.__getstate__()
        try:
            return pickle.dumps(state)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise bad(
                "change",
                f"of a scheduled change cannot be kept in a checkpoint ({error}): take a function of a module, or a "
                "method of an object",
            ) from error

    def __getstate__(self) -> dict[str, Any]:
        saved = self._simulation.saved()
        return {
            "settings": self._settings,
            "saved": saved,
            "grouping": self._grouping,
            "rows": self._rows,
            "events": list(self._seen()),
            "schedule": self._schedule,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._settings = state["settings"]
        self._rows, self._asked = list(state["rows"]), None
        self._warned = self._warned_of_particles = False
        self._schedule, self._changing = state.get("schedule") or Schedule(), None
        self._events = list(state["events"])
        self._grouping = state.get("grouping")
        self._begin(_native.Simulation.bodies_of(state["saved"]), state["saved"])

    def __repr__(self) -> str:
        try:
            t = f"t = {self._in_words(self.t)}"
        except RuntimeError:
            return "<Simulation: closed>"
        units = "" if self._units is None else f", in {self._units}"
        return (
            f"<Simulation: {t}, {self._way()}, softening {self._softened()}{units}, "
            f"kernel {self.kernel} on {self._place}>"
        )

    def _is_chosen(self, name: str) -> str:
        return " (chosen)" if name in self._choices else ""

    def _softened(self) -> str:
        return length_in_words(self.softening, self._units) + self._is_chosen("softening")

    def _way(self) -> str:
        """The integrator and its steps in words."""
        at = self._settings
        blocks = " in block time steps" if at["block"] else ""
        if at["eta"] is not None:
            steps = f"eta {at['eta']:g}{self._is_chosen('eta')}"
        else:
            steps = f"step {self._in_words(self.dt)}{self._is_chosen('dt')}"
        return f"{at['integrator']}{self._is_chosen('integrator')}{blocks}, {steps}"

    def _repr_html_(self) -> str:
        """A table, and a view that turns."""
        from html import escape

        from ._pictures import view

        try:
            time, steps, _ = self._simulation.clock()
        except ClosedError:
            return escape(repr(self))
        bodies = self.bodies
        units = self._units
        drift = f"{self.largest_energy_error:.2g} at most" if self._rows else "not followed: use every"
        _, why = self._choices.get("kernel", ("", "as given"))
        rows = {
            "bodies": f"{len(bodies)} of total mass {bodies.m.sum():g}{f', in {units}' if units else ''}",
            "time": self._in_words(time),
            "steps": str(steps),
            "integrator": self._way(),
            "softening": self._softened(),
            "energy drift": drift,
            "kernel": f"{self.kernel} on {self._place} ({why})",
        }
        cells = (f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in rows.items())
        page = view(bodies, title=f"t = {self._in_words(time)}", most_bodies=5_000)
        return f"<table>{''.join(cells)}</table>{page._repr_html_()}"


def _chosen(setting: _T | None) -> _T:
    """A setting that every simulation has."""
    assert setting is not None
    return setting


def _says_stop(returned: object) -> bool:
    """Returns whether a callback wants the run to stop."""
    if returned is None:
        return False
    if isinstance(returned, (bool, np.bool_)):
        return bool(returned)
    raise bad(
        "callback",
        f"must return True to stop the run, else False or None, not {type(returned).__name__}: put `bool(...)` "
        "around a condition",
    )


def _in_one_place(bodies: Bodies, systems: int) -> tuple[int, int, int, bool] | None:
    """Number of bodies in the place of another one that has mass, in the same system, and ids of the first two.

    Places so near each other that the square of their distance is 0 count as one; the last says whether they are one.
    """
    system = np.repeat(np.arange(systems), len(bodies.m) // systems)
    pairs, are_exact = _arrays.in_one_place(np.asarray(bodies.pos), np.asarray(bodies.m), system)
    if not len(pairs):
        return None
    first, second = bodies.id[pairs[0]]
    return len(pairs), int(first), int(second), bool(are_exact[0])


def _radii(radii: Any, bodies: Bodies) -> list[float]:
    """A radius for each body."""
    radii = plain("radii", radii, "length", bodies.units)
    if np.ndim(radii) == 0:
        radii = _arrays.number("radii", radii)
    each: list[float] = _arrays.scalars("radii", radii, len(bodies)).tolist()
    return each


def _neighbours(neighbours: int | str | None) -> str | None:
    """A number of neighbours as the library reads it."""
    if neighbours is None or isinstance(neighbours, str):
        return neighbours
    return str(_arrays.count("neighbours", neighbours, 1))


def _duration(seconds: float) -> str:
    """A duration in words: 25 s, 3 min, 2.5 h, 12 days."""
    for length, name, digits, most in ((1, "s", 0, 90), (60, "min", 0, 5_400), (3_600, "h", 1, 172_800)):
        if seconds < most:
            return f"{seconds / length:.{digits}f} {name}"
    return f"{seconds / 86_400:.0f} days"


def _bar(total: float) -> Any:
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    return tqdm(total=total, unit="time")


def resume(path: str | os.PathLike[str]) -> Simulation:
    """Continues from a file that `Simulation.checkpoint` wrote, or from a run of the program.

    Parameters
    ----------
    path : path_like
        A file, which is a pickle: read only those that you trust. Or the folder of a run of the
        program that has a checkpoint; nothing is changed there, and the simulation goes on with the
        bits that ``allpairs resume`` would give it.

    Raises
    ------
    FileError
        There is no such file, or it is not a checkpoint.
    """
    import pickle

    recorded: list[tuple[Any, ...]] = []
    if os.path.isdir(path):
        settings, saved = _native.kept_run(os.fspath(path))
        recorded = _events_of_run(Path(path), settings["units"])
        state: Any = {"settings": settings, "saved": saved, "rows": [], "events": []}
    else:
        try:
            state = pickle.loads(Path(path).read_bytes())
            optional = {"schedule", "grouping"}
            if not isinstance(state, dict) or set(state) - optional != {"settings", "saved", "rows", "events"}:
                raise ValueError("it is something else")
        except OSError as error:
            raise FileError(f"cannot read the checkpoint {os.fspath(path)}: {error}") from error
        except Exception as error:
            raise FileError(f"{os.fspath(path)} is not a checkpoint of a simulation: {error}") from error
    kind = Batch if state["settings"]["systems"] > 1 else Simulation
    simulation = kind.__new__(kind)
    simulation.__setstate__(state)
    simulation._events += [event for event in recorded if event[0] <= simulation.steps]
    return simulation


def _with_ids_of_others(bodies: Bodies) -> NDArray[Any]:
    """Ids that several bodies have."""
    ids = np.sort(bodies.id)
    twice: NDArray[Any] = ids[1:][ids[1:] == ids[:-1]]
    return twice


def _events_of_run(folder: Path, units: str | None) -> list[tuple[Any, ...]]:
    """Collisions and escapes that a run of the program recorded, as `Simulation.events` has them."""
    found: list[tuple[Any, ...]] = []
    for name, kind in (("collisions.csv", "collision"), ("escapers.csv", "escape")):
        try:
            rows = list(csv.DictReader((folder / name).read_text(encoding="utf-8").splitlines()))
        except FileNotFoundError:
            continue
        # Headings have units where these are known: `time [Myr]`.
        columns = {heading: _native.column_of_table(heading, units) for heading in (rows[0] if rows else ())}
        for cells in rows:
            if None in cells.values():
                continue  # the row that was being written when the run was killed
            row = {}
            for heading, (column, factor) in columns.items():
                row[column] = cells[heading] if factor == 1 else repr(float(cells[heading]) / factor)
            ids = (row["id_a"], row["id_b"]) if kind == "collision" else (row["id"], row["id"])
            masses = (row["mass_a"], row["mass_b"]) if kind == "collision" else (row["mass"], "0")
            where = tuple(float(row[axis]) for axis in "xyz")
            numbers = int(row["step"]), float(row["time"])
            found.append((*numbers, kind, tuple(map(int, ids)), tuple(map(float, masses)), where, float(row["speed"]), row["outcome"]))
    return sorted(found, key=lambda event: event[:2])


class Batch(Simulation):
    """Independent systems that are simulated together: see `batch`."""

    def __init__(self, systems: Sequence[Bodies], **settings: Any) -> None:
        systems = list(systems)
        if not systems:
            raise bad("systems", "must have one system at least")
        for system in systems:
            if not isinstance(system, Bodies):
                raise bad("systems", f"must be a list of Bodies, not of {type(system).__name__}")
            if len(system) != len(systems[0]):
                raise bad("systems", f"must have as many bodies each: {len(systems[0])} and {len(system)}")
            if system.units != systems[0].units:
                raise bad("systems", "must have the same units")
            if system.time != systems[0].time:
                raise bad("systems", f"must be of the same time: {systems[0].time!r} and {system.time!r}")
        first = systems[0]
        joined = Bodies._of(
            (
                np.concatenate([system.pos for system in systems]),
                np.concatenate([system.vel for system in systems]),
                np.concatenate([system.m for system in systems]),
                np.concatenate([system.id for system in systems]),
                np.concatenate([system.kind for system in systems]),
            ),
            first.time,
            None,
            first._made_by if all(s._made_by == first._made_by for s in systems) else None,
        )
        joined._units = first._units
        super().__init__(joined, systems=len(systems), **settings)

    def __len__(self) -> int:
        return self._settings["systems"]

    @property
    def systems(self) -> list[Bodies]:
        """The systems as they are now."""
        bodies = self.bodies
        each = len(bodies) // len(self)
        return [bodies[i * each : (i + 1) * each] for i in range(len(self))]

    def energies(self) -> list[Energy]:
        """The energy of each system."""
        return [system.energy(self.softening, G=self.G) for system in self.systems]


def batch(systems: Sequence[Bodies], **settings: Any) -> Batch:
    """Many independent systems of as many bodies each, simulated together: on a GPU in one launch.

    Parameters
    ----------
    systems : sequence of Bodies
    **settings
        As of `Simulation`; they hold for all systems. A softening and a step that are not given
        suit all of them.

    Returns
    -------
    Batch
        A `Simulation` whose `systems` are those bodies as they are now.
    """
    return Batch(systems, **settings)
