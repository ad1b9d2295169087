"""Stores: grids that many workers share."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import time
from concurrent.futures import Executor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from . import _check, _xoff
from ._answers import Answer
from ._engine import Engine
from ._progress import Progress, bar
from ._run import frame
from ._table import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ._grid import Grid

#: Distance of looks at the number of workers, in seconds.
PATIENCE = 2.0
#: Chunks at work in parallel, unless one says otherwise.
WINDOW = 256


class Store:
    """A grid in a place that any number of workers reach, on any number of machines.

    Parameters
    ----------
    place
        A directory, or `s3://BUCKET/PREFIX` or `gs://BUCKET/PREFIX`, such as `xoff grid plan` writes it.

    """

    def __init__(self, place: str | os.PathLike[str]) -> None:
        cloud = isinstance(place, str) and place.startswith(("s3://", "gs://"))
        self._place = str(place) if cloud else str(_check.path("place", place))

    @classmethod
    def plan(
        cls, grid: Grid, place: str | os.PathLike[str], *, chunk: int | None = None, keep: bool = False
    ) -> Self:
        """Write what is to be run into a store (`xoff grid plan`), and return it.

        Parameters
        ----------
        grid
            The runs, at most 10 million.
        place
            The store. One that has the same plan already stays as it is.
        chunk
            Runs of a chunk, which one worker makes; without a number 1 to 100.
        keep
            Whether to keep the whole directory of each run, in `kept/` of the store.

        Raises
        ------
        ScenarioError
            A scenario of the grid is invalid, or the store has another plan or cannot be written.

        """
        store = cls(place)
        _xoff.plan_grid(*grid._parts, store._place, _check.maybe("chunk", chunk, 1, 1_000_000), bool(keep))
        return store

    @property
    def place(self) -> str:
        """The directory, or `s3://…` or `gs://…`."""
        return self._place

    def work(
        self, *, jobs: int | None = None, lease: str = "60s", until: str | None = None, progress: Progress = None
    ) -> tuple[int, int]:
        """Make runs in this process until all are done (`xoff work`). Any number of processes may do that at once.

        Ctrl-C raises KeyboardInterrupt, and what is done stays done.

        Parameters
        ----------
        jobs
            Runs in parallel; without a number as many as there are cores.
        lease
            Time after which others take over what a process began that has ended without a word.
        until
            Make seeds only until an interval is narrow, such as `"ci95(slowdown.p99) < 5%"`. The store keeps the
            rule, and every worker follows it.
        progress
            Whether to show a bar, or a function, as of `Scenario.run`.

        Returns
        -------
        tuple of int
            Runs that this call made, and those of them that failed.

        Raises
        ------
        ScenarioError
            It is no store of this version, it cannot be written, or another worker got other results.

        """
        jobs, lease = _check.maybe("jobs", jobs, 1, 1024), _check.text("lease", lease)
        with bar(progress) as tell:
            made, failed, _ = _xoff.work(self._place, jobs, lease, _rule(until), None, tell)
        return made, failed

    def run(
        self,
        executor: Executor,
        *,
        window: int = WINDOW,
        jobs: int = 1,
        lease: str = "60s",
        until: str | None = None,
        progress: Progress = None,
    ) -> Self:
        """Make every run through an engine with the interface of `concurrent.futures`.

        The engine gets a task for each chunk, and the results go into the store. A chunk whose worker was lost goes to
        another one once its lease is over: a short `lease` helps where workers are lost often. After an error or
        Ctrl-C the same call goes on.

        Parameters
        ----------
        executor
            The engine, such as a `ProcessPoolExecutor`. Its workers have the same version of xoff, and reach the
            store.
        window
            Chunks that the engine gets in parallel: at least as many as there are workers.
        jobs
            Runs in parallel of one chunk's worker.
        lease
            Time after which others take over what a worker began that has ended without a word.
        until
            As of `work`.
        progress
            As of `work`.

        Raises
        ------
        ScenarioError
            It is no store of this version, it cannot be written, or two workers got other results.
        ResultsError
            The engine has ended.

        """
        if not callable(getattr(executor, "submit", None)):
            _check.refuse("executor", executor, "an executor, such as concurrent.futures.ProcessPoolExecutor()")
        window = _check.whole("window", window, 1, 1_000_000)
        self._run(Engine(self._place, executor, lambda: window, **_how(jobs, lease, until)), progress)
        return self

    def dask(
        self,
        client: Any,
        *,
        jobs: int = 1,
        lease: str = "60s",
        until: str | None = None,
        progress: Progress = None,
    ) -> Self:
        """Make every run on the workers of a Dask cluster, twice as many chunks in parallel as it has threads.

        As `run`. The tasks are called `xoff_chunk` on the dashboard. Workers may come and go.

        Parameters
        ----------
        client
            A `dask.distributed.Client`.
        jobs
            As of `run`.
        lease
            As of `run`.
        until
            As of `work`.
        progress
            As of `work`.

        """
        if not all(hasattr(client, name) for name in ("get_executor", "nthreads", "status")):
            _check.refuse("client", client, "a dask.distributed.Client")

        looked, threads = -PATIENCE, 0

        def window() -> int:
            nonlocal looked, threads
            if time.monotonic() >= looked + PATIENCE:
                # A client without its scheduler tries to reach it again, and then closes.
                with contextlib.suppress(OSError, RuntimeError):
                    threads = sum(client.nthreads().values())
                looked = time.monotonic()
            return max(2 * threads, 4)

        def alive() -> str | None:
            return "has lost its scheduler" if client.status in ("closing", "closed") else None

        engine = Engine(
            self._place, client.get_executor(pure=False), window, alive=alive, **_how(jobs, lease, until)
        )
        self._run(engine, progress)
        return self

    def _run(self, engine: Engine, progress: Progress) -> None:
        with bar(progress) as tell:
            engine.run(tell)

    def status(self) -> Answer:
        """Tell how far the runs are: done, running, failed, speed, time left (`xoff grid status`)."""
        return Answer(_xoff.store_status(self._place))

    @property
    def table(self) -> Table:
        """A row for each finished run, as `GridRun.table`. It is read anew each time."""
        with tempfile.TemporaryDirectory(prefix="xoff-") as directory:
            path = Path(directory) / "grid.parquet"
            _xoff.store_table(self._place, path, False, None)
            return Table(_xoff.read_table(path))

    def comparison(self, interval: str = "range", baseline: str | float | None = None) -> dict[str, Any]:
        """Return the points beside each other, as `GridRun.comparison`, and write `grid.parquet` (`xoff grid table`)."""
        value = None if baseline is None else _xoff.toml_value(baseline, "baseline")
        answer = _xoff.store_table(self._place, None, _check.ci95(interval), value)
        found: dict[str, Any] = json.loads(answer.json)
        return found

    def plot(
        self,
        metric: str,
        *,
        x: str | None = None,
        by: str | None = None,
        interval: str = "range",
        ax: Axes | None = None,
    ) -> Axes:
        """Plot the mean of a number over a varied key, as `GridRun.plot`. It needs matplotlib.

        Parameters
        ----------
        metric
            As of `GridRun.plot`.
        x
            As of `GridRun.plot`.
        by
            As of `GridRun.plot`.
        interval
            As of `GridRun.plot`.
        ax
            As of `GridRun.plot`.

        """
        from . import plot

        return plot.grid(self, metric, x=x, by=by, interval=interval, ax=ax)

    def report(self, out: str | os.PathLike[str] | None = None) -> str:
        """Write the page of the points to a file, or to `report.html` in the store; return its place."""
        return _xoff.store_report(self._place, None if out is None else _check.path("out", out))

    def __fspath__(self) -> str:
        return self._place

    def __repr__(self) -> str:
        return f"<xoff.Store {self._place}>"

    def _repr_html_(self) -> str:
        return frame(_xoff.store_page(self._place), 720)


def _rule(until: object) -> str | None:
    return None if until is None else _check.text("until", until)


def _how(jobs: object, lease: object, until: object) -> dict[str, Any]:
    """Return how the workers of an engine work."""
    jobs, lease = _check.whole("jobs", jobs, 1, 1024), _check.text("lease", lease)
    return {"jobs": jobs, "lease": lease, "until": _rule(until)}
