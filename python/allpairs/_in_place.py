"""Accelerations of arrays that PyTorch or CuPy keep on a GPU: nothing crosses the bus.

Their library writes positions and masses to a buffer of ours and reads accelerations from another, in
the caller's stream; the force between runs in a stream of its own. DLPack's protocol makes the streams
wait for each other: `array.__dlpack__(stream=ours)` lets ours wait for the caller's, and
`from_dlpack(_Done(…))` the caller's for ours.
"""

from __future__ import annotations

import atexit
import threading
from typing import Any, Callable

from . import _arrays, _foreign, _native
from ._errors import bad

#: Libraries whose arrays can be written, with what makes one of their GPUs the current one.
_LIBRARIES: dict[str, Callable[[Any, int], Any]] = {
    "torch": lambda torch, number: torch.cuda.device(number),
    "cupy": lambda cupy, number: cupy.cuda.Device(number),
}

#: Rooms that are not in use, the last used at the end; few, for they hold memory of a GPU.
_rooms: list[_Room] = []
_MOST_ROOMS = 4
_lock = threading.Lock()
atexit.register(_rooms.clear)  # while the driver is still there

#: Values that are assumed where arrays are not looked at: the largest coordinate, the smallest and largest
#: mass.
_UNSEEN = (1.0, 0.0, 1.0)


def device_name(number: int) -> str:
    """A GPU as `device` names it."""
    return f"cuda:{number}"


def usable(pos: Any, device: str) -> bool:
    """Returns whether positions are on the GPU that is asked for, in a library that can write there."""
    number = _foreign.gpu(pos)
    if number is None or getattr(_foreign.library(pos), "__name__", "") not in _LIBRARIES:
        return False
    return device in ("auto", f"cuda:{number}", *(["cuda"] if number == 0 else []))


class _Memory:
    """Rows of four numbers on a GPU, as libraries of CUDA take them."""

    def __init__(self, force: _native.InPlace, address: int, n: int, double: bool) -> None:
        self.force = force  # whose memory it is
        self.__cuda_array_interface__ = {
            "shape": (n, 4),
            "typestr": "<f8" if double else "<f4",
            "data": (address, False),
            "version": 3,
        }


class _Done:
    """An array; its consumer waits for the work that was queued in the force's stream."""

    def __init__(self, force: _native.InPlace, array: Any) -> None:
        self.force, self.array = force, array

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()

    def __dlpack__(self, *, stream: Any = None, **options: Any) -> Any:
        if stream != -1:
            self.force.hold_up(1 if stream is None else int(stream))  # 1: the default stream
        options = {name: value for name, value in options.items() if value is not None}
        return self.array.__dlpack__(stream=-1, **options)


class _Room:
    """Buffers for a number of bodies."""

    def __init__(
        self, key: tuple[Any, ...], module: Any, force: _native.InPlace, n: int, double: bool
    ) -> None:
        self.key, self.module, self.force = key, module, force
        bodies, accelerations, self.stream = force.buffers()
        view = module.as_tensor if hasattr(module, "as_tensor") else module.asarray
        self.bodies = view(_Memory(force, bodies, n, double))
        self.accelerations = view(_Memory(force, accelerations, n, double))
        self.extent = _UNSEEN

    def follow(self) -> Any:
        """Lets the caller's stream wait for ours."""
        return self.module.from_dlpack(_Done(self.force, self.accelerations))

    def lead(self) -> None:
        """Lets ours wait for the caller's."""
        self.bodies.__dlpack__(stream=self.stream)

    def compute(self, pos: Any, m: Any, factors: tuple[float, float, float, str]) -> None:
        """Queues the accelerations of these bodies."""
        length, mass, _, _ = factors
        self.follow()  # of other streams, too
        self.bodies[:, :3] = pos if length == 1.0 else pos * length
        self.bodies[:, 3] = m if mass == 1.0 else m * mass
        self.lead()
        self.force.accelerate()

    def result(self, factors: tuple[float, float, float, str]) -> Any:
        """The accelerations, in an array of their own."""
        found = self.follow()[:, :3] * factors[2]
        self.lead()
        return found


def _taken(key: tuple[Any, ...]) -> _Room | None:
    """A room that nothing else uses meanwhile."""
    with _lock:
        for room in reversed(_rooms):
            if room.key == key:
                _rooms.remove(room)
                return room
    return None


def _given_back(room: _Room) -> None:
    with _lock:
        _rooms.append(room)
        dropped, _rooms[:] = _rooms[:-_MOST_ROOMS], _rooms[-_MOST_ROOMS:]
    del dropped  # which waits for the GPU, and for no other thread


def _numbers(argument: str, array: Any, number: int, shape: tuple[int, ...]) -> None:
    if getattr(array, "requires_grad", False):
        raise bad(argument, "asks for a gradient, which is not computed: hand over `detach()` of it")
    if _foreign.gpu(array) != number:
        raise bad(argument, f"must be on the same GPU as `pos`, {device_name(number)}")
    if tuple(array.shape) != shape:
        raise bad(argument, f"must have the shape {shape}, not {tuple(array.shape)}")
    if not str(array.dtype).endswith(("float32", "float64")):
        raise bad(argument, f"must hold float32 or float64 on a GPU, not {array.dtype}")


def _read(measured: list[Any]) -> tuple[float, float, float]:
    """Measured values, once they are there."""
    reach, least, heaviest = (float(value) for value in measured)
    if not reach < float("inf"):
        raise bad("pos", "must be finite")
    if not heaviest < float("inf"):
        raise bad("m", "must be finite")
    if least < 0:
        raise bad("m", f"must be ≥ 0, got {least}")
    return reach, least, heaviest


def accelerations(
    pos: Any, m: Any, eps: float, g: float, accuracy: str | None, kernel: str | None, check: bool
) -> Any:
    """As `allpairs.accelerations`, of arrays that are on a GPU."""
    number, module = _foreign.gpu(pos), _foreign.library(pos)
    assert number is not None
    n = int(pos.shape[0]) if len(pos.shape) else 0
    _numbers("pos", pos, number, (n, 3))
    if _foreign.place(m) is None and getattr(m, "ndim", 0) == 0:
        m = _arrays.number("m", m)
    else:
        _numbers("m", m, number, (n,))
    single = _foreign.is_single(pos)
    double = not single if accuracy is None else accuracy == "double"
    if not (single or double):
        raise bad("accuracy", f"{accuracy!r} has fewer digits than float64: hand over float32, or leave it out")
    if n == 0:
        return pos * 1.0
    with _LIBRARIES[module.__name__](module, number):
        key = (module.__name__, number, n, double, kernel)
        unseen = _UNSEEN
        if isinstance(m, float):
            unseen = _read([1.0, m, m])
        measured = []
        if check:
            measured = [abs(pos).max(), *((m, m) if isinstance(m, float) else (m.min(), m.max()))]
        room = _taken(key)
        # What was so the last time most often is: the GPU need not wait until it is known.
        extent = room.extent if room is not None and check else None
        try:
            while True:
                if extent is None:
                    extent = _read(measured) if check else unseen
                factors = None if room is None else room.force.prepare(extent, eps, g)
                if room is None or factors is None:
                    force = _native.InPlace(n, double, device_name(number), kernel, extent, eps, g)
                    room = _Room(key, module, force, n, double)
                    factors = force.prepare(extent, eps, g)
                    assert factors is not None
                room.compute(pos, m, factors)
                seen = _read(measured) if check else unseen
                if room.force.prepare(seen, eps, g) == factors:
                    room.extent = seen
                    result = room.result(factors)
                    break
                extent = seen
        finally:
            if room is not None:
                _given_back(room)
        if double and single:
            return result.to(pos.dtype) if hasattr(result, "to") else result.astype(pos.dtype)
        return result
