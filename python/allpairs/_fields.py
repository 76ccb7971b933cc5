"""External fields that Python computes."""

from __future__ import annotations

from typing import Any, Callable, Sequence

import numpy as np

from ._errors import bad

_Vector = tuple[float, float, float]


def _vector(name: str, value: Any) -> _Vector:
    numbers = np.asarray(value, dtype=float)
    if numbers.shape != (3,):
        raise bad("field", f"has {name} of shape {numbers.shape} instead of (3,)")
    x, y, z = numbers
    return float(x), float(y), float(z)


class Own:
    """A field of the user's own, as the compiled part calls it."""

    def __init__(self, field: Any) -> None:
        self.field = field
        acceleration: Callable[[float, Any], Any] = getattr(field, "acceleration", field)
        self.acceleration: Callable[[float, _Vector], _Vector] = lambda time, position: _vector(
            "an acceleration", acceleration(time, np.array(position))
        )
        if hasattr(field, "jerk"):
            self.jerk: Callable[[float, _Vector, _Vector], _Vector] = lambda time, position, velocity: (
                _vector("a jerk", field.jerk(time, np.array(position), np.array(velocity)))
            )
        if hasattr(field, "potential"):
            self.potential: Callable[[float, _Vector], float] = lambda time, position: float(
                field.potential(time, np.array(position))
            )

    def __reduce__(self) -> tuple[Any, ...]:
        return (Own, (self.field,))


def fields(given: Any) -> list[str | Own]:
    """Returns the argument `field` as a list."""
    if given is None:
        return []
    several: Sequence[Any] = given if isinstance(given, (list, tuple)) else [given]
    return [_one(each) for each in several]


def orbit(given: Any) -> str | None:
    """The argument `orbit`, in the words of the program."""
    if given is None or isinstance(given, str):
        return given
    try:
        numbers = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        numbers = np.empty(0)
    if numbers.shape != (2, 3):
        raise bad("orbit", "must be a text such as 'x=8kpc,vy=220km/s', or a position and a velocity")
    names = ("x", "y", "z", "vx", "vy", "vz")
    return ",".join(f"{name}={float(number)!r}" for name, number in zip(names, numbers.flat))


def _one(given: Any) -> str | Own:
    if isinstance(given, str):
        return given
    if callable(given) or hasattr(given, "acceleration"):
        return Own(given)
    raise bad(
        "field",
        "must be a text such as 'point:mass=1', a function of time and position that returns an "
        f"acceleration, or an object with such a method `acceleration`; not {type(given).__name__}",
    )
