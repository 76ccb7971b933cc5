"""Arguments of functions in PyTorch."""

from __future__ import annotations

from typing import Any, Sequence

import torch
from torch import Tensor

from ._quantities import unitless


def floating(argument: str, value: Any) -> Tensor:
    """A tensor of float32 or float64."""
    if not isinstance(value, Tensor):
        raise TypeError(f"`{argument}` must be a tensor, not {type(value).__name__}")
    if value.dtype not in (torch.float32, torch.float64):
        raise TypeError(f"`{argument}` must hold float32 or float64, not {value.dtype}")
    if value.device.type not in ("cpu", "cuda"):
        raise NotImplementedError(
            f"`{argument}` is on {value.device}, and allpairs.torch computes on CPUs and on NVIDIA's GPUs: hand over "
            "`.cpu()` of it"
        )
    return value


def like(argument: str, value: Any, pos: Tensor, shape: Sequence[int]) -> Tensor:
    """A tensor of the precision of the positions, spread to a shape."""
    if not isinstance(value, Tensor):
        unitless(argument, value)
        try:
            value = torch.tensor(float(value), dtype=pos.dtype, device=pos.device)
        except (TypeError, ValueError):
            raise TypeError(f"`{argument}` must be a number or a tensor, not {type(value).__name__}") from None
    value = floating(argument, value)
    if value.dtype != pos.dtype:
        raise TypeError(f"`{argument}` is {value.dtype} and `pos` {pos.dtype}: convert one of them")
    if value.device != pos.device:
        if value.ndim:
            raise ValueError(f"`{argument}` is on {value.device} and `pos` on {pos.device}: move one of them")
        value = value.to(pos.device)  # a number, as PyTorch's own operators take it
    try:
        return value.expand(tuple(shape))
    except RuntimeError:
        raise ValueError(f"`{argument}` must have the shape {tuple(shape)}, not {tuple(value.shape)}") from None
