"""Forces, potentials and trajectories that PyTorch can differentiate, on the CPU and on GPUs.

They are operators of `torch.library`, and know `torch.compile`, `torch.func.vmap` and `torch.func.grad` too.
For second derivatives the sum is written out in PyTorch, in N² memory. Trajectories have first derivatives.
"""

from __future__ import annotations

import functools
import operator
from typing import Any, Callable, Sequence

try:
    import torch
except ImportError as error:
    raise ImportError("`allpairs.torch` needs PyTorch, which is not installed: pip install torch") from error
import numpy as np
from torch import Tensor

from . import _native
from ._errors import ArgumentError, one_of
from ._quantities import unitless
from ._schemes import SCHEMES, Scheme, Stage

if not hasattr(torch.library, "register_vmap"):
    raise ImportError(f"`allpairs.torch` needs PyTorch 2.5 or newer, and {torch.__version__} is installed")

from ._torch_arguments import floating, like  # noqa: E402
from ._torch_fields import Field, Used, at_each, in_formula  # noqa: E402

__all__ = ["Field", "accelerations", "leapfrog", "potential"]


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
    return [steps, list(SCHEMES).index(scheme), int(masses), int(softening)]


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


class _Fields:
    """External fields: functions of times, positions and numbers, each with the count of its numbers."""

    def __init__(self, given: Any, G: Any, x: Tensor, written_out: bool) -> None:
        """Fields of the argument `field`. Steps that are written out need no tensors of functions."""
        self.functions: list[tuple[Callable[..., Tensor], int]] = []
        #: The numbers of all functions, of each system for formulas.
        self.numbers: list[Tensor] = []
        for field in given if isinstance(given, (list, tuple)) else [given]:
            function: Callable[..., Tensor]
            if isinstance(field, Field):
                named = [("G", G), *field.parameters.items()]
                own = [like(key, value, x, x.shape[:-2]).to(torch.float64) for key, value in named]
                function = functools.partial(_timeless, field.name)
            elif not callable(of_user := getattr(field, "acceleration", field)):
                raise TypeError(
                    "`field` must be a `Field`, a function of time and position, or an object with such a method "
                    f"`acceleration`, not {type(field).__name__}: write a text as `Field('nfw', mass=1.0, scale=2.0)`"
                )
            elif written_out:
                own, function = [], functools.partial(at_each, of_user, x.dtype)
            else:
                used = Used(of_user, x)
                own, function = used.numbers, used.at
            self.functions.append((function, len(own)))
            self.numbers += own

    def at(self, time: Tensor, x: Tensor, *numbers: Tensor) -> Tensor:
        """Accelerations at all positions of independent systems, which are leading dimensions."""
        sum, begin = torch.zeros_like(x), 0
        for function, count in self.functions:
            sum = sum + function(time, x, *numbers[begin : begin + count])
            begin += count
        return sum


def _timeless(name: str, _: Tensor, x: Tensor, *numbers: Tensor) -> Tensor:
    return in_formula(name, x, *numbers)


class _Path:
    """Steps of independent systems in external fields, in float64."""

    def __init__(self, fields: _Fields, steps: int, scheme: Scheme, double: bool) -> None:
        self.fields, self.steps, self.scheme, self.double = fields, steps, scheme, double

    def last(
        self,
        force: Any,
        x: Tensor,
        m: Tensor,
        eps: Tensor,
        v: Tensor,
        dt: Tensor,
        start: Tensor,
        *numbers: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """The last state."""

        def there(step: int, stages: Sequence[Stage], x: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
            for stage in stages:
                h = (stage.share * dt)[..., None, None]
                if stage.kicks:
                    time = start + (step + stage.at) * dt
                    v = v + h * (force(x, m, eps, self.double) + self.fields.at(time, x, *numbers))
                else:
                    x = x + h * v
            return x, v

        if self.steps == 0:
            return x.clone(), v.clone()
        x, v = there(0, self.scheme.stages[:1], x, v)
        for step in range(self.steps - 1):
            x, v = there(step, self.scheme.joined, x, v)
        return there(self.steps - 1, self.scheme.stages[1:], x, v)

    def pull(
        self,
        wanted: Sequence[bool],
        x: Tensor,
        v: Tensor,
        by_x: Tensor,
        by_v: Tensor,
        m: Tensor,
        eps: Tensor,
        dt: Tensor,
        start: Tensor,
        *numbers: Tensor,
    ) -> tuple[Tensor, ...]:
        """Derivatives by x, m, eps, v, dt, the start and numbers, from the last state back and in the memory of one
        state. `wanted` says which of them are wanted."""
        _, masses, softening, _, _, _, *moving = wanted
        zero = torch.zeros_like
        state = (x, v, by_x.clone(), by_v.clone())
        sums = (zero(m), zero(eps), zero(dt), zero(start))
        by_numbers = [zero(number, dtype=torch.float64) for number, moves in zip(numbers, moving) if moves]

        def along(x: Tensor, time: Tensor, *moved: Tensor) -> Tensor:
            others = iter(moved)
            return self.fields.at(time, x, *(next(others) if moves else own for own, moves in zip(numbers, moving)))

        def back(step: int, stages: Sequence[Stage]) -> None:
            nonlocal state, sums, by_numbers
            x, v, by_x, by_v = state
            by_m, by_eps, by_dt, by_start = sums
            for stage in reversed(stages):
                h = (stage.share * dt)[..., None, None]
                if not stage.kicks:
                    by_dt = by_dt + stage.share * (v * by_x).sum((-2, -1))
                    by_v = by_v + h * by_x
                    x = x - h * v
                    continue
                lam = h * by_v
                time = start + (step + stage.at) * dt
                own = [number for number, moves in zip(numbers, moving) if moves]
                in_fields, pull = torch.func.vjp(along, x, time, *own)
                of_x, of_time, *of_numbers = pull(lam)
                a = _force_op(x, m, eps, self.double) + in_fields
                of_x_too, of_m, of_eps = _force_pull_op(x, m, eps, lam, self.double, masses, softening)
                by_m, by_eps = by_m + of_m, by_eps + of_eps
                by_dt = by_dt + stage.share * (a * by_v).sum((-2, -1)) + (step + stage.at) * of_time
                by_start = by_start + of_time
                by_numbers = [sum + of for sum, of in zip(by_numbers, of_numbers)]
                by_x = by_x + of_x + of_x_too
                v = v - h * a
            state, sums = (x, v, by_x, by_v), (by_m, by_eps, by_dt, by_start)

        if self.steps:
            back(self.steps - 1, self.scheme.stages[1:])
            for step in reversed(range(self.steps - 1)):
                back(step, self.scheme.joined)
            back(0, self.scheme.stages[:1])
        (_, _, by_x, by_v), (by_m, by_eps, by_dt, by_start) = state, sums
        found = iter(by_numbers)
        of_all = (next(found).to(own.dtype) if moves else zero(own) for own, moves in zip(numbers, moving))
        return by_x, by_m, by_eps, by_v, by_dt, by_start, *of_all


_force_op = torch.ops.allpairs.force.default
_force_pull_op = torch.ops.allpairs.force_pull.default


class _PathBack(torch.autograd.Function):
    """Derivatives of the last state in external fields, without derivatives of their own."""

    generate_vmap_rule = True

    @staticmethod
    def forward(pull: Any, *arguments: Tensor) -> Any:
        return pull(*arguments)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *_: Any) -> Any:
        raise NotImplementedError("allpairs.torch.leapfrog has first derivatives only: allpairs.jax has second ones")


class _PathInFields(torch.autograd.Function):
    """The last positions and velocities in external fields."""

    generate_vmap_rule = True

    @staticmethod
    def forward(path: _Path, *begun: Tensor) -> Any:
        return path.last(_force_op, *begun)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.path, *begun = inputs
        ctx.save_for_backward(*begun, *output)

    @staticmethod
    def backward(ctx: Any, lam_x: Tensor, lam_v: Tensor) -> Any:
        wanted = ctx.needs_input_grad[1:]
        _, m, eps, _, dt, start, *numbers, last_x, last_v = ctx.saved_tensors
        pull = functools.partial(ctx.path.pull, wanted)
        found = _PathBack.apply(pull, last_x, last_v, lam_x, lam_v, m, eps, dt, start, *numbers)
        return None, *(part if is_wanted else None for part, is_wanted in zip(found, wanted))


def _bodies(pos: Any, m: Any, eps: Any, accuracy: str | None) -> tuple[Tensor, Tensor, Tensor, bool]:
    x = floating("pos", pos)
    if isinstance(eps, (int, float)) and not 0 <= eps < float("inf"):
        raise ValueError(f"`eps` must be ≥ 0 and finite, got {eps}")
    if x.ndim < 2 or x.shape[-1] != 3:
        raise ValueError(f"`pos` must have the shape (N, 3), not {tuple(x.shape)}")
    double = x.dtype == torch.float64
    if accuracy is not None:
        double = one_of("accuracy", accuracy, _native.names()["accuracy"]) == "double"
    return x, like("m", m, x, x.shape[:-1]), like("eps", eps, x, x.shape[:-2]), double


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
    return found if isinstance(G, (int, float)) and G == 1 else like("G", G, x, ()) * found


def potential(pos: Tensor, m: Any, eps: Any = 0.0, *, G: Any = 1.0, accuracy: str | None = None) -> Tensor:
    """Potential at each body of all others, −G Σ m_j/d_ij; arguments and derivatives as of `accelerations`.

    Returns
    -------
    tensor, shape (N,)
    """
    x, mass, softening, double = _bodies(pos, m, eps, accuracy)
    found: Tensor = _potential(x, mass, softening, double)
    return found if isinstance(G, (int, float)) and G == 1 else like("G", G, x, ()) * found


def leapfrog(
    pos: Tensor,
    vel: Tensor,
    m: Any,
    dt: Any,
    steps: int,
    eps: Any = 0.0,
    *,
    G: Any = 1.0,
    field: Any = None,
    time: Any = 0.0,
    scheme: str = "leapfrog",
    accuracy: str | None = None,
) -> tuple[Tensor, Tensor]:
    """Positions and velocities after some steps, with first derivatives by everything that they begin with.

    A gradient takes the steps back, in the memory of one state. With fields, `torch.compile` writes the steps out.

    Parameters
    ----------
    pos, vel : tensors, shape (N, 3)
    m : tensor, shape (N,), or number
    dt : number
        Length of a step.
    steps : int
    eps, G : numbers
    field : `Field`, callable or object, or a list of them, optional
        External fields: formulas, or functions of time and position (3,) that return an acceleration (3,) in
        operations of PyTorch. An object may have such a method `acceleration`. There are derivatives by parameters of
        formulas, and by all tensors that functions use.
    time : number
        Time at the beginning, for functions.
    scheme : {"leapfrog", "leapfrog-dkd", "yoshida4", "yoshida6"}
        Schemes that can be taken back. Hermite's schemes and block time steps cannot.
    accuracy : {"double", "single", "fast"}, optional
        Precision of pairs: by default of the tensors. The state on the way is float64.

    Returns
    -------
    pos, vel : tensors, shape (N, 3)
    """
    if scheme not in list(SCHEMES):
        raise ValueError(f"`scheme` must be one that can be taken back, {', '.join(SCHEMES)}, not {scheme!r}")
    unitless("steps", steps)
    count = operator.index(steps)
    if not 0 <= count < 1 << 31:
        raise ValueError(f"`steps` must be ≥ 0 and below 2**31, got {steps}")
    x, mass, softening, double = _bodies(pos, m, eps, accuracy)
    v = like("vel", floating("vel", vel), x, x.shape)
    h = like("dt", dt, x, x.shape[:-2])
    if not (isinstance(G, (int, float)) and G == 1):
        mass = like("G", G, x, ()) * mass
    if field is not None:
        written_out = torch.compiler.is_compiling()  # the compiler cannot take a function of functions
        fields = _Fields(field, G, x, written_out)
        begun = [a.to(torch.float64) for a in (x, mass, softening, v, h, like("time", time, x, x.shape[:-2]))]
        path = _Path(fields, count, SCHEMES[scheme], double)
        if written_out:
            ends = path.last(_force, *begun, *fields.numbers)
        else:
            ends = _PathInFields.apply(path, *begun, *fields.numbers)
        return ends[0].to(x.dtype), ends[1].to(x.dtype)
    last_x, last_v, *_ = _Trajectory.apply(x, mass, softening, v, h, count, scheme, double)
    return last_x, last_v
