"""Runs and their comparison."""

from __future__ import annotations

import html
import json
import os
import shutil
import tempfile
import weakref
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from . import _check, _xoff
from ._answers import Answer
from ._errors import ResultsError, ScenarioError
from ._table import Table, cells


class Temporary:
    """A directory for results that nobody named. It is removed with the last object that uses it."""

    def __init__(self) -> None:
        try:
            self.base = Path(tempfile.mkdtemp(prefix="xoff-"))
        except OSError as error:
            remedy = "set TMPDIR to a directory with write permission, or give out"
            raise ResultsError(f"there is no place for temporary results: {error}", remedy=remedy) from None
        self.remove = weakref.finalize(self, _remove, self.base, os.getpid())
        _TEMPORARY[self.base] = self


def _remove(base: Path, process: int) -> None:
    """Remove a temporary directory, but not in a process that was forked from the one that made it."""
    if os.getpid() == process:
        shutil.rmtree(base, ignore_errors=True)


#: The temporary directories in use.
_TEMPORARY: weakref.WeakValueDictionary[Path, Temporary] = weakref.WeakValueDictionary()


def page(path: Path, height: int) -> str:
    """Return the page of a run or grid, in a frame of `height` pixels."""
    return frame(_xoff.page(path), height)


def frame(page: str, height: int) -> str:
    """Return a frame of `height` pixels with a page."""
    source = html.escape(page, quote=True)
    style = f"width:100%;height:{height}px;border:1px solid #8884"
    return f'<iframe srcdoc="{source}" sandbox="allow-scripts" style="{style}"></iframe>'


class Stored:
    """Results in a directory. A temporary one is removed with the last object that uses it."""

    #: The file that tells whether the results are still those that were opened.
    _MANIFEST = "manifest.json"

    #: What the results were made of.
    manifest: dict[str, Any]

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path: Path | None = _check.path("path", path)
        #: The temporary directory that the results are in, so that it stays.
        self._owner = next((_TEMPORARY[base] for base in self._path.parents if base in _TEMPORARY), None)
        self._identity = self._stat()

    def _stat(self) -> tuple[int, int] | None:
        """Return what a new manifest changes."""
        assert self._path is not None
        try:
            found = (self._path / self._MANIFEST).stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns

    @property
    def path(self) -> Path:
        """The directory of the results; it is temporary if no `out` was given."""
        if self._path is None:
            raise ResultsError("the results are closed", remedy="use them before close(), or save them first")
        if self._stat() != self._identity:
            message = "was replaced or removed since it was opened"
            raise ResultsError(f"{self._path} {message}", str(self._path), "open it again")
        return self._path

    def close(self) -> None:
        """Give the results up: a temporary directory is removed once nothing else uses it.

        What was read before stays: tables, `summary`, `manifest`. Everything else raises ResultsError.
        """
        self._path = None
        self._owner = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _: object) -> Self:
        # It never changes.
        return self

    def __reduce__(self) -> tuple[object, ...]:
        if self._owner:
            remedy = "save the results, and send what save() returns"
            raise ResultsError("temporary results cannot be sent to another process", remedy=remedy)
        return type(self), (str(self.path),)

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Open the directory of a run, such as `xoff-runs/NAME`, or of a grid, such as `xoff-runs/NAME-grid`.

        Raises
        ------
        ResultsError
            It is no such directory, or one of its files is missing or damaged.

        """
        return cls(path)

    @property
    def name(self) -> str:
        """The name of the scenario."""
        return str(self.manifest["name"])

    @property
    def complete(self) -> bool:
        """Whether everything is there; False after Ctrl-C or without memory, and for a grid with a failed run."""
        return bool(self.manifest["complete"])

    def report(self, out: str | Path | None = None) -> Path:
        """Write the page of the results to the file `out`, or to `report.html` in the directory; return the file."""
        return _xoff.report(self.path, None if out is None else _check.path("out", out))


#: The tables of a run.
TABLES = (
    "flows",
    "series",
    "pauses",
    "blocking",
    "critical",
    "ahead",
    "computations",
    "ports",
    "accounts",
    "nodes",
)


class Run(Stored):
    """The results of a simulation, as of `xoff run`.

    Columns of the tables are in the page "The run directory" of the book. Each table is read when it is first used.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path)
        manifest, summary = _xoff.read_run(self.path if self._identity else path)
        #: What the run was made of, as `manifest.json` has it.
        self.manifest = json.loads(manifest)
        #: The results in numbers, as `summary.json` has them.
        self.summary: dict[str, Any] = json.loads(summary)

    @property
    def stop(self) -> str:
        """Why the run ended, such as `all-done`, `end-time` or `interrupted`."""
        return str(self.manifest["stop"])

    @property
    def seed(self) -> int:
        """The seed of the random numbers."""
        return int(self.manifest["seed"])

    @property
    def scenario(self) -> dict[str, Any]:
        """Every key of the scenario with its value."""
        return dict(self.manifest["scenario"])

    @property
    def deadlock(self) -> dict[str, Any] | None:
        """The first deadlock: `closed_ps` and its `cycle` of ports; None without one."""
        found: dict[str, Any] | None = self.summary["deadlock"]
        return found

    @property
    def notes(self) -> list[str]:
        """What there is to say about the run: losses, deadlocks, warnings. The most important note comes first."""
        return [str(note["text"]) for note in self.summary["notes"]]

    @cached_property
    def flows(self) -> Table:
        """A row for each flow: sizes in bytes, times in ps."""
        return self._table("flows")

    @cached_property
    def series(self) -> Table:
        """A row for each sample (`measure.interval`): `time_ps`, `quantity`, `element`, `unit`, `value`."""
        return self._table("series")

    @cached_property
    def pauses(self) -> Table:
        """A row for each pause of an egress queue, with times in ps."""
        return self._table("pauses")

    @cached_property
    def blocking(self) -> Table:
        """A row for each pair of a paused port and the congested port behind it (`measure.blocking`)."""
        return self._table("blocking")

    @cached_property
    def critical(self) -> Table:
        """A row for each part of a flow's time on its critical path, in ps (`measure.explain`)."""
        return self._table("critical")

    @cached_property
    def ahead(self) -> Table:
        """A row for each flow whose packets were ahead of a critical packet at a port (`measure.explain`)."""
        return self._table("ahead")

    @cached_property
    def computations(self) -> Table:
        """A row for each computation of a host."""
        return self._table("computations")

    @cached_property
    def ports(self) -> Table:
        """A row for each port."""
        return self._table("ports")

    @cached_property
    def accounts(self) -> Table:
        """A row for each ingress port and priority, with bytes of memory."""
        return self._table("accounts")

    @cached_property
    def nodes(self) -> Table:
        """A row for each device, with bytes of buffer."""
        return self._table("nodes")

    def _table(self, name: str) -> Table:
        return Table(_xoff.read_table(self.path / f"{name}.parquet"))

    def explain(
        self,
        *,
        flow: int | None = None,
        port: str | None = None,
        class_: str | None = None,
        src: str | None = None,
        dst: str | None = None,
        slowest: int | None = None,
    ) -> Answer:
        """Explain the delays of the run, of one flow (its `id`) or of one congested port (`xoff explain`).

        A long run, one of many short flows, and a run of a grid need `measure.explain = true`. `class_` is the name
        of a `[[traffic]]` table; `src` and `dst` are hosts. `slowest` is the number of slow flows that the answer
        about a run lists (5).

        Raises
        ------
        ResultsError
            The run has no times of flows, or no such flow, port, class or host.

        """
        flow = _check.maybe("flow", flow, 0, 2**32 - 1)
        slowest = _check.maybe("slowest", slowest, 0, 2**32 - 1)
        choice = {"class_": class_, "src": src, "dst": dst}
        for what, value in (("port", port), *choice.items()):
            if value is not None:
                _check.text(what, value)
        others = [
            what for what, value in (("port", port), *choice.items(), ("slowest", slowest)) if value is not None
        ]
        if flow is not None and others:
            raise ScenarioError(
                f"flow cannot be combined with {others[0]}", key="flow", remedy="remove one of the two"
            )
        return Answer(_xoff.explain(self.path, flow, port, class_, src, dst, slowest))

    def save(self, out: str | Path) -> Run:
        """Copy the run to the directory `out`, byte by byte, and return it from there. An older run is replaced.

        Raises
        ------
        ResultsError
            Something else is at `out`, or it cannot be written.

        """
        return Run(_xoff.save_run(self.path, _check.path("out", out)))

    @staticmethod
    def compare(a: Run, b: Run) -> Comparison:
        """Compare the numbers of two runs."""
        for run in (a, b):
            if not isinstance(run, Run):
                raise ScenarioError(
                    f"expected two runs, found {type(run).__name__}", remedy="such as compare(a, b)"
                )
        return Comparison(a, b)

    def __repr__(self) -> str:
        state = "complete" if self.complete else f"not complete ({self.stop})"
        flows = self.summary["sizes"][-1]
        lost = self.summary["drops"]["lossless_packets"]
        drops = f", {lost:,} lossless packets dropped" if lost else ""
        deadlock = ", deadlock" if self.deadlock else ""
        finished = f"{flows['finished']:,} of {flows['flows']:,} flows finished"
        return f"<xoff.Run {self.name}: {state}, {finished}{drops}{deadlock}>"

    def _repr_html_(self) -> str:
        return page(self.path, 720)


class Comparison:
    """Two runs, number by number.

    Attributes
    ----------
    names
        What the runs are called.
    rows
        Of each number: `metric`, `unit` (`count`, `byte`, `ps`, `ratio` or `bit/s`), `a`, `b` (None if the run has
        none), `difference` (b - a) and `ratio` (b / a).

    """

    def __init__(self, a: Run, b: Run) -> None:
        self.names = _names(a, b)
        self.rows: list[dict[str, Any]] = []
        self._texts: list[tuple[str, ...]] = []
        for (metric, unit, x, x_text), (_, _, y, y_text) in zip(
            _xoff.metrics(a.path), _xoff.metrics(b.path), strict=True
        ):
            ratio = y / x if x and y is not None else None
            difference = None if x is None or y is None else y - x
            self.rows.append(
                {"metric": metric, "unit": unit, "a": x, "b": y, "difference": difference, "ratio": ratio}
            )
            self._texts.append((metric, x_text, y_text, "" if ratio is None else f"{ratio:.3g}×"))

    def _lines(self) -> list[tuple[str, ...]]:
        return [("metric", *self.names, "b / a"), *self._texts]

    def __str__(self) -> str:
        lines = self._lines()
        widths = [max(len(line[i]) for line in lines) for i in range(4)]
        return "\n".join(
            "  ".join([line[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(line[1:], widths[1:], strict=True))])
            for line in lines
        )

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        head, *rows = self._lines()
        body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in rows)
        return f"<table><thead><tr>{cells(head, 'th')}</tr></thead><tbody>{body}</tbody></table>"


def _names(a: Run, b: Run) -> tuple[str, str]:
    """Name two runs by what differs: the scenario, the flow control, or the keys that were set."""
    schemes = [str(run.scenario.get("flow_control", {}).get("scheme", "")) for run in (a, b)]
    x, y = a.manifest["overrides"], b.manifest["overrides"]
    keys = [", ".join(o for o in mine if o not in other) for mine, other in ((x, y), (y, x))]
    for first, second in ((a.name, b.name), schemes, [key or a.name for key in keys]):
        if first != second:
            return first, second
    return "a", "b"
