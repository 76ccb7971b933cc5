"""Particles of AMUSE and the simulation that moves them.

AMUSE changes particles at any time. The engine keeps the particles as AMUSE sees them. When a model is evolved, it
compares them with its simulation, and changes the simulation where the two differ. However many values AMUSE sets in
between, they cost one evaluation of forces.
"""

from __future__ import annotations

import math
import os
import time
from typing import Any, Callable

import numpy as np
from numpy.typing import NDArray

import allpairs as ap

from ._functions import LIMITS, SETTINGS

Floats = NDArray[np.float64]

#: Numbers of AMUSE's stopping conditions.
COLLISION, TIMEOUT, STEPS, BOX = 0, 3, 4, 5
#: Times this much apart, relative to their size, are equal: AMUSE's conversions of units round.
ROUNDING = 1e-12
MASS, POS, VEL, RADIUS = 0, slice(1, 4), slice(4, 7), 7


class Code(Exception):
    """A result code of AMUSE that is not 0 and no error for people, such as the end of a list."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Engine:
    """Functions of the worker, with AMUSE's names. Functions of arrays take and return arrays of numpy."""

    def __init__(self) -> None:
        self._simulation: ap.Simulation | None = None
        self.initialize_code()

    def method(self, name: str) -> Callable[..., Any]:
        """The function of this name."""
        way, _, parameter = name.partition("_")
        if parameter in self._values:
            return (lambda: self._values[parameter]) if way == "get" else lambda value: self._set(parameter, value)
        found: Callable[..., Any] = getattr(self, name)
        return found

    # Life

    def initialize_code(self) -> None:
        self._end()
        self._values: dict[str, Any] = {parameter.name: parameter.default for parameter in SETTINGS + LIMITS}
        self._units: str | None = None
        self._ids = np.zeros(0, np.int64)  # ascending, in the order of the simulation
        self._particles = np.zeros((0, 8))  # mass, position, velocity, radius
        self._next = 0
        self._time = 0.0
        self._way = 1.0  # -1 back in time: the simulation has the velocities turned round, and the times with them
        self._evolved = False
        self._enabled: set[int] = set()
        self._found: list[tuple[int, tuple[int, ...]]] = []

    def cleanup_code(self) -> None:
        self.initialize_code()

    def commit_parameters(self) -> None:
        pass

    recommit_parameters = commit_particles = recommit_particles = synchronize_model = commit_parameters

    def set_working_directory(self, path: str) -> None:
        os.chdir(path)

    def get_working_directory(self) -> str:
        return os.getcwd()

    def set_units(self, units: str) -> None:
        """Units of the model as a text of Allpairs, for texts with units such as a field's."""
        self._units = units
        self._end()

    def _set(self, parameter: str, value: Any) -> None:
        default = self._values[parameter]
        value = type(default)(value)
        if value == default:
            return
        if parameter == "eps2" and not value >= 0.0:
            raise ValueError(f"epsilon_squared must be ≥ 0, got {value!r}")
        if parameter == "begin_time":
            if self._evolved:
                raise ValueError(f"begin_time cannot become {value!r}: the model has been evolved to {self._time!r}")
            self._time = value
        self._values[parameter] = value
        if any(parameter == setting.name for setting in SETTINGS):
            self._end()

    # Particles

    def new_particle(self, *columns: Floats) -> NDArray[np.int64]:
        new = np.column_stack(columns)
        ids = np.arange(self._next, self._next + len(new))
        self._next += len(new)
        self._ids = np.concatenate([self._ids, ids])
        self._particles = np.concatenate([self._particles, new])
        return ids

    def delete_particle(self, ids: NDArray[Any]) -> None:
        rows = self._rows(ids)
        self._ids, self._particles = np.delete(self._ids, rows), np.delete(self._particles, rows, axis=0)

    def _rows(self, ids: NDArray[Any]) -> NDArray[np.intp]:
        """Rows of particles by their indices."""
        rows = np.searchsorted(self._ids, ids)
        unknown = np.append(self._ids, np.iinfo(np.int64).min)[rows] != ids
        if unknown.any():
            raise LookupError(f"no particle has the index {ids[unknown][0]}")
        return rows

    def _columns(self, ids: NDArray[Any], columns: Any) -> Any:
        return tuple(self._particles[self._rows(ids)][:, columns].T)

    def _put(self, ids: NDArray[Any], columns: Any, values: tuple[Floats, ...]) -> None:
        self._particles[self._rows(ids), columns] = np.array(values).T

    def get_state(self, ids: NDArray[Any]) -> Any:
        return self._columns(ids, slice(8))

    def set_state(self, ids: NDArray[Any], *values: Floats) -> None:
        self._put(ids, slice(8), values)

    def get_mass(self, ids: NDArray[Any]) -> Any:
        return self._particles[self._rows(ids), MASS]

    def set_mass(self, ids: NDArray[Any], mass: Floats) -> None:
        self._particles[self._rows(ids), MASS] = mass

    def get_radius(self, ids: NDArray[Any]) -> Any:
        return self._particles[self._rows(ids), RADIUS]

    def set_radius(self, ids: NDArray[Any], radius: Floats) -> None:
        self._particles[self._rows(ids), RADIUS] = radius

    def get_position(self, ids: NDArray[Any]) -> Any:
        return self._columns(ids, POS)

    def set_position(self, ids: NDArray[Any], *position: Floats) -> None:
        self._put(ids, POS, position)

    def get_velocity(self, ids: NDArray[Any]) -> Any:
        return self._columns(ids, VEL)

    def set_velocity(self, ids: NDArray[Any], *velocity: Floats) -> None:
        self._put(ids, VEL, velocity)

    def get_number_of_particles(self) -> int:
        return len(self._ids)

    def get_index_of_first_particle(self) -> int:
        return self._after(0)

    def get_index_of_next_particle(self, id: int) -> int:
        return self._after(id + 1)

    def _after(self, id: int) -> int:
        """The first index from `id` on."""
        row = int(np.searchsorted(self._ids, id))
        if row == len(self._ids):
            raise Code(1)
        return int(self._ids[row])

    # Forces and sums

    @property
    def _eps(self) -> float:
        return math.sqrt(self._values["eps2"])

    def _field(self, x: Floats, y: Floats, z: Floats) -> tuple[Floats, Floats]:
        points = np.column_stack([x, y, z])
        if not (self._particles[:, MASS] > 0).any():
            return np.zeros((len(points), 3)), np.zeros(len(points))
        device, pos, m = self._values["device"], self._particles[:, POS], self._particles[:, MASS]
        acc, potential = ap.field_at(points, pos, m, self._eps, device=device)
        return acc, potential

    def get_gravity_at_point(self, _: Floats, *point: Floats) -> Any:
        return tuple(self._field(*point)[0].T)

    def get_potential_at_point(self, _: Floats, *point: Floats) -> Any:
        return self._field(*point)[1]

    def get_acceleration(self, ids: NDArray[Any]) -> Any:
        rows = self._rows(ids)
        if not self._attracts():
            return np.zeros((3, len(ids)))
        pos, m = self._particles[:, POS], self._particles[:, MASS]
        return tuple(ap.accelerations(pos, m, self._eps, device=self._values["device"])[rows].T)

    def get_potential(self, ids: NDArray[Any]) -> Any:
        return self._potentials()[self._rows(ids)]

    def _attracts(self) -> bool:
        """True if a particle attracts another one."""
        return len(self._ids) > 1 and bool((self._particles[:, MASS] > 0).any())

    def _potentials(self) -> Floats:
        if not self._attracts():
            return np.zeros(len(self._ids))
        potentials: Floats = ap.potential(self._particles[:, POS], self._particles[:, MASS], self._eps)
        return potentials

    def get_potential_energy(self) -> float:
        return 0.5 * float(self._particles[:, MASS] @ self._potentials())

    def get_kinetic_energy(self) -> float:
        return 0.5 * float(self._particles[:, MASS] @ (self._particles[:, VEL] ** 2).sum(axis=1))

    def get_total_mass(self) -> float:
        return float(self._particles[:, MASS].sum())

    def _centre(self, columns: slice) -> Floats:
        mass = self._particles[:, MASS]
        if not mass.any():
            raise ValueError("there is no mass, and so no centre of mass")
        centre: Floats = mass @ self._particles[:, columns] / mass.sum()
        return centre

    def get_center_of_mass_position(self) -> Any:
        return tuple(self._centre(POS))

    def get_center_of_mass_velocity(self) -> Any:
        return tuple(self._centre(VEL))

    def get_total_radius(self) -> float:
        return float(np.linalg.norm(self._particles[:, POS] - self._centre(POS), axis=1).max())

    # Time

    def get_time(self) -> float:
        return self._time

    def get_time_step(self) -> float:
        fixed: float = self._values["fixed_timestep"]
        return fixed if self._simulation is None else self._simulation.dt

    def evolve_model(self, end: float) -> None:
        end = float(end)
        self._found = []
        if abs(end - self._time) <= ROUNDING * max(abs(end), abs(self._time)):
            return
        self._turn(1.0 if end > self._time else -1.0, end)
        self._evolved = True
        if not len(self._ids):
            self._time = end
            return
        # Without forces no step follows: one step leads to the end, and the simulation is of no further use.
        drift = None if self._attracts() or self._values["field"] else abs(end - self._time)
        if drift is not None:
            self._end()
        radii, overlaps = self._radii()
        simulation = self._ready(radii, drift)
        try:
            self._advance(simulation, self._way * end, overlaps)
        finally:
            bodies = simulation.bodies
            self._particles[:, POS], self._particles[:, VEL] = bodies.pos, self._way * bodies.vel
            self._time = self._way * simulation.t
            if drift is not None:
                self._end()

    def _turn(self, way: float, end: float) -> None:
        """Goes that way in time from now on, if it can be done."""
        if way < 0 and not self._values["is_time_reversed_allowed"]:
            raise ValueError(
                f"the model is at the time {self._time!r} and goes back to {end!r} only with `is_time_reversed_allowed`"
            )
        if way < 0 and self._values["field"]:
            raise ValueError(f"a model in a field does not go back in time, from {self._time!r} to {end!r}")
        if way != self._way:
            self._end()
            self._way = way

    def _radii(self) -> tuple[Floats | None, list[tuple[int, ...]]]:
        """Radii in which collisions are searched for, and pairs that overlap already.

        The model stops for such pairs after a step. A simulation has no overlaps, so their radii are 0 until then.
        """
        if COLLISION not in self._enabled:
            return None, []
        radii = self._particles[:, RADIUS].copy()
        pairs = overlapping(self._particles[:, POS], radii)
        radii[pairs.ravel()] = 0.0
        return radii, [tuple(pair) for pair in self._ids[pairs].tolist()]

    def _advance(self, simulation: ap.Simulation, end: float, overlaps: list[tuple[int, ...]]) -> None:
        """Goes on to `end`, or until a stopping condition is met."""
        is_stepwise = bool(overlaps or self._enabled & {TIMEOUT, STEPS, BOX})
        began, steps, seen = time.perf_counter(), 0, len(simulation.events)
        while simulation.t < end and not self._found:
            if is_stepwise and simulation.t + simulation.dt < end:
                simulation.step()
            else:
                simulation.integrate(end)
            steps += 1
            collisions = [tuple(event["id"].tolist()) for event in simulation.events[seen:]]
            self._found += [(COLLISION, pair) for pair in overlaps + collisions]
            values = self._values
            if STEPS in self._enabled and steps >= values["stopping_condition_number_of_steps_parameter"]:
                self._found.append((STEPS, ()))
            if TIMEOUT in self._enabled:
                if time.perf_counter() - began > values["stopping_condition_timeout_parameter"]:
                    self._found.append((TIMEOUT, ()))
            if BOX in self._enabled:
                self._found += [(BOX, (id,)) for id in self._out_of_box(simulation.bodies)]

    def _out_of_box(self, bodies: ap.Bodies) -> list[int]:
        centre = np.zeros(3)
        if self._values["stopping_condition_out_of_box_use_center_of_mass_parameter"] and bodies.m.any():
            centre = bodies.m @ bodies.pos / bodies.m.sum()
        distance = np.linalg.norm(bodies.pos - centre, axis=1)
        out: list[int] = bodies.id[distance > self._values["stopping_condition_out_of_box_parameter"]].tolist()
        return out

    def _ready(self, radii: Floats | None, drift: float | None) -> ap.Simulation:
        """The simulation, with the particles as AMUSE has them now."""
        refused = None
        if self._simulation is not None:
            try:
                self._change(self._simulation, radii)
            except ap.AllpairsError as error:  # such as a first particle without mass among regularised pairs
                refused = error
                self._end()
        if self._simulation is None:
            try:
                self._simulation = self._begin(radii, drift)
            except ap.ArgumentError as error:
                raise refused or error
        return self._simulation

    def _begin(self, radii: Floats | None, drift: float | None) -> ap.Simulation:
        values = self._values
        bodies = self._bodies(slice(None))
        bodies.id, bodies.time = self._ids.astype(np.uint64), self._way * self._time
        steps: dict[str, Any] = {"integrator": values["integrator"], "eta": values["timestep_parameter"]}
        if drift is not None:
            steps = {"integrator": "leapfrog", "dt": drift}
        elif values["fixed_timestep"] > 0:
            steps = {"integrator": values["integrator"], "dt": values["fixed_timestep"]}
        elif len(bodies) > 4:
            steps["block"] = True
        return ap.Simulation(
            bodies,
            G=1.0,
            softening=self._eps,
            accuracy=values["accuracy"],
            device=values["device"],
            field=values["field"] or None,
            orbit=values["orbit"] or None,
            radii=radii,
            on_collision=None if radii is None else "stop",
            **steps,
        )

    def _change(self, simulation: ap.Simulation, radii: Floats | None) -> None:
        """Changes the simulation where its bodies are not the particles: by one call for each kind of change."""
        bodies = simulation.bodies
        before = bodies.id.astype(np.int64)
        stays = np.isin(before, self._ids, assume_unique=True)
        is_new = ~np.isin(self._ids, before, assume_unique=True)
        if not stays.any():
            self._end()
            return
        was, now = np.zeros((len(bodies), 8)), self._particles.copy()
        now[:, VEL] *= self._way
        was[:, MASS], was[:, POS], was[:, VEL] = bodies.m, bodies.pos, bodies.vel
        now[:, RADIUS] = 0.0 if radii is None else radii
        if simulation.radii is not None:
            was[:, RADIUS] = simulation.radii
        if not stays.all():
            simulation.remove(before[~stays])
        ids, values = self._ids[~is_new], now[~is_new]
        is_other = values != was[stays]
        rows, columns = is_other.any(axis=1), is_other.any(axis=0)
        if rows.any():
            simulation.set(
                ids[rows],
                m=values[rows, MASS] if columns[MASS] else None,
                pos=values[rows, POS] if columns[POS].any() else None,
                vel=values[rows, VEL] if columns[VEL].any() else None,
                radii=values[rows, RADIUS] if columns[RADIUS] else None,
            )
        if is_new.any():
            simulation.add(self._bodies(is_new), ids=self._ids[is_new], radii=None if radii is None else radii[is_new])

    def _bodies(self, rows: Any) -> ap.Bodies:
        chosen = self._particles[rows]
        return ap.Bodies(chosen[:, MASS], chosen[:, POS], self._way * chosen[:, VEL], units=self._units)

    def _end(self) -> None:
        """Ends the simulation; the next evolution begins another one."""
        if self._simulation is not None:
            self._simulation.close()
            self._simulation = None

    # Stopping conditions

    def has_stopping_condition(self, kind: int) -> int:
        return int(kind in (COLLISION, TIMEOUT, STEPS, BOX))

    def enable_stopping_condition(self, kind: int) -> None:
        if not self.has_stopping_condition(kind):
            raise ValueError(f"Allpairs has no stopping condition of the kind {kind}")
        if kind == COLLISION and COLLISION not in self._enabled:
            self._end()
        self._enabled.add(int(kind))

    def disable_stopping_condition(self, kind: int) -> None:
        if kind == COLLISION and COLLISION in self._enabled:
            self._end()
        self._enabled.discard(int(kind))

    def is_stopping_condition_enabled(self, kind: int) -> int:
        return int(kind in self._enabled)

    def is_stopping_condition_set(self, kind: int) -> int:
        return int(any(kind == found for found, _ in self._found))

    def get_number_of_stopping_conditions_set(self) -> int:
        return len(self._found)

    def get_stopping_condition_info(self, index: int) -> tuple[int, int]:
        kind, ids = self._condition(index)
        return kind, len(ids)

    def get_stopping_condition_particle_index(self, index: int, column: int) -> int:
        _, ids = self._condition(index)
        if not 0 <= column < len(ids):
            raise LookupError(f"the stopping condition {index} has {len(ids)} particles, and none with the number {column}")
        return ids[column]

    def _condition(self, index: int) -> tuple[int, tuple[int, ...]]:
        if not 0 <= index < len(self._found):
            raise LookupError(f"{len(self._found)} stopping conditions are set, and none with the number {index}")
        return self._found[index]


def overlapping(pos: Floats, radii: Floats) -> NDArray[np.intp]:
    """Pairs of particles, (K, 2), at a distance of at most the sum of their radii."""
    order = np.argsort(pos[:, 0])
    pos, radii = pos[order], radii[order]
    reach, found = radii + radii.max(initial=0.0), [np.zeros((0, 2), np.intp)]
    for k in range(1, len(order)):  # pairs with k - 1 others between them along x
        near = np.flatnonzero(pos[k:, 0] - pos[:-k, 0] <= reach[:-k])
        if near.size == 0 or not reach.any():
            break
        distance = np.linalg.norm(pos[near + k] - pos[near], axis=1)
        hits = near[distance <= (radii[near] + radii[near + k]) * (1.0 + ROUNDING)]
        found.append(np.sort(order[np.column_stack([hits, hits + k])], axis=1))
    return np.concatenate(found)
