"""Forces, potentials and trajectories in PyTorch, compared with finite differences and its own derivatives."""

from typing import Any, Callable

import numpy as np
import pytest
import unyt

import allpairs as ap

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
