"""Snapshots in the order of time: read when they are asked for, written while a simulation runs, and as movies."""

from __future__ import annotations

import glob
import os
import re
import shutil
import tempfile
import warnings
from pathlib import Path
from typing import Any, Iterator, Sequence, overload

import numpy as np

from . import _arrays, _native, _program
from ._arrays import Floats
from ._bodies import Bodies, Units, measured, measured_array
from ._errors import AllpairsError, ArgumentError, FileError, Named, bad, flag, one_of
from ._quantities import recorded
from ._simulation import Simulation

#: Names of snapshots in a folder end in these, or in digits alone.
_ENDINGS = (".allpairs", ".bin", ".csv", ".h5", ".hdf5", ".npz", ".std", ".tip", ".tipsy", ".vtp")
#: Endings of formats that are not called like theirs.
_ENDING_OF = {"hdf5-gzip": "hdf5", "tipsy-ids": "bin", "tipsy-native": "tipsy"}
#: Movies by the endings of their names; the last two are made by ffmpeg.
_MOVIES = (".gif", ".apng", ".png", ".mp4", ".webm")


class Series(Named, Sequence[Bodies]):
    """Snapshots in the order of time, each read from its file when it is asked for.

    ``series[0]`` and ``series[-1]`` are `Bodies`, and ``series[::10]`` is another series. A loop ``for bodies in
    series`` holds one snapshot in memory. `add` writes another one.

    Attributes
    ----------
    files : list of Path
    """

    files: list[Path]

    def __init__(
        self,
        files: Sequence[Path],
        format: str | None = None,
        folder: Path | None = None,
        written_as: str | None = None,
    ) -> None:
        self.files = list(files)
        self._format = format
        self._folder = folder
        self._written_as = written_as
        self._times: dict[Path, tuple[float, Units | None]] = {}
        self._told: set[str] = set()

    def __len__(self) -> int:
        return len(self.files)

    @overload
    def __getitem__(self, index: int) -> Bodies: ...
    @overload
    def __getitem__(self, index: slice) -> Series: ...

    def __getitem__(self, index: int | slice) -> Bodies | Series:
        if isinstance(index, slice):
            part = Series(self.files[index], self._format)
            part._times, part._told = self._times, self._told
            return part
        return self._read(self.files[index])

    def __iter__(self) -> Iterator[Bodies]:
        return map(self._read, list(self.files))

    def _read(self, file: Path) -> Bodies:
        arrays, time, text, _, notes = _native.load(os.fspath(file), self._format, None)
        for note in notes:  # of all files alike, once
            if note not in self._told:
                self._told.add(note)
                warnings.warn(f"{file}: {note}", stacklevel=3)
        bodies = Bodies._of(arrays, time, text)
        self._times[file] = time, bodies.units
        return bodies

    @property
    def times(self) -> Floats:
        """Times of the snapshots, (S,), in the units of the first. The first use reads all files."""
        return self._all_times()[0]

    def quantity(self, name: str) -> Any:
        """`time` of each snapshot, (S,), as an astropy quantity. Snapshots without units are refused."""
        name = one_of("name", name, ["time"])
        times, units = self._all_times()
        return recorded(name, lambda _: times, units)

    def _all_times(self) -> tuple[Floats, Units | None]:
        for file in self.files:
            if file not in self._times:
                self._read(file)
        told = [self._times[file] for file in self.files]
        units = told[0][1] if told else None
        if len({own is None for _, own in told}) > 1:
            raise ArgumentError("some snapshots have units, and others have none: take a part of them")
        times = [time if own is None or units is None else time * (own.time / units.time) for time, own in told]
        return np.array(times, dtype=float), units

    def add(self, bodies: Bodies | Simulation) -> None:
        """Writes another snapshot into the folder of the series; also as a `callback` of `integrate`.

        Files are called ``snapshot-00000.allpairs`` and so on, as the program calls them.

        Raises
        ------
        ArgumentError
            The series is not of a folder.
        FileError
            The file cannot be written.
        """
        if isinstance(bodies, Simulation):
            bodies = bodies.bodies
        if not isinstance(bodies, Bodies):
            raise bad("bodies", f"must be Bodies or a Simulation, not {type(bodies).__name__}")
        if self._folder is None:
            raise bad("bodies", "cannot be added: this series is of single files, and only one of a folder grows")
        numbers = [re.match(r"snapshot-(\d+)\.", file.name) for file in self.files]
        number = max((int(found[1]) for found in numbers if found), default=-1) + 1
        if self.files and numbers[-1] is None:
            last = self.files[-1].name
            raise bad("bodies", f"cannot be added behind {last}, which has no number as snapshot-00001.allpairs has")
        name = self._written_as or "allpairs"
        ending = self.files[-1].suffix if self.files else "." + _ENDING_OF.get(name, name)
        file = self._folder / f"snapshot-{number:05}{ending}"
        bodies.save(file, format=self._written_as)
        self.files.append(file)
        self._times[file] = bodies.time, bodies.units

    def __repr__(self) -> str:
        where = self._folder or (self.files[0].parent if self.files else "no folder")
        return f"<Series: {len(self)} snapshots in {where}>"


def series(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    create: bool = False,
    format: str | None = None,
) -> Series:
    """Snapshots of a run, of a folder, or of files, in the order of time.

    Parameters
    ----------
    path : path_like or sequence of path_like
        The folder of a run of the program, or another one with snapshots. Or a pattern, such as
        ``"run/snap_*.hdf5"``, or files in the order of time. Files of a folder or a pattern are ordered by
        their names, in which numbers count: ``s9`` is before ``s10``. In a folder in which some files are called
        ``snapshot…``, only they are taken, and a later ``final…``.
    create : bool
        Makes a new folder, for `Series.add`; it is an error if snapshots are there.
    format : str, optional
        As of `load`; of a new folder, the format to write.

    Returns
    -------
    Series

    Raises
    ------
    FileError
        There are no snapshots, or with `create` there are some.
    """
    if format is not None:
        format = one_of("format", format, _native.names()["format"])
    if isinstance(path, (str, os.PathLike)):
        folder = Path(path)
        if flag("create", create):
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise FileError(f"cannot make the folder {folder}: {error}") from error
            if _in_folder(folder)[1]:
                raise FileError(f"{folder} already has snapshots: choose another folder, or leave out `create`")
            return Series([], None, folder, format)
        if folder.is_dir():
            inner, files = _in_folder(folder)
            if not files:
                raise FileError(f"there are no snapshots in {folder}")
            found = Series(files, format, inner)
            final = [file for file in _snapshots(folder) if file.stem == "final" and file not in files]
            if final and found._read(final[0]).time > found[-1].time:
                found.files.append(final[0])
            return found
        if glob.has_magic(os.fspath(path)) and not folder.exists():
            files = sorted(map(Path, glob.glob(os.fspath(path))), key=_natural)
            if not files:
                raise FileError(f"there are no files {os.fspath(path)}")
            return Series(files, format)
        paths = [folder]
    else:
        paths = [Path(each) for each in path]
        if create:
            raise bad("create", "makes one folder: give its path")
        if not paths:
            raise bad("path", "must have one file at least")
    for file in paths:
        if not file.is_file():
            raise FileError(f"no such file: {file}")
    return Series(paths, format)


def _natural(path: Path) -> list[str | int]:
    """A key by which numbers in names count."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", path.name)]


def _snapshots(folder: Path) -> list[Path]:
    """Files in a folder with names of snapshots, but for the tables of a run."""
    tables = _native.names()["table"]
    named = (file for file in folder.iterdir() if file.suffix.lower() in _ENDINGS or file.suffix[1:].isdigit())
    return sorted((file for file in named if file.name not in tables and file.is_file()), key=_natural)


def _in_folder(folder: Path) -> tuple[Path, list[Path]]:
    """Snapshots in a folder, or in the folder `snapshots` in it, and that folder."""
    inner = folder / "snapshots"
    where = inner if inner.is_dir() else folder
    files = _snapshots(where)
    numbered = [file for file in files if file.name.startswith("snapshot")]
    return where, numbered or files


def movie(
    snapshots: Series | Sequence[Bodies] | str | os.PathLike[str],
    path: str | os.PathLike[str],
    axes: str | Sequence[str] = "xy",
    *,
    fps: int = 25,
    size: tuple[int, int] | None = None,
    colour_map: str = "inferno",
    select: str = "luminous",
    weight: str = "count",
    half_width: Any = None,
    centre: Any = None,
    decades: float = 3.0,
    bare: bool = False,
    overwrite: bool = False,
) -> Path:
    """A movie of the surface density, as ``allpairs render`` makes it, with the time and the scale.

    All pictures have one frame and one brightness, which are chosen from the whole series.

    Parameters
    ----------
    snapshots : Series, sequence of Bodies, or path_like
        A series, what `series` makes one of, or bodies in the order of time.
    path : path_like
        File to write: .gif, .apng, or .png for an animated one; .mp4 and .webm are made by ffmpeg.
    axes, colour_map, select, weight, decades
        As of `image`.
    fps : int
        Pictures a second.
    size : (int, int), optional
        Width and height in pixels; 800 a panel where not given, 400 in a .gif.
    half_width, centre : float and (3,), or texts or quantities, optional
        Region that is shown, in the units of the first snapshot; chosen from all where not given.
    bare : bool
        Leaves out the time and the scale.
    overwrite : bool
        Replace a file that is there; else it is an error.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    ArgumentError
        The name of another kind of file, a missing ffmpeg, or what `image` refuses.
    FileError
        There are no snapshots, or the file is there already.
    """
    from ._pictures import _bodies, image, in_one_unit

    target, bare, overwrite = Path(path), flag("bare", bare), flag("overwrite", overwrite)
    ending = target.suffix.lower()
    if ending not in _MOVIES:
        raise bad("path", f"must end in {', '.join(_MOVIES[:-1])} or {_MOVIES[-1]}; got {target.name!r}")
    if ending in _MOVIES[3:] and shutil.which("ffmpeg") is None:
        raise bad("path", f"ends in {ending}, and ffmpeg, which makes it, is not on PATH: install it, or use .gif")
    if not target.absolute().parent.is_dir():
        raise FileError(f"cannot write {target}: there is no folder {target.parent}")
    if target.exists() and not overwrite:
        raise FileError(f"{target} already exists: choose another name, or `overwrite=True`")
    panels = [axes] if isinstance(axes, str) else list(axes)
    with tempfile.TemporaryDirectory() as folder:
        if isinstance(snapshots, (str, os.PathLike)):
            snapshots = series(snapshots)
        if not isinstance(snapshots, Series):
            given = in_one_unit([_bodies(each) for each in snapshots])
            snapshots = series(folder, create=True)
            for bodies in given:
                snapshots.add(bodies)
        if not len(snapshots):
            raise bad("snapshots", "must have one snapshot at least")
        first = snapshots[0]
        # A picture refuses by its name what cannot be drawn.
        pixels = size or (16 * len(panels), 16)
        image(first, panels, size=pixels, colour_map=colour_map, select=select, weight=weight, decades=decades)
        arguments = ["render", *(os.fspath(file.absolute()) for file in snapshots.files)]
        arguments += ["--movie", os.fspath(target.absolute()), "--axes", ",".join(panels)]
        arguments += ["--fps", str(_arrays.count("fps", fps, 1)), "--decades", repr(float(decades))]
        arguments += ["--colour-map", colour_map, "--select", select, "--weight", weight]
        if size is not None:
            arguments += ["--size", "x".join(map(str, size))]
        if half_width is not None:
            arguments += ["--half-width", repr(measured("half_width", half_width, first.units, "length"))]
        if centre is not None:
            middle = measured_array("centre", centre, first.units, "length")
            if middle.shape != (3,):
                raise bad("centre", f"must be three numbers, not an array of the shape {middle.shape}")
            arguments += ["--centre", ",".join(map(repr, middle.tolist()))]
        if snapshots._format is not None:
            arguments += ["--format", snapshots._format]
        arguments += ["--bare"] * bare + ["--overwrite"] * overwrite
        done = _program.run(arguments)
    if done.returncode != 0:
        raise AllpairsError(f"no movie was made: {done.stderr.strip().removeprefix('error: ')}")
    return target
