"""Stores: grids that many workers share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from . import _check, _xoff
from ._answers import Answer
from ._grid import Grid, is_ci95


class Store:
    """A grid in a directory that any number of workers reach, on any number of machines.

    Parameters
    ----------
    path
        The directory, such as `xoff grid plan` writes it.

    """

    def __init__(self, path: str | Path) -> None:
        self._path = _check.path("path", path)

    @classmethod
    def plan(cls, grid: Grid, path: str | Path, *, chunk: int | None = None) -> Store:
        """Write what is to be run into the directory `path` (`xoff grid plan`), and return the store.

        Parameters
        ----------
        grid
            The runs, at most 10 million.
        path
            A directory. A store that has the same plan already stays as it is.
        chunk
            Runs of a chunk, which one worker makes; without a number 1 to 100.

        Raises
        ------
        ScenarioError
            A scenario of the grid is invalid, or the store has another plan or cannot be written.

        """
        store = cls(path)
        _xoff.plan_grid(*grid._parts, store._path, _check.maybe("chunk", chunk, 1, 1_000_000))
        return store

    @property
    def path(self) -> Path:
        """The directory."""
        return self._path

    def work(self, *, jobs: int | None = None, lease: str = "60s") -> tuple[int, int]:
        """Make runs until all are done (`xoff work`). Any number of processes may do that at once.

        Ctrl-C raises KeyboardInterrupt, and what is done stays done.

        Parameters
        ----------
        jobs
            Runs in parallel; without a number as many as there are cores.
        lease
            Time after which others take over what a process began that has ended without a word.

        Returns
        -------
        tuple of int
            Runs that this call made, and those of them that failed.

        Raises
        ------
        ScenarioError
            It is no store of this version, it cannot be written, or another worker got other results.

        """
        return _xoff.work(self._path, _check.maybe("jobs", jobs, 1, 1024), _check.text("lease", lease))

    def status(self) -> Answer:
        """Tell how far the runs are: done, running, failed, speed, time left (`xoff grid status`)."""
        return Answer(_xoff.store_status(self._path))

    def comparison(self, interval: str = "range", baseline: str | float | None = None) -> dict[str, Any]:
        """Return the points beside each other, as `GridRun.comparison`, and write `grid.parquet` (`xoff grid table`)."""
        value = None if baseline is None else _xoff.toml_value(baseline, "baseline")
        answer = _xoff.store_table(self._path, None, is_ci95(interval), value)
        found: dict[str, Any] = json.loads(answer.json)
        return found

    def __repr__(self) -> str:
        return f"<xoff.Store {self._path}>"
