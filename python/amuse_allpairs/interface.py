"""The side of AMUSE: the class `Allpairs`, a gravity code like AMUSE's own. This module imports AMUSE."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Callable

from amuse.community.interface.gd import (
    GravitationalDynamics,
    GravitationalDynamicsInterface,
    GravityFieldCode,
    GravityFieldInterface,
)
from amuse.community.interface.stopping_conditions import StoppingConditionInterface, StoppingConditions
from amuse.rfi.channel import SocketChannel
from amuse.rfi.core import CodeInterface, LegacyFunctionSpecification, legacy_function
from amuse.support.literature import LiteratureReferencesMixIn
from amuse.units import nbody_system, units

from ._functions import FUNCTIONS, SETTINGS, Function

TYPES = {"i": "int32", "d": "float64", "b": "bool", "s": "string"}
#: Parameters that AMUSE does not define itself.
NAMED = [setting for setting in SETTINGS if setting.public]
UNITS = {"length2": nbody_system.length**2, "time": nbody_system.time}


class Channel(SocketChannel):
    """AMUSE's sockets, to a worker that is a Python file of this package."""

    def get_full_name_of_the_worker(self, interface: Any) -> str:
        return str(Path(__file__).with_name("worker.py"))


def specification(function: Function) -> Callable[[], Any]:
    """AMUSE's description of a function of the table."""

    def made() -> Any:
        described = LegacyFunctionSpecification()
        for letters, direction in ((function.takes, described.IN), (function.gives, described.OUT)):
            for k, letter in enumerate(letters):
                name = "value" if len(letters) == 1 else f"value{k}"
                described.addParameter(name, dtype=TYPES[letter], direction=direction)
        described.result_type = "int32"
        return described

    made.__name__ = function.name
    return made


class Standard(GravitationalDynamicsInterface, GravityFieldInterface, StoppingConditionInterface):
    """Functions that AMUSE describes."""


class Own:
    """Functions that AMUSE does not describe."""


for name, function in FUNCTIONS.items():
    if not hasattr(Standard, name) and not hasattr(CodeInterface, name):
        setattr(Own, name, legacy_function(specification(function)))


class AllpairsInterface(CodeInterface, LiteratureReferencesMixIn, Standard, Own):
    """Direct summation on all cores of a CPU or on NVIDIA GPUs, by Allpairs.

    .. [#] Makino, J. & Aarseth, S. J., *Publications of the Astronomical Society of Japan* , **44**, 141 (1992)
    """

    def __init__(self, **options: Any) -> None:
        if options.setdefault("channel_type", "sockets") != "sockets":
            raise ValueError(f"Allpairs is reached by `channel_type=\"sockets\"`, not {options['channel_type']!r}")
        if options.get("number_of_workers", 1) != 1:
            raise ValueError("Allpairs has one worker, which uses all cores, or the GPUs that `device` names")
        options["initialize_mpi"] = False
        CodeInterface.__init__(self, interpreter_executable=sys.executable, **options)
        LiteratureReferencesMixIn.__init__(self)

    @property
    def channel_factory(self) -> type[Channel]:
        return Channel

    def _check_if_worker_is_up_to_date(self) -> None:
        """The worker is of the same package."""


class Allpairs(GravitationalDynamics, GravityFieldCode):
    """A gravity code of AMUSE that computes by Allpairs: see docs/amuse.md of Allpairs.

    Parameters
    ----------
    convert_nbody : nbody_to_si, optional
        Converter of units, as other gravity codes of AMUSE take it.
    **options
        Options of AMUSE's codes, such as ``redirection="none"``.
    """

    def __init__(self, convert_nbody: Any = None, **options: Any) -> None:
        self.stopping_conditions = StoppingConditions(self)
        GravitationalDynamics.__init__(self, AllpairsInterface(**options), convert_nbody, **options)

    def initialize_code(self) -> Any:
        """Begins the code, and tells it the units of the converter, which texts such as a field's need."""
        result = self.overridden().initialize_code()
        if self.unit_converter is not None:
            to_si = self.unit_converter.to_si
            length = to_si(1 | nbody_system.length).value_in(units.parsec)
            mass = to_si(1 | nbody_system.mass).value_in(units.MSun)
            speed = to_si(1 | nbody_system.speed).value_in(units.kms)
            self.set_units(f"{length!r}pc,{mass!r}Msun,{speed!r}km/s")
        return result

    def define_state(self, handler: Any) -> None:
        GravitationalDynamics.define_state(self, handler)
        GravityFieldCode.define_state(self, handler)
        handler.add_method("RUN", "get_acceleration")
        self.stopping_conditions.define_state(handler)

    def define_parameters(self, handler: Any) -> None:
        GravitationalDynamics.define_parameters(self, handler)
        for setting in NAMED:
            unit = UNITS.get(setting.unit)
            default = setting.default if unit is None else setting.default | unit
            names = (f"get_{setting.name}", f"set_{setting.name}", setting.public)
            handler.add_method_parameter(*names, setting.text, default_value=default)
        self.stopping_conditions.define_parameters(handler)

    def define_methods(self, handler: Any) -> None:
        GravitationalDynamics.define_methods(self, handler)
        for setting in NAMED:
            unit = UNITS.get(setting.unit, handler.NO_UNIT)
            handler.add_method(f"get_{setting.name}", (), (unit, handler.ERROR_CODE))
            handler.add_method(f"set_{setting.name}", (unit,), (handler.ERROR_CODE,))
        handler.add_method("set_units", (handler.NO_UNIT,), (handler.ERROR_CODE,))
        self.stopping_conditions.define_methods(handler)

    def define_particle_sets(self, handler: Any) -> None:
        GravitationalDynamics.define_particle_sets(self, handler)
        self.stopping_conditions.define_particle_set(handler)
