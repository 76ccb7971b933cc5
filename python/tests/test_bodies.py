"""Bodies: from arrays, files and generators; units; what is refused, and by which name."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import allpairs as ap


def test_arrays_are_there_as_they_were_given() -> None:
    pos = np.arange(12.0).reshape(4, 3)
    bodies = ap.Bodies([1, 2, 3, 4], pos, vel=-pos, id=[7, 8, 9, 10], kind=[0, 1, 2, 2], time=3)
    assert bodies.pos.dtype == bodies.vel.dtype == bodies.m.dtype == np.float64
    assert bodies.pos.flags.c_contiguous and bodies.pos.flags.writeable
    assert (bodies.pos == pos).all() and (bodies.vel == -pos).all()
    assert bodies.m.tolist() == [1, 2, 3, 4] and bodies.id.tolist() == [7, 8, 9, 10]
    assert bodies.kind.tolist() == [ap.Kind.GAS, ap.Kind.DARK, ap.Kind.STAR, ap.Kind.STAR]
    pos[0] = 99  # a copy was taken
    assert bodies.pos[0, 0] == 0
    bodies.pos[0, 0] = 5  # and no copy is given
    assert bodies.pos[0, 0] == 5


@pytest.mark.parametrize(
    "array",
    [
        np.arange(24.0).reshape(4, 6)[:, ::2],
        np.asfortranarray(np.arange(12.0).reshape(4, 3)),
        np.arange(12, dtype=np.int32).reshape(4, 3),
        np.arange(12, dtype=">f4").reshape(4, 3),
        np.arange(12.0).reshape(4, 3).tolist(),
    ],
    ids=["strided", "fortran", "int32", "big-endian f4", "list"],
)
def test_arrays_are_converted_where_nothing_is_lost(array: np.ndarray) -> None:
    frozen = np.array(array)
    frozen.setflags(write=False)
    for given in (array, frozen):
        assert (ap.Bodies(1.0, given).pos == np.asarray(array)).all()
        expected = ap.accelerations(np.array(array, dtype=float), np.ones(4), 0.1)
        assert (ap.accelerations(given, np.ones(4), 0.1) == expected).all()


def test_bad_arrays_are_refused_by_name() -> None:
    pos, m = np.ones((4, 3)), np.ones(4)
    nan = pos.copy()
    nan[2, 1] = np.nan
    for argument, make in [
        ("pos", lambda: ap.Bodies(m, np.ones((4, 2)))),
        ("pos", lambda: ap.Bodies(m, np.ones(12))),
        ("pos", lambda: ap.Bodies(m, nan)),
        ("pos", lambda: ap.Bodies(m, pos.astype(complex))),
        ("pos", lambda: ap.Bodies(m, pos.astype(np.longdouble))),
        ("pos", lambda: ap.Bodies(m, [["a", "b", "c"]] * 4)),
        ("pos", lambda: ap.Bodies(m, np.ma.masked_array(pos, mask=pos > 0))),
        ("vel", lambda: ap.Bodies(m, pos, np.ones((3, 3)))),
        ("m", lambda: ap.Bodies(np.ones(3), pos)),
        ("m", lambda: ap.Bodies([1, 1, -1, 1], pos)),
        ("m", lambda: ap.Bodies([1, 1, np.inf, 1], pos)),
        ("id", lambda: ap.Bodies(m, pos, id=[1.5] * 4)),
        ("id", lambda: ap.Bodies(m, pos, id=[-1] * 4)),
        ("kind", lambda: ap.Bodies(m, pos, kind=[3] * 4)),
        ("time", lambda: ap.Bodies(m, pos, time=np.nan)),
        ("units", lambda: ap.Bodies(m, pos, units="furlong")),
        ("pos", lambda: ap.accelerations(nan, m)),
        ("m", lambda: ap.accelerations(pos, -m)),
        ("eps", lambda: ap.accelerations(pos, m, -1)),
        ("device", lambda: ap.accelerations(pos, m, device="gpu")),
        ("points", lambda: ap.field_at(nan, pos, m)),
        ("m", lambda: ap.field_at(pos, pos)),  # type: ignore[call-overload]
        ("G", lambda: ap.potential(pos, m, G=np.nan)),
    ]:
        with pytest.raises(ap.ArgumentError, match=f"`{argument}`") as refused:
            make()  # type: ignore[no-untyped-call]
        assert isinstance(refused.value, ValueError) and refused.value.argument == argument


def test_changed_arrays_are_checked_where_they_are_used(tmp_path: Path) -> None:
    bodies = ap.plummer(10)
    bodies.pos[3, 0] = np.nan
    for use in (bodies.energy, lambda: ap.Simulation(bodies), bodies.accelerations):
        with pytest.raises(ap.ArgumentError, match="body 3: x = NaN"):
            use()
    wrong: list[tuple[str, Any]] = [
        ("pos", bodies.pos[:5]),
        ("vel", np.zeros((11, 3))),
        ("m", np.ones(3)),
        ("id", [1, 2]),
        ("kind", [0] * 9),
        ("pos", np.full((10, 3), 2**53 + 1)),
        ("pos", np.zeros((10, 2))),
        ("m", "heavy"),
    ]
    bodies = ap.plummer(10)
    for name, value in wrong:
        before = getattr(bodies, name)
        with pytest.raises(ap.ArgumentError, match=f"`{name}`"):
            setattr(bodies, name, value)
        assert getattr(bodies, name) is before and len(bodies) == 10
    bodies.pos *= 2
    bodies.m = 0.5
    assert (bodies.pos == 2 * ap.plummer(10).pos).all() and (bodies.m == 0.5).all()


def test_arrays_that_would_lose_digits_or_cannot_be_read_are_refused() -> None:
    large = np.full((2, 3), 2**53, dtype=np.int64)
    assert (ap.Bodies(1.0, large).pos == 2.0**53).all()
    for beyond in (large + 1, -large - 1, large.astype(np.uint64) + 1):
        with pytest.raises(ap.ArgumentError, match="`pos` holds whole numbers beyond"):
            ap.Bodies(1.0, beyond)
    raw = np.zeros(6 * 8 + 1, dtype=np.uint8)[1:].view(np.float64).reshape(2, 3)  # at an odd address
    raw[:] = np.arange(6).reshape(2, 3)
    assert not raw.flags.aligned and (ap.Bodies(1.0, raw).pos == raw).all()
    assert np.isfinite(ap.accelerations(raw, 1.0)).all()

    class Liar:
        def __dlpack_device__(self) -> None:
            return None

    with pytest.raises(ap.ArgumentError, match="`pos`"):
        ap.accelerations(Liar(), 1.0)  # type: ignore[call-overload]
    with pytest.raises(ap.ArgumentError, match="`time` must be a number"):
        ap.Bodies(1.0, np.eye(3), time=10**400)


def test_every_generator_makes_bodies() -> None:
    for name, options in ap.generators().items():
        few: dict[str, Any] = {"bodies": 64} if "bodies" in options else {}
        if name == "many-galaxies":
            few = {"systems": 2, "each": 32}
        bodies = ap.make(name, seed=3, **few)
        assert len(bodies) > 1 and bodies.m.sum() > 0, name
        function = getattr(ap, name.replace("-", "_"))
        again = function(**few, seed=3) if name == "many-galaxies" else None
        if "bodies" in options:
            again = function(64, seed=3)
        again = again or function()
        assert (again.pos == bodies.pos).all() and (again.vel == bodies.vel).all(), name


def test_names_are_offered() -> None:
    for make, near in [
        (lambda: ap.make("plumer"), "plummer"),
        (lambda: ap.make("solar_sytem"), "solar-system"),
        (lambda: ap.make("king", bodies=10, w_0=6), "w0"),
        (lambda: ap.Simulation(ap.plummer(10), integrator="leapfrg"), "leapfrog"),
        (lambda: ap.Simulation(ap.plummer(10), kernel="cpu-f46"), "cpu-f64"),
        (lambda: ap.Simulation(ap.plummer(10), accuracy="duoble"), "double"),
        (lambda: ap.plummer(10).save("x.csv", format="npx"), "npz"),
    ]:
        with pytest.raises(ap.ArgumentError, match=f"did you mean '{near}'"):
            make()  # type: ignore[no-untyped-call]
    with pytest.raises(ap.ArgumentError, match="W0"):
        ap.king(10, w0=-1)
    with pytest.raises(ap.ArgumentError, match="has no virial ratio"):
        ap.make("plummer", bodies=10, virial_ratio=1)
    for n in (0, -1, 2.5):
        with pytest.raises(ap.ArgumentError):
            ap.plummer(n)  # type: ignore[arg-type]


def test_models_have_a_size() -> None:
    bodies = ap.plummer(500, seed=1, mass="1e5 Msun", half_mass_radius="3 pc")
    assert bodies.units is not None and bodies.units == ap.Units.of("pc")
    assert bodies.m.sum() == pytest.approx(1e5)
    radii = np.sort(np.linalg.norm(bodies.pos - np.average(bodies.pos, axis=0), axis=1))
    assert radii[249] == pytest.approx(3.0, rel=1e-9)
    assert bodies.G == pytest.approx(4.30092e-3, rel=1e-5)
    nbody = bodies.to("nbody")
    assert nbody.m.sum() == pytest.approx(1) and nbody.G == pytest.approx(1)
    assert nbody.energy().potential == pytest.approx(-0.5)
    for wrong in ({"mass": "1 Msun"}, {"radius": "1 pc"}, {"mass": 5, "radius": "1 pc"}):
        with pytest.raises(ap.ArgumentError):
            ap.plummer(10, **wrong)


def test_lengths_of_models_have_units() -> None:
    size: dict[str, Any] = {"mass": "1000 Msun", "radius": "2 pc"}
    king = ap.king(200, seed=1, tidal_radius="12 pc", **size)
    assert king.pos == pytest.approx(ap.king(200, seed=1, tidal_radius=6.0, **size).pos, rel=1e-12)
    assert np.linalg.norm(king.pos, axis=1).max() < 12.5
    ring = ap.kepler_ring(20, width="1 pc", **size)
    assert ring.pos == pytest.approx(ap.kepler_ring(20, width=0.5, **size).pos, rel=1e-12)
    for wrong, why in [
        (lambda: ap.king(10, tidal_radius="5 pc"), "`tidal_radius`: `5 pc` has a unit.*`radius`"),
        (lambda: ap.king(10, tidal_radius="5 Myr", **size), "not a length"),
        (lambda: ap.king(10, tidal_radius="far", **size), "`tidal_radius`: `far` is not a number"),
        (lambda: ap.make("king", bodies=10, w0="6 pc", **size), "`w0` must be a number"),
        (
            lambda: ap.king(10, tidal_radius="5 pc", mass="1 Msun", half_mass_radius="1 pc"),
            "`tidal_radius`: `5 pc` has a unit",
        ),
    ]:
        with pytest.raises(ap.ArgumentError, match=why):
            wrong()  # type: ignore[no-untyped-call]


def gadget_1(time: float, redshift: float, h: float, pos: Any, vel: Any, m: Any) -> bytes:
    """A binary file of Gadget's format 1 with stars of a universe of 0.3 and 0.7."""
    header = np.zeros(256, dtype=np.uint8)
    header[16:20] = header[112:116] = np.array([len(m)], dtype="<u4").view(np.uint8)
    header[72:88] = np.array([time, redshift]).view(np.uint8)
    header[124:128] = np.array([1], dtype="<i4").view(np.uint8)
    header[136:160] = np.array([0.3, 0.7, h]).view(np.uint8)
    ids = np.arange(len(m), dtype="<u4")
    blocks = [header, pos.astype("<f8"), vel.astype("<f8"), ids, m.astype("<f8")]
    records = [(np.array([block.nbytes], dtype="<u4").tobytes(), block.tobytes()) for block in blocks]
    return b"".join(length + content + length for length, content in records)


def test_cosmological_snapshots_are_made_physical(tmp_path: Path) -> None:
    random = np.random.default_rng(4)
    pos, vel, m = random.normal(size=(9, 3)), random.normal(size=(9, 3)), random.uniform(1, 2, 9)
    path = tmp_path / "snap_000"
    path.write_bytes(gadget_1(0.25, 3.0, 0.7, pos, vel, m))
    with pytest.raises(ap.FileError, match="cosmological.*`physical=\"proper\"`"):
        ap.load(path)
    with pytest.warns(UserWarning, match="redshift 3.0"):
        found = ap.load(path, physical="peculiar")
    np.testing.assert_allclose(found.pos, pos * 0.25 / 0.7, rtol=1e-14)
    np.testing.assert_allclose(found.vel, vel * 0.5, rtol=1e-14)
    np.testing.assert_allclose(found.m, m / 0.7, rtol=1e-14)
    with pytest.raises(ap.ArgumentError, match="`physical`"):
        ap.load(path, physical="comoving")


def test_tables_of_other_codes_are_written(tmp_path: Path) -> None:
    cluster = ap.plummer(20, mass="1e4 Msun", radius="5 pc")
    with pytest.warns(UserWarning, match="option -u 1") as warned:
        cluster.save(tmp_path / "a.petar")
    assert any("ids are larger by 1" in str(one.message) for one in warned)
    lines = [line.split() for line in (tmp_path / "a.petar").read_text().splitlines()]
    assert lines[0][:2] == ["0", "20"] and {len(line) for line in lines[1:]} == {20}
    table = np.array(lines[1:], dtype=float)
    np.testing.assert_allclose(table[:, 0], cluster.m, rtol=1e-12)
    np.testing.assert_allclose(table[:, 4:7], cluster.vel * 1.022712165045695, rtol=1e-12)
    assert table[:, 9].tolist() == list(range(1, 21))
    with pytest.warns(UserWarning, match="pc, Msun, km/s"):
        cluster.save(tmp_path / "dat.10")
    np.testing.assert_array_equal(np.loadtxt(tmp_path / "dat.10")[:, 1:4], cluster.pos)


def test_h5py_reads_large_files(tmp_path: Path) -> None:
    """The size of a chunk of 65 536 rows takes three bytes."""
    h5py: Any = pytest.importorskip("h5py")
    count = 70_000
    positions = np.arange(3.0 * count).reshape(count, 3)
    bodies = ap.Bodies(np.full(count, 0.5), positions, vel=-positions)
    bodies.save(tmp_path / "large.hdf5")
    with h5py.File(tmp_path / "large.hdf5") as file:
        stars = file["PartType4"]
        np.testing.assert_array_equal(stars["Coordinates"], bodies.pos)
        np.testing.assert_array_equal(stars["ParticleIDs"], bodies.id)
        assert stars["Velocities"].chunks == (65_536, 3)


def test_files_come_back(tmp_path: Path) -> None:
    bodies = ap.king(50, seed=2, mass="1000Msun", radius="1pc")
    bodies.time = 2.5
    for name in ("a.allpairs", "a.hdf5", "a.npz", "a.csv", "a.vtp"):
        bodies.save(tmp_path / name)
        read = ap.load(tmp_path / name)
        for array in ("pos", "vel", "m", "id", "kind"):
            assert (getattr(read, array) == getattr(bodies, array)).all(), (name, array)
        if name.endswith(("allpairs", "hdf5", "npz", "csv")):
            assert read.units is not None and bodies.units is not None
            for size in ("length", "mass", "time", "G"):
                known = getattr(bodies.units, size)
                assert getattr(read.units, size) == pytest.approx(known, rel=1e-14)
            assert read.time == 2.5
    with pytest.raises(ap.FileError, match="a.csv"):
        bodies.save(tmp_path / "a.csv")
    ap.save(tmp_path / "a.csv", bodies, overwrite=True)
    with pytest.raises(OSError, match="no such file"):
        ap.load(tmp_path / "none.csv")
    (tmp_path / "bad.npz").write_bytes(b"nothing")
    with pytest.raises(ap.FileError, match="bad.npz"):
        ap.load(tmp_path / "bad.npz")
    with pytest.raises(ap.ArgumentError, match="does not tell a format"):
        bodies.save(tmp_path / "a")
    converted = ap.convert(tmp_path / "a.npz", tmp_path / "b.hdf5", units="kpc")
    assert converted.pos[0] == pytest.approx(bodies.pos[0] / 1000)
    with pytest.raises(ap.ArgumentError, match="`given`"):
        ap.plummer(10).to("kpc")
    with pytest.raises(ap.ArgumentError, match="must be the units of these bodies"):
        bodies.to("pc", given="kpc")
    assert bodies.to("kpc", given=bodies.units).pos[0] == pytest.approx(converted.pos[0])


def test_bodies_are_chosen_joined_copied_and_pickled() -> None:
    bodies = ap.plummer(20, seed=1)
    assert len(bodies[:5]) == 5 and len(bodies[bodies.m > 1]) == 0 and len(bodies[3]) == 1
    both = bodies[:5] + bodies[15:]
    assert len(both) == 10 and len(set(both.id)) == 10
    back = pickle.loads(pickle.dumps(bodies))
    assert (back.pos == bodies.pos).all() and back is not bodies
    assert "20" in repr(bodies)
    with pytest.raises(ap.ArgumentError, match="different units"):
        bodies + ap.sun_earth()


def test_bodies_are_not_chosen_by_what_is_no_index() -> None:
    bodies = ap.plummer(5, seed=1)
    no_index: list[Any] = [True, np.bool_(True), None, np.array([[0, 1], [2, 3]]), (slice(None), None)]
    for index in no_index:
        for part in (bodies, bodies.elements()):
            with pytest.raises(ap.ArgumentError, match="`index` must be a number, a slice, a mask"):
                part[index]
    for index in (5, np.array([True]), [0.5], (slice(None), 0)):
        with pytest.raises(IndexError):
            bodies[index]  # type: ignore[index]
    assert [body.id[0] for body in bodies] == [0, 1, 2, 3, 4]
    assert bodies[-1].id == bodies[np.array(4)].id == [4] and len(bodies[[]]) == len(bodies[5:]) == 0


def test_switches_and_bytes_are_no_numbers() -> None:
    bodies = ap.plummer(5)
    for strange in (True, np.bool_(True), b"0.1"):
        for argument, call in [
            ("softening", lambda: ap.Simulation(bodies, softening=strange)),
            ("time", lambda: ap.Bodies(1.0, np.eye(3), time=strange)),
            ("eps", lambda: bodies.energy(strange)),
            ("w0", lambda: ap.king(10, w0=strange)),  # type: ignore[arg-type]
            ("n", lambda: ap.Simulation(bodies, softening=0.1, dt=0.1, device="cpu").step(strange)),  # type: ignore[arg-type]
        ]:
            with pytest.raises(ap.ArgumentError, match=f"`{argument}` must be a (whole )?number, got "):
                call()  # type: ignore[no-untyped-call]
    assert len(ap.make("solar-system", moon=True)) == 11


def test_the_virial_ratio_is_in_the_frame_of_the_centre_of_mass() -> None:
    rest = ap.plummer(100, seed=1)
    moving = rest.copy()
    moving.vel += [30.0, 0, 0]
    ratio = rest.energy().virial_ratio
    assert 0.5 < ratio < 1.5 and moving.energy().virial_ratio == pytest.approx(ratio, rel=1e-9)
    assert moving.energy().kinetic == pytest.approx(rest.energy().kinetic + 450, rel=1e-3)
    simulation = ap.Simulation(moving, softening=0, dt=0.01, device="cpu")
    assert simulation.energy().virial_ratio == pytest.approx(ratio, rel=1e-9)
    assert simulation.energy().virial_ratio == pytest.approx(float(simulation.diagnostics()["virial_ratio"]), rel=1e-9)
    batch = ap.batch([rest, moving], softening=0, dt=0.01, device="cpu")
    assert [energy.virial_ratio for energy in batch.energies()] == pytest.approx([ratio, ratio], rel=1e-9)
    assert np.isnan(ap.Bodies(0.0, np.eye(3)).energy().virial_ratio)
    moving.time = 1.0
    with pytest.raises(ap.ArgumentError, match="`systems` must be of the same time: 0.0 and 1.0"):
        ap.batch([rest, moving], softening=0, dt=0.01, device="cpu")


def test_arrays_that_are_read_only_are_copied() -> None:
    frozen = np.ones((5, 3))
    frozen.flags.writeable = False
    bodies = ap.plummer(5)
    bodies.pos = frozen
    bodies.pos[0] = 2
    assert frozen.max() == 1 and bodies.pos[0].tolist() == [2, 2, 2]
    bodies.vel = ap.Simulation(bodies, softening=0.1, dt=0.1, device="cpu").bodies.pos
    bodies.vel += 1
    assert bodies.vel[0].tolist() == [3, 3, 3]
    assert repr(bodies.pos[:1]) == "array([[2., 2., 2.]])"


def test_units_are_shown_by_their_names() -> None:
    cluster = ap.plummer(1000, seed=1, mass="1e4 Msun", half_mass_radius="3 pc")
    assert str(cluster) == "1000 bodies of total mass 10000, in pc, Msun and km/s"
    assert repr(cluster) == "<Bodies: 1000 of total mass 10000, t = 0, in pc, Msun, km/s>"
    assert str(cluster.units) == "pc, Msun, km/s" and repr(cluster.units) == "Units('pc, Msun, km/s')"
    for text, names in [
        ("kpc", "kpc, 1e10 Msun, km/s"),
        ("au", "au, Msun"),
        ("si", "m, kg, s"),
        ("pc,Msun,Myr", "pc, Msun, Myr"),
    ]:
        assert str(ap.Units.of(text)) == names
    old = ap.Bodies(1.0, np.eye(3), units="pc", time=50 / 0.9777922216807891)
    assert repr(old) == "<Bodies: 3 of total mass 3, t = 50 Myr, in pc, Msun, km/s>"
    assert str(ap.plummer(1)) == "1 body of total mass 1"


def test_quantities_have_units() -> None:
    class Quantity:
        """Stands for astropy's quantities."""

        def __init__(self, value: np.ndarray, metres: float) -> None:
            self.value, self.unit, self.metres = value, "pc", metres

        def to_value(self, unit: str) -> np.ndarray:
            if unit != "m":
                raise TypeError("not convertible")
            return self.value * self.metres

    pos = np.ones((4, 3))
    parsec = ap.Units.of("pc").length
    bodies = ap.Bodies(1.0, Quantity(pos, 1000 * parsec), units="pc")  # type: ignore[arg-type]
    assert bodies.units == ap.Units.of("pc") and bodies.pos == pytest.approx(1000 * pos)
    bodies = ap.Bodies(1.0, Quantity(pos, 1000 * parsec), units="kpc")  # type: ignore[arg-type]
    assert bodies.pos == pytest.approx(pos)
    with pytest.raises(ap.ArgumentError, match="`vel`"):
        ap.Bodies(1.0, pos, Quantity(pos, parsec), units="pc")  # type: ignore[arg-type]
    sizes = Quantity(np.full(4, 0.01), parsec)
    with pytest.raises(ap.ArgumentError, match="`radii` has a unit, and the bodies have none"):
        ap.Simulation(ap.Bodies(1.0, np.diag([1.0, 2, 3, 4])[:, :3]), radii=sizes)
    setattr(sizes, "to_value", lambda unit: 1 / 0)
    with pytest.raises(ap.ArgumentError, match="`radii` is not a length"):
        ap.Simulation(ap.Bodies(1.0, np.diag([1.0, 2, 3, 4])[:, :3], units="pc"), radii=sizes)


def test_stars_have_masses_of_their_own() -> None:
    stars = ap.plummer(2000, seed=1, masses="kroupa", least_mass=0.1, greatest_mass=50, binaries=0.5)
    assert stars.m.max() > 20 * np.median(stars.m)
    assert (stars.m == ap.plummer(2000, seed=1, masses="kroupa", least_mass=0.1, greatest_mass=50, binaries=0.5).m).all()
    assert (ap.plummer(2000, seed=1).m == 1 / 2000).all()
    with pytest.raises(ap.ArgumentError, match="kroupa, salpeter"):
        ap.plummer(10, masses="kruppa")
    with pytest.raises(ap.ArgumentError, match="masses"):
        ap.make("solar-system", masses="kroupa")
