"""Forces, potentials and trajectories that PyTorch can differentiate, on the CPU and on GPUs.

They are operators of `torch.library`, and know `torch.compile`, `torch.func.vmap` and `torch.func.grad` too.
For second derivatives the sum is written out in PyTorch, in N² memory. Trajectories have first derivatives.
"""

from __future__ import annotations

import operator
from typing import Any, Sequence

try:
    import torch
except ImportError as error:
    raise ImportError("`allpairs.torch` needs PyTorch, which is not installed: pip install torch") from error
import numpy as np
from torch import Tensor

from . import _native
from ._errors import ArgumentError, one_of
from ._quantities import unitless

if not hasattr(torch.library, "register_vmap"):
    raise ImportError(f"`allpairs.torch` needs PyTorch 2.5 or newer, and {torch.__version__} is installed")

__all__ = ["accelerations", "leapfrog", "potential"]

#: Schemes that can be taken back.
_SCHEMES = ("leapfrog", "leapfrog-dkd", "yoshida4", "yoshida6")


def _sums(
    name: str, double: bool, arguments: Sequence[Tensor], shapes: Sequence[Sequence[int]], asked: Sequence[int] = ()
) -> list[Tensor]:
    """Results of a sum of independent systems, which are the leading dimensions of all arguments."""
    x = arguments[0]
    shape, rounded = (int(np.prod(x.shape[:-2], dtype=int)), x.shape[-2]), x.dtype == torch.float32
    if x.device.type == "cuda":
        given = [a.detach().contiguous() for a in arguments]
        results = [x.new_empty(tuple(shape)) for shape in shapes]
        there, back = ([a.data_ptr() for a in tensors] for tensors in (given, results))
        stream = torch.cuda.current_stream(x.device).cuda_stream
        place = f"cuda:{x.device.index}"
        _native.sums_in_place(name, double, rounded, shape, there, back, list(asked), place, stream)
        return results
    flat = [np.ascontiguousarray(a.detach().to(torch.float64).numpy()).reshape(-1) for a in arguments]
    try:
        found = _native.sums(name, double, rounded, shape, flat, list(asked))
    except ArgumentError as error:
        raise ValueError(str(error)) from None
    if not found:
        return [x.new_zeros(tuple(shape)) for shape in shapes]
    return [torch.from_numpy(f).to(x.dtype).reshape(tuple(shape)) for f, shape in zip(found, shapes)]


def _batched(op: Any, many: bool) -> None:
    """Lets vmap add leading dimensions."""

    def rule(info: Any, dims: Sequence[int | None], *arguments: Any) -> Any:
        led = [
            a
            if not isinstance(a, Tensor)
            else a.movedim(dim, 0)
            if dim is not None
            else a.expand(info.batch_size, *a.shape)
            for a, dim in zip(arguments, dims)
        ]
        found = op(*led)
        return (found, (0,) * len(found)) if many else (found, 0)

    torch.library.register_vmap(op, rule)


def _written_out(name: str, x: Tensor, m: Tensor, eps: Tensor) -> Tensor:
    """The sum in operations of PyTorch."""
    d = x[..., None, :, :] - x[..., :, None, :]
    own = torch.eye(x.shape[-2], dtype=torch.bool, device=x.device)
    squared = torch.where(own, 1.0, (d**2).sum(-1) + eps[..., None, None] ** 2)
    if name == "force":
        return torch.einsum("...j,...ij,...ijk->...ik", m, torch.where(own, 0.0, squared**-1.5), d)
    return -torch.einsum("...j,...ij->...i", m, torch.where(own, 0.0, squared**-0.5))


def _operator(name: str, function: Any, fake: Any, many: bool) -> Any:
    """An operator of PyTorch, without derivatives."""
    op = torch.library.custom_op(f"allpairs::{name}", function, mutates_args=(), device_types=("cpu", "cuda"))
    op.register_fake(fake)
    _batched(op, many)
    return getattr(torch.ops.allpairs, name).default  # which `torch.compile` knows


def _sum(name: str) -> Any:
    """The function of a sum of x, m and eps, with its derivatives."""
    prefix = "" if name == "force" else f"{name}_"
    has_flags = name == "force"

    def shape(x: Tensor, m: Tensor) -> torch.Size:
        return x.shape if name == "force" else m.shape

    def value(x: Tensor, m: Tensor, eps: Tensor, double: bool) -> Tensor:
        return _sums(name, double, (x, m, eps), [shape(x, m)])[0]

    def pull(
        x: Tensor, m: Tensor, eps: Tensor, lam: Tensor, double: bool, masses: bool, softening: bool
    ) -> tuple[Tensor, Tensor, Tensor]:
        if not has_flags:
            masses = softening = True
        suffix = ("m" if masses else "") + ("e" if softening else "")
        shapes = [x.shape, *([m.shape] if masses else []), *([eps.shape] if softening else [])]
        sum = f"{prefix}pull_{suffix}" if suffix and has_flags else f"{prefix}pull"
        found = iter(_sums(sum, double, (x, m, eps, lam), shapes))
        return (
            next(found),
            next(found) if masses else torch.zeros_like(m),
            next(found) if softening else torch.zeros_like(eps),
        )

    def fake(x: Tensor, m: Tensor, *_: Any) -> Tensor:
        return x.new_empty(shape(x, m))

    def fake_pull(x: Tensor, m: Tensor, eps: Tensor, *_: Any) -> tuple[Tensor, Tensor, Tensor]:
        return x.new_empty(x.shape), m.new_empty(m.shape), eps.new_empty(eps.shape)

    value_op = _operator(name, value, fake, many=False)
    pull_op = _operator(f"{name}_pull", pull, fake_pull, many=True)

    class Pull(torch.autograd.Function):
        """Derivatives by x, m and eps; its own derivatives are written out."""

        generate_vmap_rule = True

        @staticmethod
        def forward(*arguments: Any) -> Any:
            return pull_op(*arguments)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            *saved, _, ctx.masses, ctx.softening = inputs
            ctx.save_for_backward(*saved)

        @staticmethod
        def backward(ctx: Any, *cotangents: Tensor) -> Any:
            def pulled(x: Tensor, m: Tensor, eps: Tensor, lam: Tensor) -> Any:
                by_x, by_m, by_eps = torch.func.vjp(lambda *state: _written_out(name, *state), x, m, eps)[1](lam)
                return (
                    by_x,
                    by_m if ctx.masses or not has_flags else torch.zeros_like(by_m),
                    by_eps if ctx.softening or not has_flags else torch.zeros_like(by_eps),
                )

            return *torch.func.vjp(pulled, *ctx.saved_tensors)[1](tuple(cotangents)), None, None, None

    class Value(torch.autograd.Function):
        """The sum."""

        generate_vmap_rule = True

        @staticmethod
        def forward(*arguments: Any) -> Any:
            return value_op(*arguments)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            *saved, ctx.double = inputs
            ctx.save_for_backward(*saved)

        @staticmethod
        def backward(ctx: Any, lam: Tensor) -> Any:
            _, masses, softening, _ = ctx.needs_input_grad
            arguments = (*ctx.saved_tensors, lam, ctx.double, masses, softening)
            # The compiler takes no function within the derivative of another: second derivatives are not compiled.
            found = pull_op(*arguments) if torch.compiler.is_compiling() else Pull.apply(*arguments)
            return *(part if needed else None for part, needed in zip(found, ctx.needs_input_grad)), None

    return Value.apply


_force = _sum("force")
_potential = _sum("potential")


def _asked(steps: int, scheme: str, masses: bool, softening: bool) -> list[int]:
    return [steps, _SCHEMES.index(scheme), int(masses), int(softening)]


def _path(
    x: Tensor, m: Tensor, eps: Tensor, v: Tensor, dt: Tensor, steps: int, scheme: str, double: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    asked = _asked(steps, scheme, False, False)
    last_x, last_v, x_rest, v_rest = _sums("trajectory", double, (x, m, eps, v, dt), 2 * [x.shape, v.shape], asked)
    return last_x, last_v, x_rest, v_rest


def _path_pull(
    x: Tensor,
    m: Tensor,
    eps: Tensor,
    v: Tensor,
    dt: Tensor,
    last_x: Tensor,
    last_v: Tensor,
    x_rest: Tensor,
    v_rest: Tensor,
    lam_x: Tensor,
    lam_v: Tensor,
    steps: int,
    scheme: str,
    double: bool,
    masses: bool,
    softening: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    asked = _asked(steps, scheme, masses, softening)
    arguments = (x, m, eps, v, dt, last_x, last_v, x_rest, v_rest, lam_x, lam_v)
    a, b, c, d, e = _sums("trajectory_pull", double, arguments, [a.shape for a in arguments[:5]], asked)
    return a, b, c, d, e


_path_op = _operator(
    "trajectory", _path, lambda x, m, eps, v, *_: tuple(a.new_empty(a.shape) for a in (x, v, x, v)), many=True
)
_path_pull_op = _operator(
    "trajectory_pull", _path_pull, lambda *all: tuple(a.new_empty(a.shape) for a in all[:5]), many=True
)


class _Trajectory(torch.autograd.Function):
    """The last positions and velocities, and what their precision loses of both."""

    generate_vmap_rule = True

    @staticmethod
    def forward(*arguments: Any) -> Any:
        return _path_op(*arguments)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        *begun, ctx.steps, ctx.scheme, ctx.double = inputs
        ctx.save_for_backward(*begun, *output)
        ctx.mark_non_differentiable(*output[2:])

    @staticmethod
    def backward(ctx: Any, lam_x: Tensor, lam_v: Tensor, *_: Any) -> Any:
        _, masses, softening, *_ = ctx.needs_input_grad
        how = (ctx.steps, ctx.scheme, ctx.double, masses, softening)
        found = _path_pull_op(*ctx.saved_tensors, lam_x, lam_v, *how)
        parts = (part if needed else None for part, needed in zip(found, ctx.needs_input_grad))
        return *parts, None, None, None


def _float(argument: str, value: Any) -> Tensor:
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


def _like(argument: str, value: Any, pos: Tensor, shape: Sequence[int]) -> Tensor:
    """A tensor of the precision of the positions, spread to a shape."""
    if not isinstance(value, Tensor):
        unitless(argument, value)
        try:
            value = torch.tensor(float(value), dtype=pos.dtype, device=pos.device)
        except (TypeError, ValueError):
            raise TypeError(f"`{argument}` must be a number or a tensor, not {type(value).__name__}") from None
    value = _float(argument, value)
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


def _bodies(pos: Any, m: Any, eps: Any, accuracy: str | None) -> tuple[Tensor, Tensor, Tensor, bool]:
    x = _float("pos", pos)
    if isinstance(eps, (int, float)) and not 0 <= eps < float("inf"):
        raise ValueError(f"`eps` must be ≥ 0 and finite, got {eps}")
    if x.ndim < 2 or x.shape[-1] != 3:
        raise ValueError(f"`pos` must have the shape (N, 3), not {tuple(x.shape)}")
    double = x.dtype == torch.float64
    if accuracy is not None:
        double = one_of("accuracy", accuracy, _native.names()["accuracy"]) == "double"
    return x, _like("m", m, x, x.shape[:-1]), _like("eps", eps, x, x.shape[:-2]), double


def accelerations(pos: Tensor, m: Any, eps: Any = 0.0, *, G: Any = 1.0, accuracy: str | None = None) -> Tensor:
    """Accelerations of bodies by each other, with derivatives by `pos`, `m`, `eps` and `G`.

    Parameters
    ----------
    pos : tensor, shape (N, 3)
        Positions, of float32 or float64, on the CPU or a GPU. Leading dimensions are independent systems.
    m : tensor, shape (N,), or number
        Masses; bodies without mass are test particles.
    eps : number
        Softening length ≥ 0. Without softening, bodies at the same place do not attract each other, and there
        is no derivative: the CPU refuses it, and on a GPU it is nan.
    G : number
    accuracy : {"double", "single", "fast"}, optional
        Precision of pairs: by default of the tensors.

    Returns
    -------
    tensor, shape (N, 3)
    """
    x, mass, softening, double = _bodies(pos, m, eps, accuracy)
    found: Tensor = _force(x, mass, softening, double)
    return found if isinstance(G, (int, float)) and G == 1 else _like("G", G, x, ()) * found


def potential(pos: Tensor, m: Any, eps: Any = 0.0, *, G: Any = 1.0, accuracy: str | None = None) -> Tensor:
    """Potential at each body of all others, −G Σ m_j/d_ij; arguments and derivatives as of `accelerations`.

    Returns
    -------
    tensor, shape (N,)
    """
    x, mass, softening, double = _bodies(pos, m, eps, accuracy)
    found: Tensor = _potential(x, mass, softening, double)
    return found if isinstance(G, (int, float)) and G == 1 else _like("G", G, x, ()) * found


def leapfrog(
    pos: Tensor,
    vel: Tensor,
    m: Any,
    dt: Any,
    steps: int,
    eps: Any = 0.0,
    *,
    G: Any = 1.0,
    scheme: str = "leapfrog",
    accuracy: str | None = None,
) -> tuple[Tensor, Tensor]:
    """Positions and velocities after some steps, with first derivatives by everything that they begin with.

    A gradient takes the steps back, in the memory of one state.

    Parameters
    ----------
    pos, vel : tensors, shape (N, 3)
    m : tensor, shape (N,), or number
    dt : number
        Length of a step.
    steps : int
    eps, G : numbers
    scheme : {"leapfrog", "leapfrog-dkd", "yoshida4", "yoshida6"}
        Schemes that can be taken back. Hermite's schemes and block time steps cannot.
    accuracy : {"double", "single", "fast"}, optional
        Precision of pairs: by default of the tensors. The state on the way is float64.

    Returns
    -------
    pos, vel : tensors, shape (N, 3)
    """
    if scheme not in _SCHEMES:
        raise ValueError(f"`scheme` must be one that can be taken back, {', '.join(_SCHEMES)}, not {scheme!r}")
    unitless("steps", steps)
    count = operator.index(steps)
    if not 0 <= count < 1 << 31:
        raise ValueError(f"`steps` must be ≥ 0 and below 2**31, got {steps}")
    x, mass, softening, double = _bodies(pos, m, eps, accuracy)
    v = _like("vel", _float("vel", vel), x, x.shape)
    h = _like("dt", dt, x, x.shape[:-2])
    if not (isinstance(G, (int, float)) and G == 1):
        mass = _like("G", G, x, ()) * mass
    last_x, last_v, *_ = _Trajectory.apply(x, mass, softening, v, h, count, scheme, double)
    return last_x, last_v
