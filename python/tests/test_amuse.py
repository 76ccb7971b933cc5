"""The worker of AMUSE: conversations by its protocol, without AMUSE. And AMUSE's side, where AMUSE is installed."""

import math
import re
import socket
import struct
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import allpairs as ap
import amuse_allpairs
from amuse_allpairs._engine import overlapping
from amuse_allpairs._functions import FUNCTIONS

AMUSE_PAGE = Path(__file__).parents[2] / "docs/amuse.md"
WORKER = Path(amuse_allpairs.__file__).with_name("worker.py")
KINDS = {"i": "i4", "l": "i8", "f": "f4", "d": "f8", "b": "i1"}
COLLISION, PAIR, TIMEOUT, STEPS, BOX = 0, 1, 3, 4, 5


class Client:
    """Does what AMUSE does: starts a worker, waits for its connection and calls functions."""

    def __init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            server.settimeout(60)
            port = str(server.getsockname()[1])
            self.process = subprocess.Popen([sys.executable, WORKER, port, "127.0.0.1", "false"], stderr=subprocess.DEVNULL)
            self.socket, _ = server.accept()
        self.socket.settimeout(60)

    def read(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            more = self.socket.recv(count - len(data))
            assert more, "the worker is gone"
            data += more
        return data

    def exchange(self, request: bytes) -> tuple[tuple[int, ...], dict[str, Any]]:
        """Sends a message: the header of the reply, and its arrays."""
        self.socket.sendall(request)
        header = struct.unpack("4b10i", self.read(44))
        arrays: dict[str, Any] = {}
        for (letter, kind), count in zip(KINDS.items(), header[7:]):
            arrays[letter] = np.frombuffer(self.read(count * np.dtype(kind).itemsize), kind)
        lengths = np.frombuffer(self.read(4 * header[12]), "i4")
        arrays["s"] = [self.read(length + 1)[:-1].decode() for length in lengths]
        return header, arrays

    def __call__(self, name: str, *arguments: Any) -> Any:
        """Calls a function: its results, after the result code."""
        function = FUNCTIONS[name]
        assert len(arguments) == len(function.takes), name
        count = max([1, *(len(argument) for argument in arguments if np.ndim(argument))])
        data, counts = b"", []
        for letter, kind in KINDS.items():
            mine = [np.broadcast_to(a, count) for a, takes in zip(arguments, function.takes) if takes == letter]
            data += b"".join(np.asarray(array, kind).tobytes() for array in mine)
            counts.append(count * len(mine))
        texts = [a.encode() for a, takes in zip(arguments, function.takes) if takes == "s"]
        data += b"".join(struct.pack("i", len(text)) for text in texts) + b"".join(text + b"\0" for text in texts)
        crc = zlib.crc32(name.encode())
        number = abs(crc - (crc >> 31 << 32))
        request = struct.pack("4b10i", sys.byteorder == "big", 0, 0, 0, 7, number, count, *counts, len(texts), 0)
        header, arrays = self.exchange(request + data)
        assert header[4:7] == (7, number, count)
        if header[1]:
            raise RuntimeError(arrays["s"][0])
        code, arrays["i"] = arrays["i"][:count], arrays["i"][count:]
        results = []
        for letter in function.gives:
            results.append(arrays[letter][:count])
            arrays[letter] = arrays[letter][count:]
        assert all(len(rest) == 0 for rest in arrays.values())
        if not any(np.ndim(argument) for argument in arguments):
            code, results = code[0], [result[0] for result in results]
        return (code, *results) if results else code

    def values(self, name: str, *arguments: Any) -> Any:
        """Results of a function that must succeed: of one, without a tuple."""
        found = self(name, *arguments)
        code, *results = found if isinstance(found, tuple) else (found,)
        assert np.all(code == 0), name
        return results[0] if len(results) == 1 else tuple(results)

    def add(self, bodies: ap.Bodies, radius: Any = 0.0) -> Any:
        return self.values("new_particle", bodies.m, *bodies.pos.T, *bodies.vel.T, radius)

    def all(self, name: str, ids: Any) -> Any:
        """A vector of each particle, (N, 3)."""
        return np.column_stack(self.values(name, ids))

    def energy(self) -> float:
        return float(self.values("get_kinetic_energy") + self.values("get_potential_energy"))

    def stop(self) -> None:
        header, arrays = self.exchange(struct.pack("4b10i", sys.byteorder == "big", 0, 0, 0, 9, 0, 1, *[0] * 7))
        assert header[4:] == (9, 0, 1, *[0] * 7)
        assert self.process.wait(10) == 0
        self.socket.close()


@pytest.fixture(scope="module")
def worker() -> Iterator[Client]:
    client = Client()
    yield client
    client.stop()


@pytest.fixture
def code(worker: Client) -> Client:
    """A worker at the beginning of a run, on a CPU."""
    worker.values("initialize_code")
    worker.values("set_device", "cpu")
    return worker


@pytest.mark.skipif(sys.byteorder == "big", reason="the messages were recorded on a little-endian machine")
def test_a_conversation_with_amuse_is_replayed() -> None:
    """Each reply has the bytes of the reply that AMUSE understood."""
    lines = Path(__file__).with_name("amuse_conversation.txt").read_text().splitlines()[1:]
    messages = [(line.split()[0], bytes.fromhex(line.split()[1])) for line in lines]
    client = Client()
    for way, data in messages:
        if way == "out":
            client.socket.sendall(data)
        else:
            assert client.read(len(data)).hex() == data.hex()
    assert len(messages) == 26 and client.process.wait(10) == 0
    client.socket.close()


def test_a_cluster_lives(code: Client) -> None:
    cluster = ap.plummer(100, seed=1)
    code.values("set_eps2", 1e-4)
    assert code.values("get_eps2") == 1e-4
    code.values("commit_parameters")
    ids = code.add(cluster, 0.001)
    assert ids.tolist() == list(range(100))
    code.values("commit_particles")
    assert code.values("get_number_of_particles") == 100
    state = np.column_stack(code.values("get_state", ids))
    assert np.array_equal(state[:, 0], cluster.m) and np.array_equal(state[:, 1:4], cluster.pos)
    assert np.array_equal(state[:, 4:7], cluster.vel) and np.all(state[:, 7] == 0.001)
    energy = cluster.energy(0.01)
    assert code.values("get_kinetic_energy") == pytest.approx(energy.kinetic)
    assert code.values("get_potential_energy") == pytest.approx(energy.potential)

    code.values("evolve_model", 0.25)
    assert code.values("get_time") == 0.25
    assert code.energy() == pytest.approx(energy.total, rel=1e-4)
    alone = ap.Simulation(cluster, softening=0.01, integrator=ap.Hermite4(eta=0.03, block=True), accuracy="double", device="cpu")
    alone.integrate(0.25)
    assert np.array_equal(code.all("get_position", ids), alone.bodies.pos)
    assert np.array_equal(code.all("get_velocity", ids), alone.bodies.vel)
    assert np.allclose(code.all("get_acceleration", ids), alone.bodies.accelerations(0.01, device="cpu"))
    assert np.allclose(code.values("get_potential", ids), alone.bodies.potential(0.01))
    assert code.values("get_total_mass") == pytest.approx(1)
    assert np.allclose(code.values("get_center_of_mass_position"), cluster.m @ alone.bodies.pos)
    assert 0 < code.values("get_time_step") < 1 and code.values("get_total_radius") > 1

    # As a bridge does: the simulation goes on, with the bits of one that was changed in the same way.
    code.values("set_velocity", ids, *(alone.bodies.vel + [0.0, 0.0, 0.1]).T)
    code.values("set_mass", [3, 7], [0.02, 0.03])
    bodies = alone.bodies
    vel = bodies.vel + [0.0, 0.0, 0.1]
    mass = bodies.m.copy()
    mass[[3, 7]] = 0.02, 0.03
    alone.set(bodies.id, m=mass, vel=vel)
    code.values("evolve_model", 0.3)
    alone.integrate(0.3)
    assert np.array_equal(code.all("get_position", ids), alone.bodies.pos)

    code.values("delete_particle", [0, 50, 99])
    with pytest.raises(RuntimeError, match="no particle has the index 50"):
        code("get_mass", [49, 50])
    with pytest.raises(RuntimeError, match="no particle has the index 200"):
        code("set_mass", [200], [1.0])
    more = ap.Bodies([0.01, 0.02], [[3.0, 0, 0], [0, 3.0, 0]])
    assert code.add(more).tolist() == [100, 101]
    code.values("recommit_particles")
    assert code.values("get_number_of_particles") == 99
    alone.remove([0, 50, 99])
    alone.add(more, ids=[100, 101])
    code.values("evolve_model", 0.35)
    alone.integrate(0.35)
    assert np.array_equal(code.all("get_position", alone.bodies.id), alone.bodies.pos)
    order, id = [], code.values("get_index_of_first_particle")
    for _ in range(98):
        order.append(id)
        id = code.values("get_index_of_next_particle", id)
    assert [*order, id] == alone.bodies.id.tolist()
    assert code("get_index_of_next_particle", id) == (1, 0)
    code.values("cleanup_code")
    assert code.values("get_number_of_particles") == 0


def test_positions_and_states_are_set(code: Client) -> None:
    ids = code.add(ap.two_body())
    energy = code.energy()
    code.values("evolve_model", 1.0)
    assert code.energy() == pytest.approx(energy, rel=1e-6)
    code.values("set_state", ids, [1.0, 2.0], [1.0, -0.5], 0.0, 0.0, 0.0, [0.5, -0.25], 0.0, [0.1, 0.2])
    assert code.values("get_radius", ids).tolist() == [0.1, 0.2]
    code.values("set_radius", ids, 0.3)
    code.values("set_position", ids, [1.5, -0.75], 0.0, 0.0)
    assert code.values("get_state", 1) == (2.0, -0.75, 0.0, 0.0, 0.0, -0.25, 0.0, 0.3)
    energy = code.energy()
    assert energy == pytest.approx(0.5 * 0.25 + 0.0625 - 2 / 2.25)
    code.values("evolve_model", 2.0)
    assert code.energy() == pytest.approx(energy, rel=1e-6)
    assert code.values("get_time") == 2.0


def test_nothing_or_little_is_evolved(code: Client) -> None:
    """No particle, one, particles without mass alone and among others."""
    code.values("evolve_model", 1.0)
    assert code.values("get_time") == 1.0
    assert code.values("get_potential_energy") == 0
    (first,) = code.add(ap.Bodies(1.0, [[0.0, 0.0, 0.0]], [[1.0, -2.0, 3.0]]))
    code.values("evolve_model", 2.0)
    assert np.allclose(code.values("get_position", first), [1, -2, 3])
    assert code.values("get_kinetic_energy") == 7 and code.values("get_potential_energy") == 0
    assert code.values("get_gravity_at_point", 0.0, 2.0, -2.0, 3.0) == (-1, 0, 0)
    assert code.values("get_potential_at_point", 0.0, 3.0, -2.0, 3.0) == -0.5
    code.values("set_mass", [first], [0.0])
    code.add(ap.Bodies(0.0, [[0.0, 5.0, 0.0]], [[0.0, 1.0, 0.0]]))
    code.values("evolve_model", 3.0)
    assert np.allclose(code.all("get_position", [0, 1]), [[2, -4, 6], [0, 6, 0]])
    assert code.values("get_gravity_at_point", 0.0, 2.0, -2.0, 3.0) == (0, 0, 0)
    # A circle about a mass, which it does not pull.
    code.values("delete_particle", [0, 1])
    assert code.add(ap.Bodies([1.0, 0.0], [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]], [[0.0, 0.0, 0.0], [0.0, 1.0, 0.0]])).tolist() == [2, 3]
    code.values("evolve_model", 3.0 + math.pi)
    assert np.allclose(code.all("get_position", [2, 3]), [[0, 0, 0], [-1, 0, 0]], atol=1e-3)
    assert code.values("get_position", 2) == (0, 0, 0)
    code.values("delete_particle", [2, 3])
    assert code("get_index_of_first_particle") == (1, 0)


def test_particles_without_mass_come_among_regularised_pairs(code: Client) -> None:
    ids = code.add(ap.plummer(20, seed=1))
    code.values("evolve_model", 0.1)
    code.values("set_mass", [4], 0.0)
    code.add(ap.Bodies(0.0, [[0.5, 0.0, 0.0]]))
    code.values("evolve_model", 0.2)
    assert code.values("get_mass", ids)[4] == 0 and code.values("get_number_of_particles") == 21


def test_settings_begin_the_simulation_anew(code: Client) -> None:
    code.add(ap.plummer(10, seed=1))
    code.values("set_begin_time", 5.0)
    assert code.values("get_time") == 5.0
    code.values("evolve_model", 5.1)
    for name, value in [("integrator", "yoshida4"), ("fixed_timestep", 0.01), ("accuracy", "single"), ("eps2", 0.01)]:
        code.values(f"set_{name}", value)
        assert code.values(f"get_{name}") == value
    code.values("evolve_model", 5.2)
    assert code.values("get_time") == 5.2 and code.values("get_time_step") == 0.01
    with pytest.raises(RuntimeError, match="has been evolved to 5.2"):
        code("set_begin_time", 1.0)
    with pytest.raises(RuntimeError, match="goes back to 5.0 only with"):
        code("evolve_model", 5.0)
    code.values("evolve_model", np.nextafter(5.2, 0))
    assert code.values("get_time") == 5.2
    code.values("set_integrator", "yoshida5")
    with pytest.raises(RuntimeError, match="did you mean 'yoshida6'"):
        code("evolve_model", 5.3)
    code.values("set_integrator", "yoshida4")
    code.values("evolve_model", 5.3)
    assert code.values("get_time") == 5.3


def test_a_model_goes_back_in_time(code: Client) -> None:
    cluster = ap.plummer(10, seed=3)
    ids = code.add(cluster, 1e-3)
    code.values("set_eps2", 0.01)
    code.values("evolve_model", 0.2)
    kicked = code.all("get_velocity", ids) + [0.0, 0.0, 1.0]
    code.values("set_is_time_reversed_allowed", True)
    code.values("evolve_model", 0.1)
    code.values("set_velocity", ids, *(code.all("get_velocity", ids) + [0.0, 0.0, 1.0]).T)
    code.values("evolve_model", 0.0)
    assert code.values("get_time") == 0.0
    assert np.allclose(code.all("get_position", ids), cluster.pos - [0.0, 0.0, 0.1], atol=1e-5)
    assert np.allclose(code.all("get_velocity", ids), cluster.vel + [0.0, 0.0, 1.0], atol=1e-4)
    code.values("evolve_model", 0.2)
    assert np.allclose(code.all("get_velocity", ids), kicked, atol=1e-4)
    code.values("set_field", "point:mass=1,x=9")
    with pytest.raises(RuntimeError, match="in a field does not go back"):
        code("evolve_model", 0.1)
    # One that drifts meets another one on its way back.
    code.values("set_field", "")
    code.values("delete_particle", ids)
    bodies = head_on()
    bodies.m = 0.0
    code.add(ap.Bodies(0.0, bodies.pos, -bodies.vel), 0.05)
    code.values("enable_stopping_condition", COLLISION)
    code.values("evolve_model", -2.0)
    assert found(code) == [(COLLISION, (10, 11))] and code.values("get_position", 12) == (0.0, 40.0, 0.0)


def test_a_field_with_units(code: Client) -> None:
    """One particle on a circle, in units of 2 pc and 4 km/s."""
    code.values("set_units", f"2.0pc,{2 * 4**2 / 4.30091e-3!r}Msun,4.0km/s")
    code.values("set_field", "point:mass=1e6Msun")
    speed = (4.30091e-3 * 1e6 / 20) ** 0.5 / 4
    ids = code.add(ap.Bodies(1e-3, [[10.0, 0, 0]], [[0, speed, 0]]))
    code.values("evolve_model", math.pi * 10 / speed)
    assert np.allclose(code.all("get_position", ids), [[-10, 0, 0]], atol=0.02)


def head_on(distance: float = 1.0, speed: float = 1.0) -> ap.Bodies:
    """Two particles that approach each other along x, and one far away."""
    pos = [[-distance / 2, 0.0, 0.0], [distance / 2, 0.0, 0.0], [0.0, 40.0, 0.0]]
    return ap.Bodies(1e-3, pos, [[speed / 2, 0.0, 0.0], [-speed / 2, 0.0, 0.0], [0.0, 0.0, 0.0]])


def found(code: Client) -> list[tuple[int, tuple[int, ...]]]:
    """Stopping conditions that are set, with their particles."""
    conditions = []
    for index in range(code.values("get_number_of_stopping_conditions_set")):
        kind, count = code.values("get_stopping_condition_info", index)
        ids = [code.values("get_stopping_condition_particle_index", index, column) for column in range(count)]
        conditions.append((int(kind), tuple(ids)))
    return conditions


def test_collisions_stop_the_model(code: Client) -> None:
    code.add(head_on(), 0.05)
    code.values("enable_stopping_condition", COLLISION)
    assert code.values("is_stopping_condition_enabled", COLLISION) == 1
    code.values("evolve_model", 0.5)
    assert found(code) == [] and code.values("is_stopping_condition_set", COLLISION) == 0
    code.values("evolve_model", 2.0)
    assert found(code) == [(COLLISION, (0, 1))] and code.values("is_stopping_condition_set", COLLISION) == 1
    now = code.values("get_time")
    assert 0.85 < now < 1.0
    with pytest.raises(RuntimeError, match="none with the number 1"):
        code("get_stopping_condition_info", 1)
    # Those that still overlap are reported after a step, until somebody does something about them.
    code.values("set_position", [0, 1], [-0.01, 0.01], 0.0, 0.0)
    for _ in range(2):
        code.values("evolve_model", 2.0)
        assert found(code) == [(COLLISION, (0, 1))]
        assert now < code.values("get_time") < 1.0
        now = code.values("get_time")
    code.values("delete_particle", [0, 1])
    (merged,) = code.add(ap.Bodies(2e-3, [[0.0, 0.0, 0.0]]), 0.07)
    code.values("evolve_model", 2.0)
    assert found(code) == [] and code.values("get_time") == 2.0
    # The radii count again, of a new particle and of an old one.
    code.add(ap.Bodies(1e-3, [[0.5, 0.0, 0.0]], [[-1.0, 0.0, 0.0]]), 0.01)
    code.values("evolve_model", 4.0)
    assert found(code) == [(COLLISION, (merged, 4))]
    code.values("disable_stopping_condition", COLLISION)
    code.values("set_velocity", [4], 1.0, 0.0, 0.0)
    code.values("evolve_model", 4.0)
    assert found(code) == [] and code.values("get_time") == 4.0


def test_no_fast_collision_is_missed_in_block_steps(code: Client) -> None:
    cluster = ap.plummer(20, seed=2)
    ids = code.add(cluster, 1e-5)
    code.values("enable_stopping_condition", COLLISION)
    code.values("evolve_model", 0.01)
    target = np.array(code.values("get_position", int(ids[5])))
    with_speed = ap.Bodies(1e-6, [target + [0.05, 0.0, 0.0]], [[-200.0, 0.0, 0.0]])
    (new,) = code.add(with_speed, 1e-3)
    code.values("evolve_model", 0.02)
    assert found(code) == [(COLLISION, (5, new))]


def test_massless_particles_collide(code: Client) -> None:
    bodies = head_on()
    bodies.m = 0.0
    code.add(bodies, 0.05)
    code.values("enable_stopping_condition", COLLISION)
    code.values("evolve_model", 5.0)
    assert found(code) == [(COLLISION, (0, 1))]


def test_a_box_steps_and_a_timeout_stop_the_model(code: Client) -> None:
    """The box as of AMUSE's generic test of gravity codes."""
    bodies = ap.Bodies(1.0, [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [2.0, 0.0, 0.0]], [[0.0, 1.0, 0.0], [0.0, -1.0, 0.0], [2.0, 0.0, 0.0]])
    code.add(bodies)
    code.values("set_stopping_condition_out_of_box_parameter", 2.0)
    code.values("enable_stopping_condition", BOX)
    code.values("evolve_model", 3.0)
    assert found(code) == [(BOX, (2,))]
    x = code.values("get_position", [0, 1, 2])[0]
    assert 2.0 < x[2] - x.mean() < 2.2 and code.values("get_time") < 1.1
    code.values("set_stopping_condition_out_of_box_use_center_of_mass_parameter", False)
    code.values("set_stopping_condition_out_of_box_parameter", 4.0)
    code.values("evolve_model", 3.0)
    assert found(code) == [(BOX, (2,))] and 4.0 < code.values("get_position", 2)[0] < 4.2
    code.values("disable_stopping_condition", BOX)

    code.values("enable_stopping_condition", STEPS)
    code.values("set_stopping_condition_number_of_steps_parameter", 3)
    code.values("set_fixed_timestep", 0.125)
    before = code.values("get_time")
    code.values("evolve_model", 3.0)
    assert found(code) == [(STEPS, ())] and code.values("get_time") == pytest.approx(before + 0.375)
    code.values("disable_stopping_condition", STEPS)

    code.values("enable_stopping_condition", TIMEOUT)
    code.values("set_stopping_condition_timeout_parameter", 1e-9)
    code.values("evolve_model", 3.0)
    assert found(code) == [(TIMEOUT, ())] and code.values("get_time") == pytest.approx(before + 0.5)
    assert code.values("has_stopping_condition", [COLLISION, PAIR, TIMEOUT, STEPS, BOX]).tolist() == [1, 0, 1, 1, 1]
    with pytest.raises(RuntimeError, match="no stopping condition of the kind 1"):
        code("enable_stopping_condition", PAIR)


def test_overlapping_particles_are_found() -> None:
    random = np.random.default_rng(1)
    for n in (0, 1, 2, 60):
        pos, radii = random.normal(size=(n, 3)), random.uniform(0, 0.4, n) * random.integers(0, 2, n)
        all = [(i, j) for i in range(n) for j in range(i + 1, n) if np.linalg.norm(pos[i] - pos[j]) <= radii[i] + radii[j]]
        assert sorted(map(tuple, overlapping(pos, radii).tolist())) == all
    assert len(all) > 3
    assert len(overlapping(pos, np.zeros(60))) == 0


def test_errors_are_texts_and_the_worker_lives_on(code: Client) -> None:
    header, arrays = code.exchange(struct.pack("4b10i", sys.byteorder == "big", 0, 0, 0, 3, 12345, 1, *[0] * 7))
    assert header[1] == 1 and header[4:7] == (3, 12345, 1)
    assert "no function with the number 12345" in arrays["s"][0]
    ids = code.add(ap.Bodies(1.0, [[0.0, 0, 0], [1.0, 0, 0]]))
    code.values("set_position", ids, math.nan, 0.0, 0.0)
    with pytest.raises(RuntimeError, match="NaN|nan"):
        code("evolve_model", 1.0)
    code.values("set_position", ids, [0.0, 1.0], 0.0, 0.0)
    code.values("evolve_model", 0.1)
    assert code.values("get_time") == 0.1
    code.values("set_position", ids, 0.5, 0.5, 0.5)
    with pytest.raises(RuntimeError, match="same place"):
        code("evolve_model", 0.2)


def test_the_worker_needs_no_amuse_and_ends_with_the_connection() -> None:
    names = "import sys, amuse_allpairs._worker; print([n for n in ('amuse', 'mpi4py') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", names], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
    with pytest.raises(AttributeError, match="'Hermite'"):
        amuse_allpairs.Hermite
    client = Client()
    client.values("set_working_directory", "/")
    assert client.values("get_working_directory") == "/"
    client.socket.close()
    assert client.process.wait(10) == 0


def amuse() -> Any:
    """AMUSE's side, where AMUSE is installed. A checkout of AMUSE is enough: PYTHONPATH=AMUSE/src, and docutils."""
    pytest.importorskip("amuse.rfi.core", reason="AMUSE is not installed")
    from amuse_allpairs import interface

    return interface


def particles_of(cluster: ap.Bodies, converter: Any) -> Any:
    """Bodies as particles of AMUSE with units."""
    from amuse.datamodel import Particles
    from amuse.units import nbody_system

    particles = Particles(len(cluster))
    particles.mass = converter.to_si(cluster.m | nbody_system.mass)
    particles.position = converter.to_si(cluster.pos | nbody_system.length)
    particles.velocity = converter.to_si(cluster.vel | nbody_system.speed)
    particles.radius = converter.to_si(0 | nbody_system.length)
    return particles


def test_the_table_is_that_of_amuse() -> None:
    interface = amuse()
    letters = {kind: letter for letter, kind in interface.TYPES.items()}
    found = {}
    for name in dir(interface.AllpairsInterface):
        described = getattr(interface.AllpairsInterface, name)
        if isinstance(described, interface.legacy_function) and not name.startswith(("internal__", "_")):
            made = described.specification
            takes = "".join(letters[p.datatype] for p in made.parameters if p.direction is made.IN)
            gives = "".join(letters[p.datatype] for p in made.parameters if p.direction is made.OUT)
            found[name] = (made.id, takes, gives)
    assert found == {name: (of.number, of.takes, of.gives) for name, of in FUNCTIONS.items()}


def test_a_cluster_in_amuse() -> None:
    amuse()
    from amuse.units import nbody_system, units

    converter = nbody_system.nbody_to_si(100 | units.MSun, 1 | units.parsec)
    particles = particles_of(ap.plummer(50, seed=1), converter)
    gravity = amuse_allpairs.Allpairs(converter)
    try:
        gravity.parameters.epsilon_squared = (0.01 | units.parsec) ** 2
        gravity.parameters.device = "cpu"
        gravity.parameters.field = "point:mass=1Msun,x=1kpc"
        assert gravity.parameters.timestep_parameter == 0.03
        gravity.particles.add_particles(particles)
        energy = gravity.kinetic_energy + gravity.potential_energy
        gravity.evolve_model(1 | units.Myr)
        assert abs(gravity.model_time.value_in(units.Myr) - 1) < 1e-12
        assert abs((gravity.kinetic_energy + gravity.potential_energy) / energy - 1) < 1e-3
        gravity.particles.velocity += [1, 0, 0] | units.kms
        gravity.particles.remove_particle(particles[3])
        gravity.evolve_model(2 | units.Myr)
        moved = gravity.particles.center_of_mass().value_in(units.parsec)
        assert len(gravity.particles) == 49 and moved[0] == pytest.approx(1.02, abs=0.05)
        gravity.parameters.field = "nfw:mess=1"
        with pytest.raises(Exception, match="mass"):
            gravity.evolve_model(3 | units.Myr)
    finally:
        gravity.stop()
    with pytest.raises(ValueError, match="sockets"):
        amuse_allpairs.Allpairs(channel_type="mpi")


def test_a_bridge_and_a_collision_in_amuse() -> None:
    amuse()
    from amuse.couple.bridge import Bridge
    from amuse.units import nbody_system, units

    converter = nbody_system.nbody_to_si(100 | units.MSun, 1 | units.parsec)
    one, two = (particles_of(ap.plummer(n, seed=n), converter) for n in (30, 40))
    two.x += 4 | units.parsec
    codes = []
    try:
        for particles in (one, two):
            codes.append(amuse_allpairs.Allpairs(converter))
            codes[-1].parameters.epsilon_squared = (0.1 | units.parsec) ** 2
            codes[-1].parameters.device = "cpu"
            codes[-1].particles.add_particles(particles)
        bridge = Bridge(use_threading=False)
        bridge.timestep = 0.05 | units.Myr
        bridge.add_system(codes[0], (codes[1],))
        bridge.add_system(codes[1], (codes[0],))
        energy = bridge.kinetic_energy + bridge.potential_energy
        begun = bridge.particles.center_of_mass()
        bridge.evolve_model(1 | units.Myr)
        assert abs((bridge.kinetic_energy + bridge.potential_energy) / energy - 1) < 1e-4
        moved = (bridge.particles.center_of_mass() - begun).value_in(units.parsec)
        drift = ((one.mass * one.vx).sum() + (two.mass * two.vx).sum()) / (one.total_mass() + two.total_mass())
        assert moved[0] == pytest.approx((drift * (1 | units.Myr)).value_in(units.parsec), abs=1e-6)

        codes[0].particles.radius = 0.3 | units.parsec
        condition = codes[0].stopping_conditions.collision_detection
        condition.enable()
        codes[0].evolve_model(2 | units.Myr)
        assert condition.is_set() and codes[0].model_time < (2 | units.Myr)
        first, second = condition.particles(0)[0], condition.particles(1)[0]
        apart = (first.position - second.position).length()
        assert first != second and apart < (0.7 | units.parsec)
    finally:
        for code in codes:
            code.stop()


@pytest.mark.parametrize("code", ["SeBa", "SSE"])
def test_the_script_of_stars_that_evolve(code: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    amuse()
    pytest.importorskip(f"amuse.community.{code.lower()}.interface", reason=f"`pip install amuse-{code.lower()}` is missing")
    blocks = re.findall(r"^```text\n(.*?)^```$", AMUSE_PAGE.read_text(), re.M | re.S)
    (script,) = [block for block in blocks if "SeBa" in block]
    if code == "SSE":
        kick = "remnant.velocity += star.natal_kick_velocity"
        assert kick in script
        script = script.replace(kick, "pass").replace("SeBa", "SSE").replace("seba", "sse")
    monkeypatch.chdir(tmp_path)
    np.random.seed(1)
    names: dict[str, Any] = {}
    # The last look at the masses comes before the codes stop.
    script, _ = script.split("evolution.stop()")
    exec(compile(script, AMUSE_PAGE.name, "exec"), names)
    evolution, gravity = names["evolution"], names["gravity"]
    try:
        units = names["units"]
        of_gravity, of_stars = (of.particles.mass.sum().value_in(units.MSun) for of in (gravity, evolution))
        begun = names["masses"].sum().value_in(units.MSun)
        assert begun - of_stars > 0.05 * begun
        assert abs((begun - of_gravity) / (begun - of_stars) - 1) < 1e-6
        assert gravity.model_time.value_in(units.Myr) == pytest.approx(20, abs=1e-9)
    finally:
        evolution.stop()
        gravity.stop()
