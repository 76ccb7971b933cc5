"""Changes of bodies at times that are known before, as stars that lose mass make them."""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, Callable, Iterator

from ._arrays import Floats


@dataclass(frozen=True)
class Partner:
    """The body that another one is bound to most tightly, and their orbit about each other."""

    id: int
    m: float
    semi_major_axis: float
    eccentricity: float
    period: float


@dataclass(frozen=True)
class DueBody:
    """A body at the time of its change, in the units of the simulation."""

    id: int
    #: The time, which the simulation has reached exactly.
    t: float
    m: float
    #: Position, (3,).
    pos: Floats
    #: Velocity, (3,).
    vel: Floats
    #: Radius, where encounters are searched for.
    radius: float | None
    #: The body that it is bound to, if there is one.
    partner: Partner | None


@dataclass(frozen=True)
class Change:
    """A change of one body; values that are left out stay.

    Parameters
    ----------
    m : float, str or quantity, optional
        New mass.
    kick : array_like or quantity, shape (3,), optional
        Velocity that the body gains.
    radius : float, str or quantity, optional
        New radius, where encounters are searched for.
    removed : bool
        True if nothing is left of the body.
    next : float, str or quantity, optional
        Time of its next change, by the same function.
    """

    m: Any = None
    kick: Any = None
    radius: Any = None
    removed: bool = False
    next: Any = None


#: A function that says what becomes of a body.
ChangeOf = Callable[[DueBody], "Change | None"]


@dataclass(order=True)
class Entry:
    """A change to come."""

    t: float
    id: int
    #: Number of the entry: of two changes of a body at one time the one that was scheduled first is made first.
    number: int
    change: ChangeOf = field(compare=False)


class Schedule:
    """Changes to come, in the order of their times."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._number = 0

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries)

    def add(self, id: int, t: float, change: ChangeOf) -> None:
        self._number += 1
        bisect.insort(self._entries, Entry(t, id, self._number, change))

    def next_time(self) -> float:
        """Time of the next change; infinite if there is none."""
        return self._entries[0].t if self._entries else math.inf

    def next(self) -> list[Entry]:
        """Changes at the time of the next change."""
        return list(takewhile(lambda entry: entry.t == self._entries[0].t, self._entries))

    def take(self, count: int) -> None:
        """Takes out the changes that come first."""
        del self._entries[:count]

    def forget(self, ids: set[int] | None) -> None:
        """Forgets the changes of some bodies, or of all."""
        self._entries = [] if ids is None else [entry for entry in self._entries if entry.id not in ids]
