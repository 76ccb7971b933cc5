"""External fields for trajectories in PyTorch: formulas with derivatives by their parameters, and functions of the user's."""

from __future__ import annotations

from typing import Any, Callable

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from . import _field_formulas
from ._field_formulas import NamedField
from ._torch_arguments import floating, like

#: A function of a time and a position.
_OfUser = Callable[[Tensor, Tensor], Any]


def _gammainc(a: Tensor, x: Tensor) -> Tensor:
    # PyTorch's own has no derivative by its first argument.
    orders = torch.arange(_field_formulas.GAMMA_TERMS, dtype=x.dtype, device=x.device)
    found: Tensor = _field_formulas.gammainc(torch, a, x, orders)
    return found


class _Operations:
    """Operations of PyTorch that formulas are made of."""

    gammainc = staticmethod(_gammainc)
    log1p = staticmethod(torch.log1p)
    ones_like = staticmethod(torch.ones_like)
    sqrt = staticmethod(torch.sqrt)
    stack = staticmethod(torch.stack)
    where = staticmethod(torch.where)


class Field(NamedField):
    """A field by its formula, with derivatives by all its parameters.

    Parameters
    ----------
    name : {"point", "plummer", "hernquist", "nfw", "miyamoto-nagai", "isochrone", "logarithmic", "power-law"}
        Name of the formula, as of the fields of `allpairs.Simulation`.
    **parameters : numbers or tensors
        Parameters of the formula, such as `mass` and `scale`, in the units of the bodies. `x`, `y` and `z` are the
        centre, 0 by default. Tensors with dimensions are parameters of independent systems. The numbers in tensors
        are not looked at.

    Raises
    ------
    ValueError
        A formula or a parameter that does not exist, one that is missing, or a number that makes no sense.
    """

    def acceleration(self, time: Any, pos: Tensor, G: Any = 1.0) -> Tensor:
        """Accelerations (…, 3) at positions (…, 3); the time is not used."""
        x = floating("pos", pos)
        if x.ndim < 1 or x.shape[-1] != 3:
            raise ValueError(f"`pos` must have the shape (…, 3), not {tuple(x.shape)}")
        wide = x.reshape(-1, 3).to(torch.float64)
        numbers = [like(key, value, x, ()).to(torch.float64) for key, value in [("G", G), *self.parameters.items()]]
        return in_formula(self.name, wide, *numbers).reshape(x.shape).to(x.dtype)

    @staticmethod
    def _is_unread(value: Any) -> bool:
        return isinstance(value, Tensor)


def in_formula(name: str, x: Tensor, *numbers: Tensor) -> Tensor:
    """Accelerations (…, N, 3) by a formula at positions (…, N, 3), of G and all parameters (…) in their order."""
    spread = [number[..., None] for number in numbers]
    found: Tensor = _field_formulas.acceleration(_Operations, name, torch.movedim(x, -1, 0), *spread)
    return torch.movedim(found, 0, -1)


def at_each(function: _OfUser, dtype: torch.dtype, time: Tensor, x: Tensor) -> Tensor:
    """Accelerations (…, N, 3) by a function of the user's at positions (…, N, 3) and times (…)."""
    if not x.numel():
        return torch.zeros_like(x)
    each = torch.func.vmap(function, in_dims=(None, 0))
    for _ in x.shape[:-2]:
        each = torch.func.vmap(each)
    found: Tensor = each(time.to(dtype), x.to(dtype))
    return found.to(x.dtype)


class _Replaced(TorchFunctionMode):
    """Within it, operations of PyTorch take other tensors."""

    def __init__(self, other: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.other = other

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*self._all(args), **self._all(kwargs or {}))

    def _all(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            return self.other(value)
        if type(value) in (list, tuple):
            return type(value)(self._all(part) for part in value)
        if type(value) is dict:
            return {key: self._all(part) for key, part in value.items()}
        return value


class Used:
    """A function of the user's as a function of the tensors too that it uses.

    PyTorch differentiates by arguments. The function takes other tensors wherever it meets its own, whether they are in
    its closure, global or of a module.
    """

    def __init__(self, function: _OfUser, pos: Tensor) -> None:
        def example() -> tuple[Tensor, Tensor]:
            return torch.zeros((), dtype=pos.dtype, device=pos.device), torch.ones(3, dtype=pos.dtype, device=pos.device)

        # What it meets twice is not made on the way. These dictionaries hold the tensors, so that no other has their id.
        once: dict[int, Tensor] = {}
        twice: dict[int, Tensor] = {}

        def met(tensor: Tensor) -> Tensor:
            once[id(tensor)] = tensor
            return tensor

        def met_again(tensor: Tensor) -> Tensor:
            if id(tensor) not in once:
                return tensor
            twice[id(tensor)] = tensor
            return tensor.detach()

        def call(other: Callable[[Tensor], Tensor]) -> Any:
            with _Replaced(other):
                found = function(*example())
            return other(found) if isinstance(found, Tensor) else found

        with torch.no_grad():
            call(met)
        with torch.enable_grad():
            found = call(met_again)
        if not isinstance(found, Tensor):
            raise TypeError(f"`field` must return a tensor of shape (3,), not {type(found).__name__}")
        if found.shape != (3,) or not found.is_floating_point():
            raise ValueError(
                f"`field` must return an acceleration of shape (3,), not {tuple(found.shape)} of {found.dtype}"
            )
        if found.device != pos.device:
            raise ValueError(f"`field` returns a tensor on {found.device} and `pos` is on {pos.device}: move one of them")
        if found.requires_grad:
            raise ValueError(
                "`field` uses a tensor that needs a gradient, but not in operations of PyTorch, such as in an "
                "`autograd.Function`: hand over `tensor.clone()` there, or `tensor.detach()`"
            )
        self.function = function
        self.dtype = pos.dtype
        self.numbers = [tensor for tensor in twice.values() if tensor.is_floating_point()]

    def at(self, time: Tensor, x: Tensor, *numbers: Tensor) -> Tensor:
        """Accelerations (…, N, 3) at positions (…, N, 3) and times (…), with other numbers."""
        others = {id(own): number for own, number in zip(self.numbers, numbers)}

        def other(tensor: Tensor) -> Tensor:
            return others.get(id(tensor), tensor)

        def one(time: Tensor, x: Tensor) -> Tensor:
            with _Replaced(other):
                found = self.function(time, x)
            return other(found)

        return at_each(one, self.dtype, time, x)
