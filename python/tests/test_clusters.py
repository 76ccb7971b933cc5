"""The benchmark of star clusters: its sums of energies, its readers of other programs' files, and its table."""

import math
import struct
import sys
from pathlib import Path

import numpy as np
import pytest

import allpairs as ap

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SAMPLES = BENCHMARKS / "clusters" / "samples"
sys.path.insert(0, str(BENCHMARKS))

from clusters import process, rows, table  # noqa: E402
from clusters.codes import Allpairs, Nbody6, NoProgram, PeTar, conf3, found_program  # noqa: E402
from clusters.energies import Start, energy, systems  # noqa: E402
from clusters.measure import measure, not_run  # noqa: E402

#: The program of the package, as another process.
PROGRAM = [sys.executable, "-c", "from allpairs._program import main; main()"]
ROWS = {row.name: row for row in rows.rows()}


def test_energies_are_those_of_pairs_written_out() -> None:
    bodies = ap.plummer(150, seed=3, masses="kroupa")
    m, x, v = bodies.m, bodies.pos, bodies.vel
    terms = [0.5 * m[i] * (v[i] @ v[i]) for i in range(len(m))]
    terms += [-m[i] * m[j] / math.dist(x[i], x[j]) for i in range(len(m)) for j in range(i)]
    assert energy(m, x, v) == pytest.approx(math.fsum(terms), rel=1e-14)
    assert energy(m, x, v, threads=3) == energy(m, x, v)
    assert energy(m, x, v) == pytest.approx(bodies.energy(0).total, rel=1e-12)


def test_inner_energies_of_bound_pairs_are_left_out() -> None:
    # A binary with a = 0.01 that flies past a body far away.
    pair = ap.orbit([0.3, 0.2], a=0.01, e=0.5, M=1)
    bodies = ap.Bodies(
        np.append(pair.m, 0.5), np.vstack([pair.pos, [[8, 0, 0]]]), np.vstack([pair.vel + [0, 0.1, 0], [[0, -0.1, 0]]])
    )
    inner = -0.3 * 0.2 / (2 * 0.01)
    outer = 0.5 * 1.0 * 0.01 - 0.5 * 0.5 / 8
    start = Start(bodies, 1)
    assert start.axes == pytest.approx([0.01])
    assert start.cluster == pytest.approx(outer, rel=1e-12)
    assert start.total == pytest.approx(inner + outer, rel=1e-6)
    later = bodies.copy()
    later.vel[0] *= 1 + 1e-6  # inner energy that is not there any more
    look = start.look(later[[2, 0, 1]])  # in another order
    change = energy(later.m, later.pos, later.vel) - start.total
    assert look.total == pytest.approx(abs(change / start.total))
    assert look.scaled == pytest.approx(abs(change / outer))
    assert look.cluster < 2e-7 < 5e-7 < look.total < look.scaled
    assert look.bound.tolist() == [True] and look.widened[0] > 1e-7
    # A binary that is dissolved has two bodies in the cluster, before and after.
    later.vel[0] *= 10
    look = start.look(later)
    assert look.bound.tolist() == [False] and not len(look.widened)
    whole = [energy(*systems(each, look.bound)) for each in (bodies, later)]
    assert look.cluster == pytest.approx(abs(whole[1] / whole[0] - 1))
    with pytest.raises(ValueError, match="2 of 3 bodies are left"):
        start.look(later[:2])


@pytest.mark.parametrize("name", ["e256-0", "k256-50"])
def test_a_row_is_measured_and_agrees_with_the_program(name: str, tmp_path: Path) -> None:
    row = ROWS[name]
    cluster = row.make(1)
    short = rows.Cluster(cluster.bodies, cluster.pairs, until=0.125, looks=2)
    start = Start(short.bodies, short.pairs)
    assert start.total == pytest.approx(short.bodies.energy(0).total, rel=1e-12)
    code = Allpairs(PROGRAM, "cpu")
    result = measure(row, 1, short, start, code, tmp_path / "run", limit=120, threads=1)
    assert (result.row, result.code, result.why, result.reached) == (name, "Allpairs", "", 0.125)
    assert result.binaries == short.pairs == (0 if name == "e256-0" else 85)
    assert 0 < result.last <= result.largest < 1e-5
    assert 0 <= result.loop < result.wall and result.cpu > 0
    assert 0.9 * short.pairs <= result.kept <= short.pairs
    # The drift that the program prints for the end has three digits, and takes binaries for points where they are far.
    said = (tmp_path / "run" / process.OUTPUT).read_text()
    line = next(line.split() for line in said.split("\n") if line.split()[:1] == ["energy"])
    assert result.last == pytest.approx(float(line[3]), rel=0.006, abs=1e-8 if short.pairs else 1e-14)
    assert result.own >= float(line[3])
    if short.pairs:
        assert result.largest < result.scaled < 1e-4 and result.widened < 1e-3
    else:
        assert result.scaled == pytest.approx(result.largest) == result.cluster and math.isnan(result.widened)
    lines = table.markdown([result])
    assert len(lines) == 3 and lines[2].startswith(f"| {name} | 1 | Allpairs | 0.125 |")


def test_runs_that_fail_are_lines_of_the_table(tmp_path: Path) -> None:
    row = ROWS["e1024-50"]
    cluster = row.make(2)
    start = Start(cluster.bodies, cluster.pairs)
    late = measure(row, 2, cluster, start, Allpairs(PROGRAM, "cpu"), tmp_path / "late", limit=0.01, threads=1)
    assert late.why == "time limit of 0.01 s" and late.reached == 0 and late.kept == -1
    refused = Allpairs(PROGRAM, "cpu", "--eta -1")
    wrong = measure(row, 2, cluster, start, refused, tmp_path / "wrong", limit=60, threads=1)
    assert wrong.code == "Allpairs --eta -1" and "ended with 2: " in wrong.why and "eta" in wrong.why
    with pytest.raises(rows.NotMade, match="mcluster is not installed") as not_made:
        ROWS["b1-1000-50"].make(1)
    b1 = not_run(ROWS["b1-1000-50"], 1, "PeTar", str(not_made.value))
    table.write([late, wrong, b1], tmp_path, ["about"])
    assert [result.key for result in table.read(tmp_path / "table.csv")] == [late.key, wrong.key, b1.key]
    for kind in ("md", "txt"):
        text = (tmp_path / f"table.{kind}").read_text()
        for words in ("about", "time limit of 0.01 s", "ended with 2", "mcluster is not installed"):
            assert words in text


def test_files_of_petar_are_read() -> None:
    code = PeTar("petar")
    (bodies,) = code.snapshots(SAMPLES / "petar")
    assert bodies.time == 0.125 and bodies.id.tolist() == [0, 2, 1]
    assert bodies.m.tolist() == [0.25, 0.5, 0.25]
    assert bodies.pos[1].tolist() == [-0.5, 0.28125, 0.015625] and bodies.vel[2].tolist() == [0, -0.5, 0]
    assert code.loop(SAMPLES / "petar") == pytest.approx(32 * 0.0025 + 32 * 0.0075)
    assert code.own_error(SAMPLES / "petar") == pytest.approx(4e-6)


def test_files_of_nbody6_are_read(tmp_path: Path) -> None:
    code = Nbody6("nbody6++")
    assert code.loop(SAMPLES / "nbody6") == pytest.approx(3.25)
    assert code.own_error(SAMPLES / "nbody6") == pytest.approx(2e-7)
    # Three bodies, of which two are a pair with a centre of mass behind them.
    file = tmp_path / "conf.3_0.125"
    header = [0.125, 1.0, *[0.0] * 18]
    m, pos = [0.25, 0.5, 0.125, 0.75], np.arange(12.0) / 8
    head = struct.pack("<4i", 4, 1, 1, 20)
    floats = [*header, *m, *[0.0] * 8, *pos, *(pos / 2), *[-1.0] * 4]
    body = struct.pack(f"<{len(floats)}f4i", *floats, 3, 1, 2, 6)
    file.write_bytes(b"".join(struct.pack("<i", len(r)) + r + struct.pack("<i", len(r)) for r in (head, body)))
    bodies = conf3(file)
    assert bodies.time == 0.125 and bodies.id.tolist() == [2, 0, 1] and bodies.m.tolist() == [0.25, 0.5, 0.125]
    assert bodies.pos.tolist() == pos.reshape(-1, 3)[:3].tolist() and bodies.vel[2].tolist() == [3 / 8, 7 / 16, 1 / 2]
    (tmp_path / "conf.3_0.0").write_bytes(b"the start")
    assert [each.time for each in code.snapshots(tmp_path)] == [0.125]
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(ValueError, match="cut off in its record 2"):
        conf3(file)


@pytest.mark.parametrize("code", [PeTar("petar"), Nbody6("nbody6++")], ids=lambda code: code.name)
def test_input_files_hold_all_digits(code: PeTar | Nbody6, tmp_path: Path) -> None:
    cluster = ROWS["e256-50"].make(1)
    command = code.prepare(cluster, tmp_path)
    is_petar = isinstance(code, PeTar)
    written = np.loadtxt(tmp_path / ("input" if is_petar else "dat.10"), skiprows=1 if is_petar else 0)
    bodies = cluster.bodies
    assert written[:, :7].tolist() == np.column_stack([bodies.m, bodies.pos, bodies.vel]).tolist()
    if is_petar:
        assert command.words[1:] == ["-b", "85", "-t", "1.0", "-o", "0.125", "input"]
        assert written[:, 9].tolist() == list(range(1, 257)) and written.shape == (256, 20)
    else:
        assert command.stdin is not None
        given = command.stdin.read_text()
        for words in ("N=256,", "NBIN0=85,", "TCRIT=1.0,", "DELTAT=0.125,", "KZ(1:10)= 0 0 1 0 1 0 0 2 0 1"):
            assert words in given


def test_initial_conditions_are_those_of_the_page() -> None:
    cluster = ROWS["k1024-50"].make(3)
    pairs = cluster.pairs
    assert pairs == 341 and len(cluster.bodies) == 1024 and cluster.bodies.m.sum() == pytest.approx(1)
    start = Start(cluster.bodies, pairs)
    assert (start.axes > 1 / (20 * 1024) * 0.999999).all() and (start.axes < 1 / 1024 * 1.000001).all()
    assert start.cluster == pytest.approx(-0.25, rel=0.3)
    merger = rows.merger(1, stars=2000)
    assert merger.myr is not None and merger.until * merger.myr == pytest.approx(50.6, rel=0.01)
    assert merger.bodies.m.sum() == pytest.approx(1) and len(merger.bodies) == 2000
    assert merger.bodies.energy(0).potential == pytest.approx(-0.5, rel=1e-6)
    halves = [merger.bodies[:1000], merger.bodies[1000:]]
    centres = [half.m @ half.pos / half.m.sum() for half in halves]
    size = 10 / np.linalg.norm(centres[0] - centres[1])  # pc in a unit of length
    for half, centre in zip(halves, centres):
        radii = np.linalg.norm(half.pos - centre, axis=1)
        within = half.m[size * radii < 2].sum() / half.m.sum()
        assert within == pytest.approx(0.5, abs=0.002)
    assert len(ROWS) == len(list(rows.rows())) and not found_program(None, "NO_SUCH_VARIABLE", "no-such-program")
    with pytest.raises(NoProgram, match="is not a program"):
        found_program("/no/such/program", "NO_SUCH_VARIABLE")
