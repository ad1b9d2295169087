"""
The module, with the schemes that are built in.
"""

from _typeshed import SupportsGetItem
from os import PathLike
from pathlib import Path
from types import CapsuleType
from typing import Any, Final, SupportsIndex, final

__all__ = ["__version__", "Answer", "Scenario", "Table", "_fail", "compare_grid", "examples", "explain", "grid", "limit_memory", "main", "metrics", "open_chunks", "page", "plan_grid", "read_grid", "read_run", "read_runs", "read_table", "report", "repro", "save_grid", "save_run", "schema", "schemes", "size", "store_page", "store_report", "store_status", "store_table", "toml_document", "toml_value", "work"]

__version__: Final[str]
"""
Version of xoff.
"""

@final
class Answer:
    """
    An answer: JSON for programs, text for people, and files such as pictures.
    """
    @property
    def files(self, /) -> list[tuple[str, str]]:
        """
        Name and contents of each file that belongs to it.
        """
    @property
    def json(self, /) -> str:
        """
        The data as JSON.
        """
    @property
    def text(self, /) -> str:
        """
        What the command line prints.
        """

@final
class Scenario:
    """
    A scenario, with the keys that were set.
    """
    def check(self, /, failures: str | None, out: str | PathLike[str] | None, progress: Any | None) -> Answer:
        """
        `xoff check`.
        """
    @staticmethod
    def load(path: str | PathLike[str]) -> Scenario:
        """
        Reads a scenario's file.
        """
    @property
    def name(self, /) -> str: ...
    @staticmethod
    def of_parts(path: str | PathLike[str], text: str, in_table: bool, name: str, keys: SupportsGetItem[int, tuple[str, str]]) -> Scenario:
        """
        A scenario of `parts`.
        """
    @staticmethod
    def of_text(name: str, text: str, directory: str | PathLike[str]) -> Scenario:
        """
        A scenario of this text; files that it names are searched in `directory`.
        """
    @property
    def overrides(self, /) -> list[tuple[str, str]]:
        """
        The keys that were set, with their values as written.
        """
    def parts(self, /) -> tuple[Path, str, bool, str, list[tuple[str, str]]]:
        """
        What `of_parts` makes the same scenario of in another process: path, text, whether the scenario is a table of
        it, name and keys that were set.
        """
    def resolved(self, /) -> tuple[str, list[str]]:
        """
        Every key with its value, as JSON, and the warnings. Ctrl-C raises KeyboardInterrupt; so it does below.
        """
    def run(self, /, out: str | PathLike[str], overwrite: bool, threads: SupportsIndex | None, capture: SupportsGetItem[int, str], snap: SupportsIndex | None, progress: Any | None) -> list[str]:
        """
        `xoff run` into the directory `out`; returns remarks about threads. After Ctrl-C the run is stored and not
        complete.
        """
    def set(self, /, keys: SupportsGetItem[int, tuple[str, str]]) -> Scenario:
        """
        The same with these keys set to these values.
        """
    def size(self, /) -> Answer:
        """
        `xoff size --scenario`.
        """
    def topo(self, /) -> Answer:
        """
        `xoff topo`.
        """
    def traffic(self, /) -> Answer:
        """
        `xoff traffic`.
        """
    def variants(self, /) -> list[tuple[str, list[tuple[str, str]]]]:
        """
        The `[[variant]]` tables: names, and the keys that each sets.
        """
    def verify(self, /, certificate: str | PathLike[str]) -> str:
        """
        `xoff check --verify`.
        """

@final
class Table:
    """
    A table of results in memory, in Arrow's form.
    """
    def __arrow_c_schema__(self, /) -> CapsuleType:
        """
        Names and types of the columns (Arrow's PyCapsule interface).
        """
    def __arrow_c_stream__(self, /, requested_schema: Any | None = None) -> CapsuleType:
        """
        The whole table as a stream, any number of times (Arrow's PyCapsule interface).
        """
    def column(self, /, name: str) -> "list[Any]":
        """
        The values of a column as a list; nulls are None. Fails if there is no such column.
        """
    def head(self, /, name: str, rows: SupportsIndex) -> "list[Any]":
        """
        The first values of a column as a list, at most `rows`.
        """
    @property
    def rows(self, /) -> int:
        """
        Number of rows.
        """
    @property
    def units(self, /) -> list[tuple[str, str]]:
        """
        Names of the columns, with the unit of each: `ps`, `B`, `bit/s`, or an empty text for counts, ratios and names.
        """

def _fail(on_thread: bool) -> None:
    """
    Panics in the way that a bug would, for tests: on the thread of a run, or in work without the interpreter's lock.
    """

def compare_grid(path: str | PathLike[str], ci95: bool, baseline: str | None = None) -> Answer:
    """
    The comparison of the points of the grid at `path`, with the range over the seeds or the 95% confidence interval
    of the mean.
    """

def examples() -> list[tuple[str, str]]:
    """
    Name and text of each scenario in examples/.
    """

def explain(path: str | PathLike[str], flow: SupportsIndex | None = None, port: str | None = None, class_: str | None = None, src: str | None = None, dst: str | None = None, slowest: SupportsIndex | None = None) -> Answer:
    """
    `xoff explain` of the run at `path`: of one flow, of one congested port, or of all; also only of the flows of one
    class, from or to one host.
    """

def grid(scenario: Scenario, vary: SupportsGetItem[int, tuple[str, SupportsGetItem[int, str]]], variants: SupportsGetItem[int, tuple[str, SupportsGetItem[int, tuple[str, str]]]], seeds: SupportsGetItem[int, SupportsIndex], jobs: SupportsIndex | None, threads: SupportsIndex | None, out: str | PathLike[str], resume: bool, progress: Any | None) -> None:
    """
    Makes a grid of runs in the directory `out`. After Ctrl-C the finished runs are stored. Ctrl-C before the first run
    raises KeyboardInterrupt.
    """

def limit_memory(memory: str | None, spill: str | PathLike[str] | None) -> None:
    """
    Limits the memory of the process, and keeps large tables in files in the directory `spill`.
    """

def main(arguments: SupportsGetItem[int, str]) -> int:
    """
    The command line: `arguments` begin with the program's name. Returns the exit status.
    """

def metrics(path: str | PathLike[str]) -> list[tuple[str, str, float | None, str]]:
    """
    The numbers by which the run at `path` is compared: name, unit (`count`, `byte`, `ps`, `ratio` or `bit/s`), value,
    and the value as people read it.
    """

def open_chunks(store: str | PathLike[str], until: str | None) -> tuple[list[tuple[int, int]], int, int]:
    """
    The chunks of a store that can be made now, each with the number of its runs; the number of all runs that it needs,
    as far as this is known; and of those of them that are done.
    """

def page(path: str | PathLike[str]) -> str:
    """
    The page of the run or grid at `path`, as HTML.
    """

def plan_grid(scenario: Scenario, vary: SupportsGetItem[int, tuple[str, SupportsGetItem[int, str]]], variants: SupportsGetItem[int, tuple[str, SupportsGetItem[int, tuple[str, str]]]], seeds: SupportsGetItem[int, SupportsIndex], store: str | PathLike[str], chunk: SupportsIndex | None, keep: bool) -> str:
    """
    `xoff grid plan` into `store`; returns what it is, in words.
    """

def read_grid(path: str | PathLike[str]) -> str:
    """
    The manifest of the grid at `path`, as JSON, if its files are as they were written.
    """

def read_run(path: str | PathLike[str]) -> tuple[str, str]:
    """
    Manifest and summary of the run at `path`, as JSON, if all of its files are as they were written.
    """

def read_runs(path: str | PathLike[str], file: str) -> Table:
    """
    Reads the Parquet file of this name of every finished run of the grid at `path`, as one table. The columns of
    `grid.parquet` up to `seed` come first: they tell which run a row is of.
    """

def read_table(path: str | PathLike[str]) -> Table:
    """
    Reads a Parquet file of a run or a grid.
    """

def report(path: str | PathLike[str], out: str | PathLike[str] | None = None) -> Path:
    """
    Writes the page of the run or grid at `path` to the file `out`, or into its directory; returns the file.
    """

def repro(arguments: SupportsGetItem[int, str]) -> Answer:
    """
    `xoff repro` with the arguments of the command line. Ctrl-C raises KeyboardInterrupt once the finished runs are
    stored.
    """

def save_grid(path: str | PathLike[str], out: str | PathLike[str]) -> Path:
    """
    Copies the grid at `path` to `out`; returns its new place.
    """

def save_run(path: str | PathLike[str], out: str | PathLike[str]) -> Path:
    """
    Copies the run at `path` to `out`; returns its new place.
    """

def schema() -> str:
    """
    `xoff schema`, as JSON.
    """

def schemes(scheme: str | None, topology: str | None, port: str | None) -> str:
    """
    `xoff schemes`, also with `--topology` and `--port`.
    """

def size(arguments: SupportsGetItem[int, str]) -> Answer:
    """
    `xoff size` with the arguments of the command line.
    """

def store_page(store: str | PathLike[str]) -> str:
    """
    The page of a store, as HTML.
    """

def store_report(store: str | PathLike[str], out: str | PathLike[str] | None) -> str:
    """
    `xoff grid report`; returns the place of the page.
    """

def store_status(store: str | PathLike[str]) -> Answer:
    """
    `xoff grid status`.
    """

def store_table(store: str | PathLike[str], out: str | PathLike[str] | None, ci95: bool, baseline: str | None) -> Answer:
    """
    `xoff grid table`.
    """

def toml_document(tables: Any) -> str:
    """
    A dictionary of tables as the text of a scenario.
    """

def toml_value(value: Any, key: str) -> str:
    """
    A value as `--set` takes it: a text as it is, unless it would be read as something else.
    """

def work(store: str | PathLike[str], jobs: SupportsIndex | None, lease: str, until: str | None, chunks: SupportsGetItem[int, SupportsIndex] | None, progress: Any | None) -> tuple[int, int, list[int]]:
    """
    `xoff work`, of all chunks that are open or of these: runs that were made, those that failed, and the given chunks
    that others work on. Ctrl-C raises KeyboardInterrupt.
    """
