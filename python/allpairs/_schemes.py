"""Kicks and drifts of the schemes that can be taken back, for trajectories in JAX and PyTorch."""

from __future__ import annotations

from typing import NamedTuple

from . import _native


class Stage(NamedTuple):
    """A kick or a drift of a step, with its share of the time step and its time in the step."""

    kicks: bool
    share: float
    at: float


class Scheme:
    """Kicks and drifts of a step."""

    def __init__(self, name: str) -> None:
        self.stages: list[Stage] = []
        at = 0.0
        for kicks, share in _native.stages(name):
            self.stages.append(Stage(kicks, share, at))
            at += 0.0 if kicks else share
        first, last = self.stages[0], self.stages[-1]
        #: A step without its first stage, and with the first stage of the next one.
        self.joined = [*self.stages[1:-1], last._replace(share=first.share + last.share)]


#: All schemes, in the order that the compiled part has.
SCHEMES = {name: Scheme(name) for name in ("leapfrog", "leapfrog-dkd", "yoshida4", "yoshida6")}
