"""xoff: a packet-level simulator of lossless datacenter fabrics.

A `Scenario` describes a network, its flow control and its traffic. It is checked without a simulation
(`check`, `topo`, `traffic`, `size`) or simulated (`run`, and `Grid` for many runs). A `Run` has tables
that Polars, pandas and DuckDB read.

Times are picoseconds (`_ps`), sizes bytes, rates bit/s (`_bps`).
"""

from __future__ import annotations

import json as _json
import sys as _sys
from pathlib import Path as _Path
from typing import Any as _Any

from . import _check, _xoff
from ._answers import Answer, Check
from ._errors import Error, InternalError, ResultsError, ScenarioError
from ._grid import Grid, GridRun
from ._run import Comparison, Run
from ._scenario import Scenario, example, examples
from ._store import Store
from ._table import Table

__version__: str = _xoff.__version__

__all__ = [
    "Answer",
    "Check",
    "Comparison",
    "Error",
    "Grid",
    "GridRun",
    "InternalError",
    "ResultsError",
    "Run",
    "Scenario",
    "ScenarioError",
    "Store",
    "Table",
    "example",
    "examples",
    "limit_memory",
    "repro",
    "schema",
    "schemes",
    "size",
]


def __getattr__(name: str) -> _Any:
    # matplotlib is loaded by those who plot.
    if name == "plot":
        from importlib import import_module

        return import_module(".plot", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def limit_memory(memory: str | None = None, *, spill: str | _Path | None = None) -> None:
    """Limit the memory that xoff uses in this process (`--memory`, `--spill`).

    A plan that needs more raises ScenarioError. A run that needs more ends, with `complete` False, and keeps its
    results until then. A limit is in force until it is set again.

    Parameters
    ----------
    memory
        A size, such as `"8GB"`; without it three quarters of the memory that is available when work begins.
    spill
        A directory on disk for tables of 16 MiB or more, which the limit does not count (Linux only). It can be set
        once.

    Raises
    ------
    ScenarioError
        `memory` is no size, or the directory cannot be used.

    """
    if memory is not None:
        _check.text("memory", memory)
    _xoff.limit_memory(memory, None if spill is None else _check.path("spill", spill))


#: The parameters of `size`.
_SIZE = (
    *("rate", "distance", "buffer", "mtu", "priorities", "response_time"),
    *("asic", "scheme"),
    *("slot", "processing", "jitter", "repair_every", "xoff", "update", "fan_in"),
)


def size(*, rate: str, distance: str, **parameters: str | int) -> Answer:
    """Compute the buffer, headroom and thresholds that a link needs under each scheme (`xoff size`).

    Parameters
    ----------
    rate
        Rate of the link, such as `"400Gbps"`.
    distance
        Length of the link, such as `"30km"`; the delay is 5 us per km.
    parameters
        The other options of `xoff size`, with underscores: `buffer="64MiB"`, `mtu="4096B"`, `priorities=2`,
        `response_time="1us"`, `scheme="pfc,swing"`, and the parameters of the schemes. `scheme` defaults to
        all schemes in `data`, and to `pfc,cbfc` in the text.

    Returns
    -------
    Answer
        `data` as of `xoff size --json` (bytes and picoseconds); `files` has a chart of buffer over distance.

    Raises
    ------
    ScenarioError
        A parameter is unknown or its value is refused.

    """
    arguments = []
    for name, value in {"rate": rate, "distance": distance, **parameters}.items():
        if name not in _SIZE:
            remedy = f"the parameters are {', '.join(_SIZE)}"
            raise ScenarioError(f"size has no parameter {name!r}", key=name, remedy=remedy)
        arguments.append(f"--{name.replace('_', '-')}={value}")
    return Answer(_xoff.size(arguments))


def schemes(scheme: str | None = None, *, topology: str | _Path | None = None, port: str | None = None) -> str:
    """Describe all schemes and their parameters, or one scheme such as `"pyrrha"` (`xoff schemes`).

    Parameters
    ----------
    scheme
        The scheme; without it, all.
    topology
        Show the queues of the scheme in this network: `"ndc(4,1)"`, or a scenario's file.
    port
        Only those of this port, such as `"H0:1"`.

    Raises
    ------
    ScenarioError
        There is no such scheme, network or port.

    """
    for what, value in (("scheme", scheme), ("port", port)):
        if value is not None:
            _check.text(what, value)
    if port is not None and topology is None:
        _check.refuse("port", port, "topology, too")
    return _xoff.schemes(scheme, None if topology is None else str(topology), port)


def schema() -> dict[str, _Any]:
    """Return the JSON Schema of scenario files (`xoff schema`)."""
    schema: dict[str, _Any] = _json.loads(_xoff.schema())
    return schema


def repro(
    *what: str,
    experiments: str | _Path | None = None,
    out: str | _Path | None = None,
    quick: bool = False,
    sensitivity: bool = False,
    beside: str | _Path | None = None,
    jobs: int | None = None,
    resume: bool = False,
) -> Answer:
    """Reproduce papers: run their experiments and compare the results with the claims (`xoff repro`).

    Parameters
    ----------
    what
        Papers and experiments, such as `"pyrrha/fig13"`, or one claim; without any, all papers.
    experiments
        Directory of the experiments; without it `experiments`, if it contains some, or else those in xoff.
    out
        Directory of the results; without it `xoff-repro`, or `xoff-repro-quick`.
    quick
        Run the shorter version of each experiment.
    sensitivity
        Change each assumed value separately, and list the verdicts that change.
    beside
        Earlier `results.json`; its experiments that are not run now are added to the new results.
    jobs
        Runs in parallel; without it, the number of cores.
    resume
        Continue an interrupted command.

    Returns
    -------
    Answer
        `data` is the content of `results.json`.

    Raises
    ------
    ScenarioError
        There is no such experiment, or its file is wrong.
    ResultsError
        The results cannot be written.
    KeyboardInterrupt
        Ctrl-C; the finished runs are stored.

    """
    arguments = ["--quiet"]
    if experiments is not None:
        arguments.append(f"--experiments={experiments}")
    if out is not None:
        arguments.append(f"--out={out}")
    if jobs is not None:
        arguments.append(f"--jobs={jobs}")
    if beside is not None:
        arguments.append(f"--beside={beside}")
    arguments += ["--quick"] * quick + ["--sensitivity"] * sensitivity + ["--resume"] * resume
    arguments += ["--", *what]
    return Answer(_xoff.repro(arguments))


def _main() -> None:
    """Run the command line, as the program `xoff` does."""
    import signal

    # xoff handles Ctrl-C itself; Python's own handler would raise an exception afterwards.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    _sys.exit(_xoff.main(["xoff", *_sys.argv[1:]]))
