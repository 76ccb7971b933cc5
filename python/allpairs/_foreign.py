"""Arrays of other libraries, such as PyTorch, CuPy and JAX: what they are, and what becomes of results.

They are known by DLPack's protocol. Results are arrays of the same library on the same device, of
float32 where the positions are.
"""

from __future__ import annotations

import sys
from typing import Any, Callable, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ._quantities import unit_of

#: DLPack's numbers of devices: memory of the host, of it for CUDA too, and of a GPU.
_CPU, _CUDA, _CUDA_HOST, _CUDA_MANAGED = 1, 2, 3, 13


class Foreign(Protocol):
    """An array that other libraries can use."""

    def __dlpack__(self, *, stream: Any = ...) -> Any: ...
    def __dlpack_device__(self) -> tuple[Any, int]: ...


ForeignArray = TypeVar("ForeignArray", bound=Foreign)


def place(value: Any) -> tuple[int, int] | None:
    """The device of a foreign array and its number; None for what is none."""
    if isinstance(value, (np.ndarray, np.generic)) or not hasattr(value, "__dlpack_device__"):
        return None
    if unit_of(value) is not None:
        return None  # pint's quantities have the protocol of their numbers, which would lose the unit on the way
    try:
        kind, number = value.__dlpack_device__()
        return int(kind), int(number)
    except (TypeError, ValueError):
        return None  # not the protocol


def gpu(value: Any) -> int | None:
    """Number of the GPU on which a foreign array is."""
    at = place(value)
    return at[1] if at is not None and at[0] in (_CUDA, _CUDA_MANAGED) else None


def library(value: Any) -> Any:
    """The module of a foreign array's library; None where it cannot take results."""
    namespace = getattr(value, "__array_namespace__", None)
    if namespace is not None:
        module = namespace()
    else:
        module = sys.modules.get(type(value).__module__.partition(".")[0])
    return module if hasattr(module, "from_dlpack") else None


def is_single(value: Any) -> bool:
    """Returns whether the numbers of an array are float32, or have fewer digits."""
    return str(value.dtype).endswith(("float32", "float16"))


def on_host(value: Any) -> Any:
    """Returns what numpy takes: a foreign array's memory where that is the host's, else a copy."""
    at = place(value)
    if at is None:
        return value
    if at[0] in (_CPU, _CUDA_HOST):
        return np.from_dlpack(value)
    for copy in ("cpu", "get"):  # PyTorch, CuPy
        if hasattr(value, copy):
            return np.asarray(getattr(value, copy)())
    return np.asarray(value)


def returning(value: Any) -> Callable[[NDArray[np.float64]], Any]:
    """Returns a function that makes of a result an array as `value` is."""
    at = place(value)
    module = None if at is None else library(value)
    if at is None or module is None:
        return lambda result: result
    single = is_single(value)

    def made(result: NDArray[Any]) -> Any:
        if single:
            result = result.astype(np.float32)
        if at[0] in (_CPU, _CUDA_HOST):
            return module.from_dlpack(result)
        if hasattr(value, "devices"):  # JAX
            return sys.modules["jax"].device_put(result, *value.devices())
        if hasattr(value, "cpu"):
            return module.from_dlpack(result).to(value.device)
        with value.device:
            return module.asarray(result)

    return made
