"""Integrators and their steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Integrator:
    """An integrator and its steps.

    Attributes
    ----------
    name : str
        ``"leapfrog"``, ``"leapfrog-dkd"``, ``"yoshida4"``, ``"yoshida6"``, ``"hermite4"``,
        ``"hermite6"``, ``"euler"`` or ``"damped-euler"``.
    dt : float, str or quantity, optional
        Time step, negative to go back in time; with `eta`, the longest step. If not given, it is
        chosen from the accelerations at the start. For bodies with units, a text such as
        ``"0.1 yr"`` or an astropy quantity is a time with a unit.
    eta : float, optional
        Accuracy of steps that follow the motion (Aarseth's criterion), such as 0.01; for
        hermite4 and hermite6.
    block : bool, optional
        True to give each body its own step, False to give all the same. If no setting asks for
        steps, bodies have their own where they have no softening, and hard pairs or unlike masses.
        If not given, integrator and `eta` are hermite6 with 0.36. From 65536 bodies on they are
        hermite4 with neighbours and 0.04. Fewer than 512 bodies that begin with pairs that are followed
        apart have hermite4 with 0.01. Where a CPU follows pairs apart, they are hermite4 with
        neighbours and 0.01 from 8192 bodies on.
    neighbours : int or "auto", optional
        Number of nearest neighbours. Each step recomputes only their force, and longer steps
        recompute the force of all other bodies. With `block` and hermite4. ``"auto"`` is the root of
        the number of bodies, but at most a 256th of this number and at least 64.
    damping : float, optional
        Fraction of the velocity lost per unit time, for damped-euler.
    """

    name: str
    dt: Any = None
    eta: float | None = None
    block: bool | None = None
    damping: float | None = None
    neighbours: int | str | None = None


def Leapfrog(dt: Any = None) -> Integrator:
    """Kick–drift–kick: second order, symplectic, reversible."""
    return Integrator("leapfrog", dt)


def LeapfrogDKD(dt: Any = None) -> Integrator:
    """Drift–kick–drift: second order, symplectic, reversible."""
    return Integrator("leapfrog-dkd", dt)


def Yoshida4(dt: Any = None) -> Integrator:
    """Three leapfrogs: fourth order, symplectic, reversible."""
    return Integrator("yoshida4", dt)


def Yoshida6(dt: Any = None) -> Integrator:
    """Seven leapfrogs: sixth order, symplectic, reversible."""
    return Integrator("yoshida6", dt)


def Hermite4(
    dt: Any = None,
    *,
    eta: float | None = None,
    block: bool = False,
    neighbours: int | str | None = None,
) -> Integrator:
    """Hermite's scheme with jerks, of fourth order.

    Steps are fixed (`dt`) or follow the motion (`eta`); with `block`, each body has its own step.
    `neighbours` adds the neighbour scheme.
    """
    return Integrator("hermite4", dt, eta, block, neighbours=neighbours)


def Hermite6(dt: Any = None, *, eta: float | None = None, block: bool = False) -> Integrator:
    """Hermite's scheme with jerks and snaps, of sixth order.

    Steps are like the steps of `Hermite4`, but a GPU computes only block time steps (`block`).
    """
    return Integrator("hermite6", dt, eta, block)


def Euler(dt: Any = None) -> Integrator:
    """Semi-implicit Euler: first order, symplectic."""
    return Integrator("euler", dt)


def DampedEuler(dt: Any = None, *, damping: float | None = None) -> Integrator:
    """Euler with a drag, to let bodies settle."""
    return Integrator("damped-euler", dt, damping=damping)
