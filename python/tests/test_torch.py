"""Forces, potentials and trajectories in PyTorch, compared with finite differences and its own derivatives."""

from typing import Any, Callable

import numpy as np
import pytest
import unyt

import allpairs as ap
from allpairs import _native

torch = pytest.importorskip("torch", reason="PyTorch is not installed", exc_type=ImportError)
at = pytest.importorskip("allpairs.torch", reason="PyTorch is too old", exc_type=ImportError)


@pytest.fixture(autouse=True, params=["cpu", "cuda"])
def place(request: Any) -> Any:
    """Tensors are made on each of these devices in turn."""
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("PyTorch finds no GPU")
    with torch.device(request.param):
        yield request.param


def array(tensor: Any) -> Any:
    return tensor.detach().cpu().numpy()


def bodies(n: int = 8, seed: int = 1, dtype: Any = None) -> tuple[Any, Any, Any]:
    random = np.random.default_rng(seed)
    m = random.uniform(0.5, 1.5, n) / n
    m[2] = 0
    pos, vel = random.normal(size=(2, n, 3))
    made = [torch.tensor(a, dtype=dtype or torch.float64, requires_grad=True) for a in (pos, m, vel)]
    return made[0], made[1], made[2]


def number(value: float) -> Any:
    return torch.tensor(value, dtype=torch.float64, requires_grad=True)


SUMS = pytest.mark.parametrize("name, plain", [("accelerations", "force"), ("potential", "potential")])


@SUMS
def test_values_and_derivatives(name: str, plain: str) -> None:
    f: Callable[..., Any] = getattr(at, name)
    x, m, _ = bodies()
    device = {"device": "cpu"} if name == "accelerations" else {}
    exact = getattr(ap, name)(array(x), array(m), 0.1, G=2.0, **device)
    assert array(f(x, m, 0.1, G=2.0)) == pytest.approx(exact, rel=1e-11, abs=1e-12)
    every = lambda x, m, eps, G: f(x, m, eps, G=G)  # noqa: E731
    given = (x, m, number(0.3), number(1.5))
    assert torch.autograd.gradcheck(every, given)
    assert torch.autograd.gradgradcheck(every, given)
    assert torch.autograd.gradcheck(lambda x: f(x, m.detach()), (x,))
    operator = getattr(torch.ops.allpairs, plain).default
    torch.library.opcheck(operator, (x.detach(), m.detach(), torch.tensor(0.3, dtype=x.dtype), True))
    written = torch.func.jacrev(lambda x: at._written_out(plain, x, m, number(0.1)))(x)
    assert torch.allclose(torch.func.jacrev(lambda x: f(x, m, 0.1))(x), written, rtol=1e-11)


@SUMS
def test_vmap_is_independent_systems(name: str, plain: str) -> None:
    f: Callable[..., Any] = getattr(at, name)
    x, m, v = bodies()
    many = torch.stack([x, v, 2 * x]).detach()
    each = torch.stack([f(one, m, 0.1) for one in many])
    assert torch.equal(torch.func.vmap(lambda x: f(x, m, 0.1))(many), each)
    assert torch.equal(f(many, m, 0.1), each)
    loss = lambda x, m: (f(x, m, 0.1) ** 2).sum()  # noqa: E731
    found = torch.func.vmap(torch.func.grad(loss, argnums=(0, 1)), (0, None))(many, m.detach())
    for i, one in enumerate(many):
        of_one = torch.func.grad(loss, argnums=(0, 1))(one, m.detach())
        assert all(torch.allclose(a[i], b) for a, b in zip(found, of_one))


def test_it_can_be_compiled() -> None:
    x, m, _ = bodies()
    loss = lambda x, m: (at.accelerations(x, m, 0.1) ** 2).sum()  # noqa: E731
    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True)
    expected = torch.autograd.grad(loss(x, m), (x, m))
    assert all(torch.allclose(a, b) for a, b in zip(torch.autograd.grad(compiled(x, m), (x, m)), expected))


@pytest.mark.parametrize("scheme", ["leapfrog", "leapfrog-dkd", "yoshida4", "yoshida6"])
def test_trajectories(scheme: str) -> None:
    x, m, v = bodies()
    path = lambda x, v, m, dt, eps, G: at.leapfrog(x, v, m, dt, 3, eps, G=G, scheme=scheme)  # noqa: E731
    given = (x, v, m, number(0.05), number(0.3), number(1.2))
    assert torch.autograd.gradcheck(path, given)
    pos, vel = path(*given)
    sim = ap.Simulation(
        ap.Bodies(array(m), array(x), array(v)),
        softening=0.3,
        dt=0.05,
        G=1.2,
        integrator=scheme,
        accuracy="double",
        device="cpu",
    )
    sim.step(3)
    assert array(pos) == pytest.approx(sim.bodies.pos, rel=1e-12)
    assert array(vel) == pytest.approx(sim.bodies.vel, rel=1e-12)


FIELDS: list[tuple[str, dict[str, float]]] = [
    ("point", {"mass": 2.0}),
    ("plummer", {"mass": 2.0, "scale": 0.7}),
    ("hernquist", {"mass": 2.0, "scale": 0.7}),
    ("nfw", {"mass": 2.0, "scale": 0.7}),
    ("miyamoto-nagai", {"mass": 2.0, "a": 0.8, "b": 0.3}),
    ("isochrone", {"mass": 2.0, "scale": 0.7}),
    ("logarithmic", {"speed": 1.2, "core": 0.3, "flattening": 0.8}),
    ("power-law", {"mass": 2.0, "cutoff": 1.5, "exponent": 1.1}),
]


@pytest.mark.parametrize("name, parameters", FIELDS, ids=[name for name, _ in FIELDS])
def test_formulas_are_the_fields_of_simulations(name: str, parameters: dict[str, float]) -> None:
    centre = torch.tensor([0.2, -0.1, 0.3], dtype=torch.float64)
    points = torch.tensor(np.random.default_rng(1).normal(size=(4, 5, 3))) * torch.logspace(-3, 1.5, 5, dtype=torch.float64)[:, None]
    points = (points + centre).requires_grad_()
    given = {**parameters, "x": 0.2, "y": -0.1, "z": 0.3}
    exact = ap.field_at(array(points).reshape(-1, 3), field=str(at.Field(name, **given)), G=1.5)[0].reshape(points.shape)
    found = at.Field(name, **given).acceleration(0.0, points, G=1.5)
    assert np.abs(array(found) / exact - 1).max() < 2e-12
    assert np.abs(array(at.Field(name, **given).acceleration(0.0, points[1, 2], G=1.5)) / exact[1, 2] - 1).max() < 2e-12
    far = points[:, 3:].detach().requires_grad_()
    every = lambda x, *values: at.Field(name, **dict(zip(given, values))).acceleration(0.0, x)  # noqa: E731
    assert torch.autograd.gradcheck(every, (far, *map(number, given.values())))
    values = list(map(number, given.values()))
    every(centre, *values).sum().backward()
    assert all(bool(value.grad.isfinite()) for value in values if value.grad is not None) == (name != "point")


class Bar:
    """A field of the user's as an object, with a tensor."""

    def __init__(self, strength: Any) -> None:
        self.strength = strength

    def acceleration(self, time: Any, pos: Any) -> Any:
        return -self.strength * pos * torch.cos(3 * time)


def in_fields(scheme: str, steps: int, *, compiled: bool = False) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The end of a trajectory in two formulas and a field of the user's, by the package and written out."""

    def fields(mass: Any, scale: Any, strength: Any) -> list[Any]:
        formulas = [at.Field("plummer", mass=mass, scale=scale, x=0.3), at.Field("logarithmic", speed=scale, core=0.2)]
        return formulas if compiled else [*formulas, Bar(strength)]

    def ours(x: Any, v: Any, m: Any, dt: Any, eps: Any, G: Any, time: Any, mass: Any, scale: Any, k: Any) -> Any:
        ends = at.leapfrog(x, v, m, dt, steps, eps, G=G, field=fields(mass, scale, k), time=time, scheme=scheme)
        return torch.cat(ends)

    def plain(x: Any, v: Any, m: Any, dt: Any, eps: Any, G: Any, time: Any, mass: Any, scale: Any, k: Any) -> Any:
        for _ in range(steps):
            for kicks, share in _native.stages(scheme):
                if kicks:
                    a = G * at._written_out("force", x, m, eps)
                    for field in fields(mass, scale, k):
                        a = a + (field.acceleration(time, x, G) if isinstance(field, at.Field) else field.acceleration(time, x))
                    v = v + share * dt * a
                else:
                    x, time = x + share * dt * v, time + share * dt
        return torch.cat([x, v])

    return ours, plain


def given_fields(n: int = 6) -> tuple[Any, ...]:
    x, m, v = bodies(n)
    return (x, v, m, *map(number, (0.05, 0.2, 1.3, 0.7, 2.0, 1.1, 0.4)))


@pytest.mark.parametrize("scheme, steps", [("leapfrog", 0), ("leapfrog", 1), ("leapfrog", 4), ("leapfrog-dkd", 3), ("yoshida4", 3), ("yoshida6", 2)])
def test_trajectories_in_fields(scheme: str, steps: int) -> None:
    given = given_fields()
    ends = [f(*given) for f in in_fields(scheme, steps)]
    assert torch.allclose(*ends, rtol=1e-12, atol=1e-13)
    weights = torch.linspace(-1, 1, ends[0].numel(), dtype=torch.float64).reshape(ends[0].shape)
    found, exact = (torch.autograd.grad((end * weights).sum(), given, allow_unused=True, materialize_grads=True) for end in ends)
    for a, b in zip(found, exact):
        assert (a - b).abs().max() <= 1e-11 * (1 + b.abs().max())


def test_transformations_of_trajectories_in_fields() -> None:
    given = [a.detach() for a in given_fields(4)]
    many = torch.stack([given[7], 2 * given[7], 3 * given[7]])
    ks = torch.stack([given[9], given[9] / 2, -given[9]])
    axes = (None,) * 7 + (0, None, 0)
    found, exact = (
        torch.func.vmap(torch.func.grad(lambda *a, f=f: (f(*a) ** 2).sum(), argnums=(0, 2, 3, 7, 9)), axes)(*given[:7], many, given[8], ks)
        for f in in_fields("leapfrog", 3)
    )
    for a, b in zip(found, exact):
        assert a.shape == b.shape and torch.allclose(a, b, rtol=1e-10, atol=1e-11)
    ours, plain = in_fields("leapfrog", 3)
    found, exact = (
        torch.func.grad(lambda many, f=f: (torch.func.vmap(f, axes)(*given[:7], many, given[8], ks) ** 2).sum())(many)
        for f in (ours, plain)
    )
    assert torch.allclose(found, exact, rtol=1e-10, atol=1e-11)
    # Leading dimensions are systems, and so are parameters.
    x, v, m = given[:3]
    together = at.leapfrog(torch.stack([x, v]), torch.stack([v, x]), m, 0.1, 3, 0.2, field=at.Field("nfw", mass=many[:2], scale=1.0))
    for i, (a, b) in enumerate([(x, v), (v, x)]):
        single = at.leapfrog(a, b, m, 0.1, 3, 0.2, field=at.Field("nfw", mass=many[i], scale=1.0))
        assert all(torch.allclose(of_all[i], of_one, rtol=1e-12) for of_all, of_one in zip(together, single))


#: A tensor that a function uses, and that is in no closure.
GLOBAL: dict[str, Any] = {}


def test_functions_have_derivatives_by_all_tensors_that_they_use() -> None:
    x, m, v = (a.detach() for a in bodies())
    inside = number(0.4)
    GLOBAL["slope"] = number(0.3)
    net = torch.nn.Linear(3, 3).to(x.device, torch.float64)

    def potential(y: Any) -> Any:
        return 0.5 * inside * (y**2).sum() + GLOBAL["slope"] * y[0]

    def field(time: Any, y: Any) -> Any:
        return -torch.func.grad(potential)(y) + torch.tanh(net(y)) * time

    def plain(time: Any, y: Any) -> Any:
        first = torch.zeros_like(y)
        first[:, 0] = GLOBAL["slope"]
        return -inside * y - first + torch.tanh(net(y)) * time

    used = [inside, GLOBAL["slope"], *net.parameters()]
    found = torch.autograd.grad(sum((end**2).sum() for end in at.leapfrog(x, v, m, 0.1, 3, 0.2, field=field, time=0.5)), used)
    a, time = x, 0.5
    for _ in range(3):
        v = v + 0.05 * (at.accelerations(a, m, 0.2) + plain(time, a))
        a, time = a + 0.1 * v, time + 0.1
        v = v + 0.05 * (at.accelerations(a, m, 0.2) + plain(time, a))
    exact = torch.autograd.grad((a**2).sum() + (v**2).sum(), used)
    assert all(torch.allclose(a, b, rtol=1e-10) for a, b in zip(found, exact))
    assert all(a.dtype == b.dtype for a, b in zip(found, used))


def test_trajectories_in_fields_can_be_compiled() -> None:
    given = given_fields()
    ours, _ = in_fields("leapfrog", 2, compiled=True)
    loss = lambda *given: (ours(*given) ** 2).sum()  # noqa: E731
    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True)
    by = given[:9]
    found, expected = (torch.autograd.grad(f(*given), by, allow_unused=True, materialize_grads=True) for f in (compiled, loss))
    assert all(torch.allclose(a, b) for a, b in zip(found, expected))


def test_a_gradient_keeps_the_state_of_one_step() -> None:
    x, m, v = bodies(20)

    def kept(steps: int) -> int:
        sizes: list[int] = []

        def pack(tensor: Any) -> Any:
            sizes.append(tensor.numel())
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            at.leapfrog(x, v, m, 0.01, steps, 0.1, field=at.Field("plummer", mass=number(1.0), scale=1.0))
        return sum(sizes)

    assert 0 < kept(50) == kept(3)


def test_second_derivatives_in_fields_are_refused() -> None:
    x, m, v = bodies()
    end = at.leapfrog(x, v, m, 0.1, 2, 0.1, field=at.Field("point", mass=1.0))[0]
    (by_x,) = torch.autograd.grad(end.sum(), x, create_graph=True)
    with pytest.raises(NotImplementedError, match="first derivatives"):
        by_x.sum().backward()


def test_fields_in_single_precision() -> None:
    def loss(x: Any, m: Any, v: Any, mass: Any) -> Any:
        k = torch.tensor(0.2, dtype=x.dtype)
        field = [at.Field("plummer", mass=mass, scale=1.0), lambda t, x: -k * x]
        return (at.leapfrog(x, v, m, 0.01, 50, 0.1, field=field)[0] ** 2).sum()

    single = (*bodies(40, dtype=torch.float32), torch.tensor(2.0, dtype=torch.float32, requires_grad=True))
    double = (*bodies(40), number(2.0))
    for a, b in zip(torch.autograd.grad(loss(*single), single), torch.autograd.grad(loss(*double), double)):
        assert a.dtype == torch.float32
        assert (a - b).abs().max() < 1e-4 * b.abs().max()


def test_single_precision() -> None:
    loss = lambda x, m, v: (at.leapfrog(x, v, m, 0.01, 50, 0.1)[0] ** 2).sum()  # noqa: E731
    single, double = bodies(40, dtype=torch.float32), bodies(40)
    found = torch.autograd.grad(loss(*single), single)
    exact = torch.autograd.grad(loss(*double), double)
    for a, b in zip(found, exact):
        assert a.dtype == torch.float32
        assert (a - b).abs().max() < 1e-4 * b.abs().max()


def test_bad_arguments_are_refused_by_name(place: str) -> None:
    x, m, v = bodies()
    same = x.detach().clone()
    same[3] = same[5]
    cases: list[tuple[type[Exception], str, Callable[[], Any]]] = [
        (TypeError, "pos", lambda: at.accelerations(array(x), m)),
        (TypeError, "pos", lambda: at.accelerations(x.detach().to(torch.int64), m)),
        (ValueError, "pos", lambda: at.accelerations(x[:, :2], m)),
        (NotImplementedError, "pos", lambda: at.accelerations(x.to("meta"), m)),
        (ValueError, "m", lambda: at.accelerations(x, m[:4])),
        (TypeError, "m", lambda: at.accelerations(x, m.to(torch.float32))),
        (TypeError, "m", lambda: at.accelerations(x, "heavy")),
        (ValueError, "m", lambda: at.accelerations(x, unyt.unyt_quantity(1.0, "Msun"))),
        (ValueError, "eps", lambda: at.potential(x, m, unyt.unyt_quantity(1.0, "pc"))),
        (ValueError, "G", lambda: at.accelerations(x, m, G=unyt.unyt_quantity(1.0, "pc"))),
        (ValueError, "dt", lambda: at.leapfrog(x, v, m, unyt.unyt_quantity(1.0, "Myr"), 3)),
        (ValueError, "steps", lambda: at.leapfrog(x, v, m, 0.1, unyt.unyt_quantity(3, "pc"))),
        (ValueError, "eps", lambda: at.accelerations(x, m, x)),
        (ValueError, "eps", lambda: at.accelerations(x, m, -1.0)),
        (ValueError, "accuracy", lambda: at.potential(x, m, accuracy="high")),
        (ValueError, "vel", lambda: at.leapfrog(x, v[:3], m, 0.1, 3)),
        (ValueError, "steps", lambda: at.leapfrog(x, v, m, 0.1, -1)),
        (ValueError, "scheme", lambda: at.leapfrog(x, v, m, 0.1, 3, scheme="hermite4")),
        (ValueError, "name", lambda: at.Field("plumer", mass=1.0, scale=1.0)),
        (ValueError, "name", lambda: at.Field("tide", omega=1.0)),
        (ValueError, "scale", lambda: at.Field("plummer", mass=1.0)),
        (ValueError, "radius", lambda: at.Field("plummer", mass=1.0, radius=1.0)),
        (ValueError, "scale", lambda: at.Field("plummer", mass=1.0, scale=0.0)),
        (TypeError, "mass", lambda: at.Field("point", mass="heavy")),
        (ValueError, "pos", lambda: at.Field("point", mass=1.0).acceleration(0.0, x[:, :2])),
        (ValueError, "mass", lambda: at.leapfrog(x, v, m, 0.1, 3, field=at.Field("point", mass=torch.ones(3, dtype=x.dtype)))),
        (TypeError, "mass", lambda: at.leapfrog(x, v, m, 0.1, 3, field=at.Field("point", mass=torch.ones((), dtype=torch.float32)))),
        (ValueError, "time", lambda: at.leapfrog(x, v, m, 0.1, 3, field=[], time=torch.ones(3, dtype=x.dtype))),
        (TypeError, "field", lambda: at.leapfrog(x, v, m, 0.1, 3, field="nfw:mass=1,scale=2")),
        (ValueError, "field", lambda: at.leapfrog(x, v, m, 0.1, 3, field=lambda t, x: x[:2])),
        (TypeError, "field", lambda: at.leapfrog(x, v, m, 0.1, 3, field=lambda t, x: (x, x))),
    ]
    same_accelerations = at.accelerations(same.requires_grad_(), m).sum()
    assert same_accelerations.isfinite()
    if place == "cuda":  # which says nothing back
        same_accelerations.backward()
        assert same.grad.isnan().any()
        elsewhere = m.detach().cpu()
        cases.append((ValueError, "m", lambda: at.accelerations(x, elsewhere)))
    else:
        cases.append((ValueError, "pos", same_accelerations.backward))
    for kind, argument, call in cases:
        with pytest.raises(kind, match=f"`{argument}`"):
            call()
