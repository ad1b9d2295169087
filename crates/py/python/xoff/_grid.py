"""Grids of runs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from . import _check, _xoff
from ._errors import ScenarioError
from ._progress import Progress, bar
from ._run import TABLES, Run, Stored, Temporary, page
from ._scenario import Scenario, keys
from ._store import Store
from ._table import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Largest seed: results have whole numbers of 64 bits with a sign.
_LARGEST_SEED = 2**63 - 1


class Grid:
    """Runs of one scenario that are to be made: every combination of values, each under every seed.

    Parameters
    ----------
    scenario
        What all runs begin with.
    vary
        Keys and their values: `{"traffic.0.load": [0.3, 0.5, 0.7]}`.
    variants
        Names, and the keys that each sets: `{"pfc": {"flow_control.scheme": "pfc"}, "irn": {…}}`.
    seeds
        Seeds of each point; without them the scenario's.

    """

    def __init__(
        self,
        scenario: Scenario,
        *,
        vary: Mapping[str, Sequence[Any]] | None = None,
        variants: Mapping[str, Mapping[str, Any]] | None = None,
        seeds: Iterable[int] = (),
    ) -> None:
        if not isinstance(scenario, Scenario):
            _check.refuse("scenario", scenario, "a Scenario")
        self.scenario = scenario
        self._vary = [
            (key, [_xoff.toml_value(v, key) for v in _list(key, vs)])
            for key, vs in _check.mapping("vary", vary or {}).items()
        ]
        self._variants = [
            (name, keys(_check.mapping("variants", values)))
            for name, values in _check.mapping("variants", variants or {}).items()
        ]
        if not isinstance(seeds, Iterable):
            _check.refuse("seeds", seeds, "a list of whole numbers, such as range(1, 6)")
        self._seeds = [_check.whole("seeds", seed, 0, _LARGEST_SEED) for seed in seeds]
        if len(set(self._seeds)) < len(self._seeds):
            raise ScenarioError("a seed is given twice", key="seeds", remedy="remove one of the two")

    @overload
    def run(
        self,
        *,
        jobs: int | None = None,
        threads: int | None = None,
        out: str | Path | None = None,
        resume: bool = False,
        progress: Progress = None,
    ) -> GridRun: ...

    @overload
    def run(
        self,
        *,
        store: str | os.PathLike[str],
        executor: Executor | None = None,
        jobs: int | None = None,
        progress: Progress = None,
    ) -> Store: ...

    def run(
        self,
        *,
        jobs: int | None = None,
        threads: int | None = None,
        out: str | Path | None = None,
        resume: bool = False,
        progress: Progress = None,
        store: str | os.PathLike[str] | None = None,
        executor: Executor | None = None,
    ) -> GridRun | Store:
        """Check every scenario of the grid, and make the runs.

        Ctrl-C returns the finished runs, with `complete` False. With a store it raises KeyboardInterrupt, and the same
        call goes on.

        Parameters
        ----------
        jobs
            Runs in parallel; without a number, the number of cores divided by `threads`. The results do not depend
            on it.
        threads
            Threads of each run; without a number one.
        out
            Directory for the results; without it a temporary one, which `GridRun.save` copies.
        resume
            Continue the interrupted grid in `out`.
        progress
            Whether to show a bar, or a function, as of `Scenario.run`.
        store
            Where many workers share the runs, instead of `out`: `Store.plan` and then `Store.run` or `Store.work`.
        executor
            The engine that makes the runs of the store, such as a `ProcessPoolExecutor`; `jobs` is then that of one
            task, without a number 1. Without an engine this process makes them.

        Raises
        ------
        ScenarioError
            A scenario of the grid is invalid, before anything runs.
        ResultsError
            The results cannot be written, or the engine has ended.
        KeyboardInterrupt
            Ctrl-C before the first run.

        """
        if store is not None:
            for key, value in (("threads", threads), ("out", out), ("resume", resume or None)):
                if value is not None:
                    remedy = f"remove {key}: a store goes on by itself, and each of its runs has one thread"
                    raise ScenarioError(f"{key} and store are not possible together", key=key, remedy=remedy)
            planned = Store.plan(self, store)
            if executor is None:
                planned.work(jobs=jobs, progress=progress)
                return planned
            return planned.run(executor, jobs=jobs or 1, progress=progress)
        if executor is not None:
            raise ScenarioError(
                "executor needs store", key="executor", remedy="give the place of the results as store"
            )
        if resume and out is None:
            raise ScenarioError("resume needs out", key="resume", remedy="give the directory of the grid as out")
        jobs, threads = _check.maybe("jobs", jobs, 1, 1024), _check.maybe("threads", threads, 1, 1024)
        # It stays until the grid is opened.
        owner = Temporary() if out is None else None
        place = _check.path("out", out) if owner is None else owner.base / f"{self.scenario.name}-grid"
        with bar(progress) as tell:
            _xoff.grid(*self._parts, jobs, threads, place, resume, tell)
        return GridRun(place)

    def dask(
        self, client: Any, *, store: str | os.PathLike[str], jobs: int = 1, progress: Progress = None
    ) -> Store:
        """Make the runs on a Dask cluster: `Store.plan` and then `Store.dask`.

        Parameters
        ----------
        client
            A `dask.distributed.Client`.
        store
            A directory or `s3://…` or `gs://…` that every worker reaches.
        jobs
            Runs in parallel of one task.
        progress
            Whether to show a bar, or a function, as of `Scenario.run`.

        """
        return Store.plan(self, store).dask(client, jobs=jobs, progress=progress)

    @property
    def _parts(self) -> tuple[_xoff.Scenario, list[tuple[str, list[str]]], list[tuple[str, Any]], list[int]]:
        """What it is made of, as `xoff` takes it: scenario, varied keys, variants, seeds."""
        return self.scenario._native, self._vary, self._variants, self._seeds

    def __repr__(self) -> str:
        axes = [f"{key} ({len(values)})" for key, values in self._vary]
        variants = [f"{len(self._variants)} variants"] if self._variants else []
        seeds = [f"{len(self._seeds)} seeds"] if self._seeds else []
        return f"<xoff.Grid {self.scenario.name}: {', '.join([*variants, *axes, *seeds]) or 'one run'}>"


class GridRun(Stored):
    """The results of a grid."""

    _MANIFEST = "grid.json"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path)
        #: What the grid was made of, as `grid.json` has it.
        self.manifest = json.loads(_xoff.read_grid(self.path))

    @property
    def failed(self) -> dict[str, str]:
        """Runs that failed, each with the reason."""
        return {run["name"]: run["error"] for run in self.manifest["runs"] if run["status"] == "failed"}

    @cached_property
    def table(self) -> Table:
        """A row for each finished run: the varied keys, the seed, and its numbers, as `grid.parquet` has them."""
        return Table(_xoff.read_table(self.path / "grid.parquet"))

    @cached_property
    def flows(self) -> Table:
        """A row for each flow of each finished run: the run, the varied keys and the seed, then as `Run.flows`."""
        return self.all("flows")

    def all(self, table: str) -> Table:
        """Return a table of all finished runs as one, such as `"pauses"`; the varied keys and the seed come first."""
        if table not in TABLES:
            _check.refuse("table", table, f"one of {', '.join(TABLES)}")
        return Table(_xoff.read_runs(self.path, f"{table}.parquet"))

    def runs(self, where: Mapping[str, Any] | None = None) -> list[Run]:
        """Return the finished runs, in the order of `table`.

        `where` selects those with these values, such as `{"variant": "irn", "traffic.0.load": 0.5, "seed": 2}`.

        Raises
        ------
        ScenarioError
            The grid does not vary one of these keys, or not with that value.

        """
        keep = [True] * len(self.table)
        for key, value in (where or {}).items():
            known = [*(axis["key"] for axis in self.manifest["axes"]), "seed"]
            if key not in known:
                raise ScenarioError(
                    f"the grid does not vary {key!r}", key=key, remedy=f"it varies {', '.join(known)}"
                )
            column = self.table[key]
            if value not in column:
                remedy = f"its values are {', '.join(map(repr, dict.fromkeys(column)))}"
                raise ScenarioError(f"no run has {key} = {value!r}", key=key, remedy=remedy)
            keep = [kept and found == value for kept, found in zip(keep, column, strict=True)]
        names = zip(self.table["name"], keep, strict=True)
        return [Run(self.path / "runs" / name) for name, kept in names if kept]

    def comparison(self, interval: str = "range", baseline: str | float | None = None) -> dict[str, Any]:
        """Return the points beside each other, with mean, `low` and `high` of each number over the seeds.

        Each point also has `ratios`: its numbers divided by those of the baseline under the same seed and other
        values.

        Parameters
        ----------
        interval
            `"range"` (least and greatest) or `"ci95"` (95% confidence interval of the mean).
        baseline
            A variant, or a value of a varied key; without it the first of several variants.

        Raises
        ------
        ResultsError
            The grid cannot be read, or no varied key has the value `baseline`.

        """
        value = None if baseline is None else _xoff.toml_value(baseline, "baseline")
        found: dict[str, Any] = json.loads(_xoff.compare_grid(self.path, _check.ci95(interval), value).json)
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
        """Plot the mean of a number over a varied key, a line for each value of another one. It needs matplotlib.

        Parameters
        ----------
        metric
            A column of `table`, such as `"slowdown_p99"` or `"slowdown.p99"`.
        x
            A varied key, or its last part; without it the last one.
        by
            A varied key or `"variant"`; without it the other one, if there are two.
        interval
            What is drawn around the mean over seeds: `"range"` or `"ci95"`.
        ax
            Where to draw; without it in a new figure.

        """
        from . import plot

        return plot.grid(self, metric, x=x, by=by, interval=interval, ax=ax)

    def save(self, out: str | Path) -> GridRun:
        """Copy the grid and its runs to the directory `out`, where nothing may be, and return it from there."""
        return GridRun(_xoff.save_grid(self.path, _check.path("out", out)))

    def __str__(self) -> str:
        return _xoff.compare_grid(self.path, False).text.rstrip("\n")

    def __repr__(self) -> str:
        done = sum(run["status"] in ("done", "lost") for run in self.manifest["runs"])
        return f"<xoff.GridRun {self.name}: {done} of {len(self.manifest['runs'])} runs finished>"

    def _repr_html_(self) -> str:
        return page(self.path, 720)


def _list(key: str, values: object) -> Iterable[Any]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ScenarioError(
            f"the values of `{key}` are not a list: {values!r}", key=key, remedy="give a list, such as [0.4, 0.8]"
        )
    return values
