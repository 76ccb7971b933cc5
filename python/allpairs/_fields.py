"""External fields that Python computes."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any, Callable, Sequence

import numpy as np

from ._errors import ArgumentError, bad
from ._quantities import plain

if TYPE_CHECKING:
    from ._bodies import Units

_Vector = tuple[float, float, float]


class Own:
    """A field of the user's own, as the compiled part calls it.

    Its results may be quantities, which are converted to the units of the bodies.
    """

    def __init__(self, field: Any, units: Units | None = None) -> None:
        self.field = field
        self.units = units
        self._is_strange = False
        acceleration: Callable[[float, Any], Any] = getattr(field, "acceleration", field)
        self.acceleration: Callable[[float, _Vector], _Vector] = lambda time, position: self._vector(
            "acceleration", acceleration, time, position
        )
        if hasattr(field, "jerk"):
            self.jerk: Callable[[float, _Vector, _Vector], _Vector] = lambda time, position, velocity: (
                self._vector("jerk", field.jerk, time, position, velocity)
            )
        if hasattr(field, "potential"):
            self.potential: Callable[[float, _Vector], float] = self._watched_potential

    def _numbers(
        self, dimension: str, shape: tuple[int, ...], function: Callable[..., Any], time: float, position: _Vector, *more: _Vector
    ) -> Any:
        try:
            value = function(time, np.array(position), *map(np.array, more))
        except ArithmeticError as error:
            if not any(position):
                raise  # at the origin the library asks what the field has, and there need be no body
            where = f"at time {time!r} and position {position}"
            raise bad("field", f"raises {type(error).__name__} for the {dimension} {where}: {error}") from error
        numbers = np.asarray(plain("field", value, dimension, self.units))
        if numbers.dtype.kind not in "fiu":
            raise bad("field", f"returns the {dimension} as {numbers.dtype}: it must be real numbers")
        if numbers.size == 1 and shape == ():
            numbers = numbers.reshape(())
        if numbers.shape != shape:
            raise bad("field", f"returns the {dimension} in the shape {numbers.shape} instead of {shape}")
        return numbers.astype(float)

    def potential_at(self, time: float, position: _Vector) -> float:
        """The potential, of a field that has one."""
        return float(self._numbers("potential", (), self.field.potential, time, position))

    def _watched_potential(self, time: float, position: _Vector) -> float:
        """The potential. One that is not finite is told of once: of accelerations the library tells itself."""
        potential = self.potential_at(time, position)
        if any(position) and not (math.isfinite(potential) or self._is_strange):
            self._is_strange = True
            warnings.warn(
                f"`field` returns the potential {potential} at time {time!r} and position {position}, and the energy is "
                "not known then: it must be finite wherever bodies are",
                stacklevel=2,
            )
        return potential

    def _vector(self, dimension: str, function: Callable[..., Any], time: float, *at: _Vector) -> _Vector:
        x, y, z = self._numbers(dimension, (3,), function, time, *at).tolist()
        return x, y, z

    def __reduce__(self) -> tuple[Any, ...]:
        return (Own, (self.field, self.units))


def fields(given: Any, units: Units | None) -> list[str | Own]:
    """Returns the argument `field` as a list, for bodies in these units."""
    if given is None:
        return []
    several: Sequence[Any] = given if isinstance(given, (list, tuple)) else [given]
    return [_one(each, units) for each in several]


def orbit(given: Any, units: Units | None) -> str | None:
    """The argument `orbit`, in the words of the program and in the units of the bodies."""
    if given is None or isinstance(given, str):
        return given
    try:
        position, velocity = given
        pair = [plain("orbit", position, "length", units), plain("orbit", velocity, "speed", units)]
        numbers = np.asarray(pair, dtype=float)
    except ArgumentError:
        raise
    except (TypeError, ValueError):
        numbers = np.empty(0)
    if numbers.shape != (2, 3):
        raise bad("orbit", "must be a text such as 'x=8kpc,vy=220km/s', or a position and a velocity")
    names = ("x", "y", "z", "vx", "vy", "vz")
    return ",".join(f"{name}={float(number)!r}" for name, number in zip(names, numbers.flat))


def _one(given: Any, units: Units | None) -> str | Own:
    if isinstance(given, str):
        return given
    if callable(given) or hasattr(given, "acceleration"):
        return Own(given, units)
    raise bad(
        "field",
        "must be a text such as 'point:mass=1', a function of time and position that returns an "
        f"acceleration, or an object with such a method `acceleration`; not {type(given).__name__}",
    )


def at_points(
    points: Any, given: list[str | Own], units: Units | None, g: float, time: float, *, potentials: bool = True
) -> tuple[Any, Any]:
    """Accelerations and potentials of fields at points, (M, 3) and (M,): as bodies without mass feel them.

    A simulation of such bodies computes them here, so that a field is the same as in a run. Potentials are the
    energies of one body of mass 1, which is put to one point after another.
    """
    from ._bodies import Bodies
    from ._simulation import Simulation

    if not len(points):
        return np.zeros((0, 3)), np.zeros(0)
    settings: dict[str, Any] = {
        "softening": 1.0, "dt": 1.0, "integrator": "leapfrog", "accuracy": "double", "device": "cpu", "tuned": False,
        "G": g,
    }  # fmt: skip
    try:
        test = Simulation(Bodies(0.0, points, units=units, time=time), field=list(given), **settings)
    except ArgumentError as error:
        if error.argument != "integrator":
            raise
        names = ", ".join(field for field in given if isinstance(field, str))
        raise bad("field", f"depends on velocities, and points have none: {names}") from error
    with test:
        acc = np.array(test.accelerations)
    pot = np.zeros(len(points))
    if not potentials:
        return acc, pot
    texts = [field for field in given if isinstance(field, str)]
    if texts:
        with Simulation(Bodies(1.0, points[:1], units=units, time=time), field=texts, **settings) as probe:
            for i, point in enumerate(points):
                probe.set(0, pos=point)
                pot[i] = probe.energy().external
    for own in given:
        if isinstance(own, Own):
            known = hasattr(own, "potential")
            pot += [own.potential_at(time, tuple(point)) for point in points.tolist()] if known else np.nan
    return acc, pot
