"""Arrays of other libraries: on the host, and on a GPU, for which the emulator stands here."""

import ctypes
import sys
from types import ModuleType, SimpleNamespace
from typing import Any, Iterator

import numpy as np
import pytest

import allpairs as ap
from allpairs import _in_place

#: Calls of the last test on the pretended GPU, in order.
HISTORY: list[str] = []
#: The caller's stream there.
STREAM = 77


class HostArray:
    """An array of which nothing is known but DLPack's protocol."""

    def __init__(self, array: np.ndarray) -> None:
        self.array, self.dtype = array, array.dtype

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()

    def __dlpack__(self, *, stream: object = None, **options: Any) -> Any:
        return self.array.__dlpack__(stream=stream, **options)


class GpuArray:
    """Stands for the arrays of PyTorch and CuPy; operators work on the host's memory."""

    def __init__(self, array: np.ndarray, number: int = 0, known_as: str = "") -> None:
        self.array, self.number, self.known_as = np.asarray(array), number, known_as
        self.requires_grad = False

    shape = property(lambda self: self.array.shape)
    dtype = property(lambda self: self.array.dtype)
    device = property(lambda self: SimpleNamespace(number=self.number))

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self.number

    def __dlpack__(self, *, stream: int | None = None) -> "GpuArray":
        if stream != -1:
            HISTORY.append(f"{stream} waits for {STREAM}")
        return self

    def __getitem__(self, index: Any) -> "GpuArray":
        if self.known_as:
            HISTORY.append(f"read {self.known_as}")
        return GpuArray(self.array[index], self.number)

    def __setitem__(self, index: Any, value: Any) -> None:
        HISTORY.append(f"write {self.known_as}")
        self.array[index] = value.array if isinstance(value, GpuArray) else value

    def __mul__(self, factor: float) -> "GpuArray":
        return GpuArray(self.array * self.array.dtype.type(factor), self.number)

    def __abs__(self) -> "GpuArray":
        return GpuArray(abs(self.array), self.number)

    def __float__(self) -> float:
        return float(self.array)

    def max(self) -> "GpuArray":
        return GpuArray(self.array.max(), self.number)

    def min(self) -> "GpuArray":
        return GpuArray(self.array.min(), self.number)

    def astype(self, dtype: Any) -> "GpuArray":
        return GpuArray(self.array.astype(dtype), self.number)

    def cpu(self) -> np.ndarray:
        return self.array

    def to(self, place: Any) -> "GpuArray":
        if isinstance(place, np.dtype):
            return self.astype(place)
        return GpuArray(self.array, place.number)


class Current:
    """Makes a GPU the current one."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __enter__(self) -> None:
        HISTORY.append(f"on {self.number}")

    def __exit__(self, *_: object) -> None:
        HISTORY.append("off")


def of_memory(memory: Any) -> GpuArray:
    at = memory.__cuda_array_interface__
    dtype = np.dtype(at["typestr"])
    size = int(np.prod(at["shape"])) * dtype.itemsize
    bytes = (ctypes.c_char * size).from_address(at["data"][0])
    array = GpuArray(np.frombuffer(bytes, dtype).reshape(at["shape"]), known_as="memory")
    array.keeper = memory  # type: ignore[attr-defined]
    return array


def of_dlpack(source: Any) -> Any:
    if isinstance(source, np.ndarray):
        return GpuArray(source)
    return source.__dlpack__(stream=STREAM)


@pytest.fixture(autouse=True)
def libraries(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    host, device = ModuleType("hostlike"), ModuleType("gpulike")
    host.from_dlpack = lambda source: HostArray(np.from_dlpack(source))  # type: ignore[attr-defined]
    device.from_dlpack, device.as_tensor = of_dlpack, of_memory  # type: ignore[attr-defined]
    for module, array in ((host, HostArray), (device, GpuArray)):
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setattr(array, "__module__", module.__name__)
    monkeypatch.setitem(_in_place._LIBRARIES, "gpulike", lambda _, number: Current(number))
    monkeypatch.setattr(_in_place, "device_name", lambda _: "emulator")
    HISTORY.clear()
    yield
    _in_place._rooms.clear()


def cluster(n: int = 100, dtype: Any = np.float32) -> tuple[np.ndarray, np.ndarray]:
    bodies = ap.plummer(n, seed=3)
    return bodies.pos.astype(dtype), (bodies.m * (1 + np.arange(n) % 7)).astype(dtype)


def error(found: np.ndarray, pos: np.ndarray, m: np.ndarray, eps: float, G: float = 1.0) -> float:
    exact = ap.accelerations(pos.astype(float), m.astype(float), eps, G=G, device="cpu")
    return float(np.sqrt(((found - exact) ** 2).sum() / (exact**2).sum()))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arrays_of_the_host_come_back_as_they_are(dtype: Any) -> None:
    pos, m = cluster(dtype=dtype)
    given = HostArray(pos), HostArray(m)
    exact = ap.accelerations(pos, m, 0.05, device="cpu")
    found = ap.accelerations(*given, 0.05, device="cpu")
    assert isinstance(found, HostArray) and found.dtype == dtype
    assert (found.array == exact.astype(dtype)).all()
    pot = ap.potential(*given, 0.05)
    assert isinstance(pot, HostArray) and (pot.array == ap.potential(pos, m, 0.05).astype(dtype)).all()
    acc, pot = ap.field_at(HostArray(pos + 1), *given, 0.05)
    assert isinstance(acc, HostArray) and acc.array.shape == pos.shape and pot.array.shape == m.shape
    acc, _ = ap.field_at(HostArray(pos + 1), ap.Bodies(HostArray(m), given[0]), eps=0.05)
    assert isinstance(acc, HostArray)
    assert (ap.Bodies(HostArray(m), given[0]).pos == pos).all()
    assert isinstance(ap.accelerations(pos, HostArray(m), 0.05), np.ndarray), "as the positions are"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("eps", [0.0, 0.05])
def test_arrays_on_a_gpu_are_used_there(dtype: Any, eps: float) -> None:
    pos, m = cluster(dtype=dtype)
    bound = 1e-6 if dtype == np.float32 else 1e-13
    for masses in (m, np.full_like(m, 0.25), 0.25):
        given = masses if isinstance(masses, float) else GpuArray(masses)
        for check in (True, False):
            found = ap.accelerations(GpuArray(pos), given, eps, G=3.0, check=check)
            assert isinstance(found, GpuArray) and found.dtype == dtype and found.shape == pos.shape
            assert error(found.array, pos, np.broadcast_to(masses, m.shape), eps, 3.0) < bound
    assert len(_in_place._rooms) == 1


def test_nothing_is_read_where_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    pos, m = cluster()
    for name in ("__abs__", "max", "min", "__float__"):
        monkeypatch.setattr(GpuArray, name, lambda _: pytest.fail("it was looked at"))
    for masses, kind in ((GpuArray(m), "Any"), (0.25, "Equal(0.25)")):
        found = ap.accelerations(GpuArray(pos), masses, 0.1, check=False)
        assert error(found.array, pos, getattr(masses, "array", np.full_like(m, 0.25)), 0.1) < 1e-6
        room = _in_place._rooms[-1]
        factors = room.force.prepare(room.extent, 0.1, 1.0)
        assert factors is not None and factors[3] == kind, "one number for all needs no look"
    with pytest.raises(ap.ArgumentError, match="`m`"):
        ap.accelerations(GpuArray(pos), -1.0, 0.1, check=False)


def test_streams_wait_for_each_other() -> None:
    pos, m = cluster(20)
    ap.accelerations(GpuArray(pos), GpuArray(m), 0.1)
    room = _in_place._rooms[0]

    class Force:
        """The force of the room, whose calls are noted."""

        def __init__(self, force: Any) -> None:
            self.force = force

        def prepare(self, *arguments: Any) -> Any:
            return self.force.prepare(*arguments)

        def accelerate(self) -> None:
            HISTORY.append("force")
            self.force.accelerate()

        def hold_up(self, stream: int) -> None:
            HISTORY.append(f"{stream} waits for force")
            self.force.hold_up(stream)

    HISTORY.clear()
    room.force, room.stream = Force(room.force), 5  # type: ignore[assignment]
    ap.accelerations(GpuArray(pos), GpuArray(m), 0.1)
    assert HISTORY == [
        "on 0",
        f"{STREAM} waits for force",
        "write memory",
        "write memory",
        f"5 waits for {STREAM}",
        "force",
        f"{STREAM} waits for force",
        "read memory",
        f"5 waits for {STREAM}",
        "off",
    ]


def test_what_changes_between_calls() -> None:
    pos, m = cluster(64)
    equal = np.full_like(m, 2.0)
    for positions, masses, eps, G in [
        (pos, m, 0.1, 1.0),
        (pos, m, 0.2, 1.0),
        (pos * 1.5, m, 0.2, 2.0),
        (pos, equal, 0.2, 1.0),
        (pos, equal * 2, 0.2, 1.0),
        (pos, np.where(np.arange(64) < 3, 0, m).astype(np.float32), 0.2, 1.0),
        (pos, m, 0.0, 1.0),
        (pos[:40], m[:40], 0.0, 1.0),
        (pos, m, 0.1, 1.0),
    ]:
        found = ap.accelerations(GpuArray(positions), GpuArray(masses), eps, G=G)
        assert error(found.array, positions, masses, eps, G) < 1e-6
    for n in range(10, 20):
        ap.accelerations(GpuArray(pos[:n]), 1.0, 0.1)
    assert len(_in_place._rooms) == _in_place._MOST_ROOMS


def test_units_do_not_matter() -> None:
    pos, m = cluster(64)
    expected = ap.accelerations(GpuArray(pos), GpuArray(m), 0.125).array
    # Powers of two, near metres and kilogrammes of a galaxy: r² would not fit float32.
    length, mass = np.float32(2.0**70), np.float32(2.0**100)
    found = ap.accelerations(GpuArray(pos * length), GpuArray(m * mass), 0.125 * 2.0**70)
    assert (found.array == expected * np.float32(2.0**-40)).all()


def test_digits_may_be_more_than_those_of_the_array() -> None:
    pos, m = cluster(64)
    found = ap.accelerations(GpuArray(pos), GpuArray(m), 0.1, accuracy="double")
    assert found.dtype == np.float32 and error(found.array, pos, m, 0.1) < 5e-8
    assert ap.accelerations(GpuArray(pos[:0]), GpuArray(m[:0])).shape == (0, 3)
    by_name = ap.accelerations(GpuArray(pos), GpuArray(m), 0.1, kernel="tiled-float4-rsqrt")
    assert error(by_name.array, pos, m, 0.1) < 1e-5


def test_the_way_over_the_host() -> None:
    pos, m = cluster(64)
    found = ap.accelerations(GpuArray(pos, 1), GpuArray(m, 1), 0.1, device="cpu")
    assert isinstance(found, GpuArray) and found.number == 1 and found.dtype == np.float32
    assert error(found.array, pos, m, 0.1) < 1e-7 and not _in_place._rooms
    assert isinstance(ap.potential(GpuArray(pos), GpuArray(m), 0.1), GpuArray)
    assert len(ap.Bodies(GpuArray(m), GpuArray(pos))) == 64


def test_bad_arrays_on_a_gpu_are_refused_by_name() -> None:
    pos, m = cluster(64)
    nan, negative = pos.copy(), m.copy()
    nan[3, 1], negative[7] = np.nan, -1
    gradient = GpuArray(pos)
    gradient.requires_grad = True
    cases: list[tuple[str, Any, Any, dict[str, Any]]] = [
        ("pos", GpuArray(nan), GpuArray(m), {}),
        ("pos", GpuArray(pos[:, :2]), GpuArray(m), {}),
        ("pos", GpuArray(pos.astype(np.int32)), GpuArray(m), {}),
        ("pos", gradient, GpuArray(m), {}),
        ("m", GpuArray(pos), GpuArray(negative), {}),
        ("m", GpuArray(pos), -1.0, {}),
        ("m", GpuArray(pos), GpuArray(m[:9]), {}),
        ("m", GpuArray(pos), GpuArray(m, 1), {}),
        ("m", GpuArray(pos), m, {}),
        ("m", GpuArray(pos), "heavy", {}),
        ("accuracy", GpuArray(pos.astype(float)), GpuArray(m), {"accuracy": "single"}),
        ("kernel", GpuArray(pos), GpuArray(m), {"kernel": "tiled-soa"}),
        ("kernel", GpuArray(pos), GpuArray(m), {"kernel": "symmetric-f64"}),
        ("eps", GpuArray(pos), GpuArray(m), {"eps": -1.0}),
    ]
    for argument, positions, masses, options in cases:
        for _ in range(2):  # also with a room that is there already
            with pytest.raises(ap.ArgumentError, match=f"`{argument}`") as refused:
                ap.accelerations(positions, masses, **options)
            assert refused.value.argument == argument
            ap.accelerations(GpuArray(pos), GpuArray(m), 0.1)
