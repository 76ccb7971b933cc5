"""Functions of the worker: one table for the worker and for the interface of AMUSE.

Types are the first letters of ``int32``, ``float64`` (d), ``bool`` and ``string``. AMUSE's own classes define most of
the functions, and a test compares these with the table. The interface makes the rest from the table.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass


@dataclass(frozen=True)
class Parameter:
    """A setting, which the functions `get_name` and `set_name` read and write."""

    name: str
    type: str
    default: float | int | bool | str
    #: Name in `parameters`, unit and explanation; none where AMUSE defines them.
    public: str = ""
    unit: str = ""
    text: str = ""


#: Settings of the simulation: another value begins it anew.
SETTINGS = [
    Parameter("eps2", "d", 0.0, "epsilon_squared", "length2", "square of the softening length"),
    Parameter(
        "timestep_parameter", "d", 0.03, "timestep_parameter", "", "accuracy of steps that follow the motion (eta)"
    ),
    Parameter("fixed_timestep", "d", 0.0, "fixed_timestep", "time", "length of all steps; 0: steps follow the motion"),
    Parameter("integrator", "s", "hermite4", "integrator", "", "name of an integrator of Allpairs"),
    Parameter("accuracy", "s", "double", "accuracy", "", "error of forces: double, single or fast"),
    Parameter("device", "s", "auto", "device", "", "auto, cpu, cuda, or a GPU such as cuda:1"),
    Parameter("field", "s", "", "field", "", "an external field that also accelerates the particles, as a text"),
    Parameter("orbit", "s", "", "orbit", "", "orbit of the particles' own frame in the field, as a text"),
    Parameter("begin_time", "d", 0.0),
    Parameter(
        "is_time_reversed_allowed", "b", False, "is_time_reversed_allowed", "", "the model may be evolved back in time"
    ),
]
#: Settings of stopping conditions. AMUSE asks every code for the limits of gas, which have no effect here.
LIMITS = [
    Parameter("stopping_condition_timeout_parameter", "d", 4.0),
    Parameter("stopping_condition_number_of_steps_parameter", "i", 1),
    Parameter("stopping_condition_out_of_box_parameter", "d", 0.0),
    Parameter("stopping_condition_out_of_box_use_center_of_mass_parameter", "b", True),
    Parameter("stopping_condition_minimum_density_parameter", "d", -1.0),
    Parameter("stopping_condition_maximum_density_parameter", "d", -1.0),
    Parameter("stopping_condition_minimum_internal_energy_parameter", "d", -1.0),
    Parameter("stopping_condition_maximum_internal_energy_parameter", "d", -1.0),
]
#: Functions that take and return whole arrays: name, types of arguments, types of results.
OF_ARRAYS = '''
new_particle dddddddd i
delete_particle i
get_state i dddddddd
set_state idddddddd
get_mass i d
set_mass id
get_radius i d
set_radius id
get_position i ddd
set_position iddd
get_velocity i ddd
set_velocity iddd
get_acceleration i ddd
get_potential i d
get_gravity_at_point dddd ddd
get_potential_at_point dddd d
'''
#: Functions that are called once for each element of their arguments. A dash: no arguments.
OF_NUMBERS = '''
initialize_code
cleanup_code
commit_parameters
recommit_parameters
commit_particles
recommit_particles
synchronize_model
evolve_model d
set_units s
get_time - d
get_time_step - d
get_kinetic_energy - d
get_potential_energy - d
get_total_mass - d
get_total_radius - d
get_center_of_mass_position - ddd
get_center_of_mass_velocity - ddd
get_number_of_particles - i
get_index_of_first_particle - i
get_index_of_next_particle i i
set_working_directory s
get_working_directory - s
has_stopping_condition i i
enable_stopping_condition i
disable_stopping_condition i
is_stopping_condition_enabled i i
is_stopping_condition_set i i
get_number_of_stopping_conditions_set - i
get_stopping_condition_info i ii
get_stopping_condition_particle_index ii i
'''


@dataclass(frozen=True)
class Function:
    """A function of the worker."""

    name: str
    takes: str
    gives: str
    of_arrays: bool

    @property
    def number(self) -> int:
        """Number by which a message names the function: the absolute value of the signed CRC-32 of its name."""
        crc = zlib.crc32(self.name.encode())
        return min(crc, 2**32 - crc)


def _functions() -> dict[str, Function]:
    found = []
    for table, of_arrays in ((OF_ARRAYS, True), (OF_NUMBERS, False)):
        for row in table.split("\n")[1:-1]:
            name, takes, gives = (row.split() + ["-", "-"])[:3]
            found.append(Function(name, takes.strip("-"), gives.strip("-"), of_arrays))
    for parameter in SETTINGS + LIMITS:
        found.append(Function(f"get_{parameter.name}", "", parameter.type, False))
        found.append(Function(f"set_{parameter.name}", parameter.type, "", False))
    return {function.name: function for function in found}


FUNCTIONS = _functions()
