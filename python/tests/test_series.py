"""Series of snapshots, movies and logs in files."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import allpairs as ap


def run(folder: Path) -> tuple[ap.Series, ap.Simulation]:
    series = ap.series(folder, create=True)
    simulation = ap.Simulation(ap.plummer(60, seed=1), softening=0.1, dt=0.05, device="cpu")
    series.add(simulation)
    simulation.integrate(0.5, every=0.1, callback=series.add)
    return series, simulation


def test_a_run_leaves_a_series(tmp_path: Path) -> None:
    series, simulation = run(tmp_path / "run")
    assert len(series) == 6 and series.times == pytest.approx(np.arange(6) / 10, abs=1e-12)
    again = ap.series(tmp_path / "run")
    assert again.files == series.files and (again.times == series.times).all()
    assert (again[-1].pos == simulation.bodies.pos).all() and again[-1].time == simulation.t
    assert [len(bodies) for bodies in again] == [60] * 6
    assert again[::2].times == pytest.approx([0, 0.2, 0.4]) and "6 snapshots" in repr(again)
    with pytest.raises(IndexError):
        again[6]
    again.add(ap.plummer(3))
    assert again.files[-1].name == "snapshot-00006.allpairs" and len(ap.series(tmp_path / "run")) == 7
    with pytest.raises(ap.FileError, match="already has snapshots"):
        ap.series(tmp_path / "run", create=True)
    with pytest.raises(ap.ArgumentError, match="cannot be added"):
        again[:2].add(ap.plummer(3))


def test_files_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for number in (10, 9, 2):
        bodies = ap.plummer(5)
        bodies.time = number
        bodies.save(tmp_path / f"s{number}.csv")
    for path in (tmp_path, str(tmp_path / "s*.csv"), [tmp_path / f"s{k}.csv" for k in (2, 9, 10)]):
        assert [file.name for file in ap.series(path).files] == ["s2.csv", "s9.csv", "s10.csv"]
    ap.plummer(5).save(tmp_path / "snapshot-1.npz")
    assert [file.name for file in ap.series(tmp_path).files] == ["snapshot-1.npz"]
    late = ap.plummer(5)
    late.time = 3.0
    late.save(tmp_path / "final.npz")
    assert ap.series(tmp_path).times.tolist() == [0, 3]
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "diagnostics.csv").write_text("time\n0\n")  # a table of a run
    for nothing in (tmp_path / "none", tmp_path / "x*.csv", tmp_path / "a.csv", [tmp_path / "a.csv"]):
        with pytest.raises(ap.FileError, match="no "):
            ap.series(nothing)
    for ending in ("hdf5-gzip", "csv"):
        made = ap.series(tmp_path / ending, create=True, format=ending)
        made.add(ap.plummer(4, seed=2))
        assert (made[0].pos == ap.plummer(4, seed=2).pos).all()


def test_times_have_units(tmp_path: Path) -> None:
    series = ap.series(tmp_path, create=True)
    for units in ("pc,Msun,km/s", "au,Msun,yr"):
        bodies = ap.Bodies([1.0, 1.0], [[0, 0, 0], [1, 0, 0]], units=units)
        bodies.time = 2.0
        series.add(bodies)
    times = series.quantity("time")
    assert str(times.unit) == "Myr" and times.value == pytest.approx([2 * 0.977792, 2e-6], rel=1e-6)
    assert series.times == pytest.approx([2.0, 2e-6 / 0.977792], rel=1e-6)
    assert ap.series(tmp_path)[1:].times.tolist() == [2.0]
    with pytest.raises(ap.ArgumentError, match="`name`"):
        series.quantity("pos")
    series.add(ap.plummer(3))
    with pytest.raises(ap.ArgumentError, match="others have none"):
        series.times
    with pytest.raises(ap.ArgumentError, match="no units"):
        series[2:].quantity("time")


def test_the_program_and_python_read_each_others_series(tmp_path: Path) -> None:
    code = "from allpairs._program import main; main()"
    arguments = "run plummer --bodies 50 --steps 10 --dt 0.01 --snapshot-every 0.04 --softening 0.1".split()
    arguments += ["--device", "cpu", "--out", str(tmp_path / "RUN")]
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    series = ap.series(tmp_path / "RUN")
    assert series.times[-1] == pytest.approx(0.1) and len(series) >= 3 and (np.diff(series.times) > 0).all()
    assert ap.movie(tmp_path / "RUN", tmp_path / "a.gif", size=(40, 40)).exists()


def frames(gif: bytes) -> int:
    """Pictures in a GIF: blocks of its structure are counted, not bytes that look like them."""
    at = 13 + (3 << ((gif[10] & 7) + 1) if gif[10] & 0x80 else 0)
    count = 0
    while gif[at] != 0x3B:
        if gif[at] == 0x2C:
            count += 1
            at += 10 + (3 << ((gif[at + 9] & 7) + 1) if gif[at + 9] & 0x80 else 0) + 1
        else:
            at += 2
        while gif[at]:
            at += gif[at] + 1
        at += 1
    return count


def test_movies_show_all_snapshots(tmp_path: Path) -> None:
    series, _ = run(tmp_path / "run")
    path = ap.movie(series, tmp_path / "a.gif", ["xy", "xz"], size=(80, 40), fps=5)
    gif = path.read_bytes()
    assert gif[:6] == b"GIF89a" and frames(gif) == 6
    assert (int.from_bytes(gif[6:8], "little"), int.from_bytes(gif[8:10], "little")) == (80, 40)
    clusters = [ap.plummer(40, seed=k, mass="10 Msun", radius="1 pc") for k in range(3)]
    shown: dict[str, Any] = {"half_width": "2 pc", "centre": [0, 0, 0], "colour_map": "viridis", "bare": True}
    listed = ap.movie(clusters, tmp_path / "b.gif", size=(40, 40), **shown)
    assert frames(listed.read_bytes()) == 3
    assert ap.movie(series, tmp_path / "c.apng", size=(30, 30)).read_bytes()[:4] == b"\x89PNG"
    with pytest.raises(ap.FileError, match="already exists"):
        ap.movie(series, path)
    with pytest.raises(ap.FileError, match="there is no folder"):
        ap.movie(series, tmp_path / "none" / "a.gif")
    assert frames(ap.movie(series[:2], path, size=(20, 20), overwrite=True).read_bytes()) == 2
    refused: list[tuple[str, dict[str, Any]]] = [
        ("path", {"path": tmp_path / "a.avi"}),
        ("axes", {"axes": "xx"}),
        ("colour_map", {"colour_map": "red"}),
        ("fps", {"fps": 0}),
        ("snapshots", {"snapshots": []}),
        ("half_width", {"half_width": "2 kg"}),
    ]
    for argument, wrong in refused:
        with pytest.raises(ap.ArgumentError, match=f"`{argument}`"):
            ap.movie(**{"snapshots": series, "path": tmp_path / "d.gif", "size": (20, 20), **wrong})
    assert not (tmp_path / "d.gif").exists()
    if shutil.which("ffmpeg") is None:
        with pytest.raises(ap.ArgumentError, match="`path` ends in .mp4, and ffmpeg"):
            ap.movie(series, tmp_path / "d.mp4")


def test_views_play_a_series(tmp_path: Path) -> None:
    series, _ = run(tmp_path / "run")
    assert len(ap.view(series).html) > len(ap.view(series[:1]).html)


def test_logs_are_written_as_the_program_writes_them(tmp_path: Path) -> None:
    series, simulation = run(tmp_path / "run")
    simulation.write_log(tmp_path / "log.csv")
    header, *rows = (tmp_path / "log.csv").read_text().splitlines()
    names = header.split(",")
    assert names == ["step", *list(ap.LOG.names or ())[1:]] and len(rows) == len(simulation.log) == 6
    for row, recorded in zip(rows, simulation.log):
        for name, cell in zip(list(ap.LOG.names or ()), row.split(",")):
            assert cell == "" and np.isnan(recorded[name]) or float(cell) == recorded[name], name
    assert list(ap.plot(tmp_path / "log.csv")) == list(ap.plot(simulation))
    with pytest.raises(ap.FileError, match="already exists"):
        simulation.write_log(tmp_path / "log.csv")
    simulation.write_log(tmp_path / "log.csv", overwrite=True)
    with pytest.raises(ap.ArgumentError, match="`log` is empty"):
        ap.Simulation(ap.plummer(5), softening=0.1, dt=0.1, device="cpu").write_log(tmp_path / "b.csv")
    code = "from allpairs._program import main; main()"
    arguments = "run plummer --bodies 50 --steps 4 --diagnostics 2 --device cpu --out".split() + [str(tmp_path / "RUN")]
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "RUN/diagnostics.csv").read_text().splitlines()[0] == header


def test_logs_have_units_where_the_bodies_have_them(tmp_path: Path) -> None:
    bodies = ap.plummer(50, mass="1e3 Msun", radius="1 pc")
    simulation = ap.Simulation(bodies, softening="0.05 pc", dt="0.05 Myr", device="cpu", integrator="leapfrog")
    simulation.integrate("0.2 Myr", every="0.1 Myr")
    simulation.write_log(tmp_path / "log.csv")
    header, *rows = (tmp_path / "log.csv").read_text().splitlines()
    assert header.startswith("step,time [Myr],kinetic [Msun km2/s2],") and ",r50 [pc]," in header
    assert float(rows[-1].split(",")[1]) == pytest.approx(0.2, rel=1e-12)
    assert float(rows[-1].split(",")[2]) == simulation.log["kinetic"][-1]
    assert "time [Myr]" in ap.plot(tmp_path / "log.csv")["energy-drift"]


def test_events_of_a_run_with_units_are_resumed(tmp_path: Path) -> None:
    code = "from allpairs._program import main; main()"
    run = (
        "run cold-collapse --bodies 60 --seed 3 --mass 1e3Msun --radius 1pc --device cpu --checkpoint-every 50 --softening 0 "
        "--dt 0.005Myr --steps 400 --integrator leapfrog --radius-of-bodies 0.02pc --on-collision merge --max-drift 9 --out "
    )
    arguments = [*run.split(), str(tmp_path / "run")]
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    table = (tmp_path / "run/collisions.csv").read_text().splitlines()
    assert table[0].startswith("step,time [Myr],id_a,id_b,mass_a [Msun],mass_b [Msun],x [pc],") and len(table) > 2
    events = ap.resume(tmp_path / "run").events
    assert len(events) == len(table) - 1
    units = ap.load(tmp_path / "run/final.allpairs").units
    assert units is not None
    unit = units.time / (1e6 * 365.25 * 86400)
    times = [float(row.split(",")[1]) for row in table[1:]]
    assert events["time"] * unit == pytest.approx(times, rel=1e-12)
