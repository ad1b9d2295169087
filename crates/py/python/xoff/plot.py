"""The field's usual figures, of runs and grids, in a style fit for a paper. It needs matplotlib.

Each function draws into `ax`, or into a new figure, and returns the axes. Several runs are given as a dictionary of
names: `slowdown({"PFC": a, "Pyrrha": b})`. The flows of a list of runs, such as one for each seed, are taken together.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ParamSpec

from . import _check
from ._errors import ScenarioError
from ._run import Run
from ._table import Table

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from ._grid import GridRun
    from ._store import Store

    Floats = NDArray[np.float64]
    Runs = Run | Mapping[str, Run | Iterable[Run]]

#: Colours that people with colour blindness tell apart (Okabe and Ito).
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")

#: Settings of matplotlib: a figure is as wide as a column of a paper, 3.5 inches.
STYLE: Any = {
    "figure.figsize": (3.5, 2.4),
    "figure.dpi": 150,
    "savefig.bbox": "tight",
    "font.size": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.5,
    "axes.axisbelow": True,
    "lines.linewidth": 1.3,
    "lines.markersize": 3.5,
    "legend.frameon": False,
    "legend.fontsize": 7,
    "figure.constrained_layout.use": True,
}

_LINES = ("-", "--", ":", "-.")
_MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")
_BYTES = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")]
_TIMES = [(1e12, "s"), (1e9, "ms"), (1e6, "us"), (1e3, "ns"), (1.0, "ps")]
_RATES = [(1e12, "Tbit/s"), (1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")]
_SCALES = {"B": _BYTES, "byte": _BYTES, "ps": _TIMES, "bit/s": _RATES}
_WORDS = {
    "fct": "flow completion time",
    "slowdown": "FCT slowdown",
    "goodput": "goodput",
    "paused": "paused time",
    "victim": "time of victims",
    "pauses": "pauses",
    "drops": "dropped packets",
    "finished": "finished flows",
}


_P = ParamSpec("_P")


def _styled(draw: Callable[_P, Axes]) -> Callable[_P, Axes]:
    """Draw a new figure in the style of xoff, and into given axes in theirs."""

    @functools.wraps(draw)
    def styled(*args: _P.args, **kwargs: _P.kwargs) -> Axes:
        from matplotlib import rcParams

        if kwargs.get("ax") is not None:
            return draw(*args, **kwargs)
        # Not rc_context: it would also take back that a notebook shows figures.
        before = {key: rcParams[key] for key in STYLE}
        rcParams.update(STYLE)
        try:
            return draw(*args, **kwargs)
        finally:
            rcParams.update(before)

    return styled


@_styled
def slowdown(
    runs: Runs,
    *,
    quantiles: float | Iterable[float] = (0.5, 0.99),
    bins: int = 10,
    class_: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the FCT slowdown over the flow size: a point for each of `bins` groups of equally many finished flows.

    Parameters
    ----------
    runs
        A run, or several by name.
    quantiles
        A line for each, from 0 to 1, by nearest rank.
    bins
        Number of groups.
    class_
        Only flows of this class.
    ax
        Where to draw.

    """
    import numpy as np

    quantiles = [quantiles] if isinstance(quantiles, float) else list(quantiles)
    bins = _check.whole("bins", bins, 1, 10**6)
    ax = _axes(ax)
    for i, (name, several) in enumerate(_named(runs).items()):
        size, value = _finished(several, ["size", "slowdown"], class_)
        order = np.argsort(size, kind="stable")
        groups = [group for group in np.array_split(order, bins) if len(group)]
        x = [float(np.median(size[group])) for group in groups]
        for j, quantile in enumerate(quantiles):
            y = [_rank(np.sort(value[group]), quantile) for group in groups]
            label = f"{name} p{100 * quantile:g}".strip()
            ax.plot(x, y, _LINES[j % 4], color=COLOURS[i % 8], marker=_MARKS[i % 8], label=label)
    ax.set_xscale("log")
    ax.set_yscale("log")
    _unit(ax.xaxis, "B", "flow size")
    _plain(ax.yaxis)
    ax.set_ylabel("FCT slowdown")
    ax.legend()
    return ax


@_styled
def cdf(runs: Runs, column: str = "fct_ps", *, class_: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw the distribution of a column of `Run.flows` over the finished flows, such as `"fct_ps"` or `"slowdown"`."""
    import numpy as np

    ax = _axes(ax)
    unit = ""
    named = _named(runs)
    for i, (name, several) in enumerate(named.items()):
        unit = _column(several[0].flows, column)
        (values,) = _finished(several, [column], class_)
        values = np.sort(values)
        share = np.arange(1, len(values) + 1) / max(len(values), 1)
        ax.step(values, share, where="post", color=COLOURS[i % 8], linestyle=_LINES[i % 4], label=name or None)
    ax.set_xscale("log")
    _unit(ax.xaxis, unit, _words(column))
    ax.set_ylabel("share of flows")
    ax.set_ylim(0, 1.02)
    if len(named) > 1:
        ax.legend()
    return ax


@_styled
def series(
    run: Run,
    quantity: str = "queue",
    *,
    elements: str | Iterable[str] | None = None,
    most: int = 6,
    ax: Axes | None = None,
) -> Axes:
    """Draw samples over time (`measure.interval`): queues, buffers, throughput, rates of flows.

    Parameters
    ----------
    run
        The run.
    quantity
        A `quantity` of `Run.series`, such as `"queue"`, `"buffered"` or `"goodput"`.
    elements
        Ports, devices, classes or flows; without them those with the highest maximum.
    most
        How many lines are drawn at most.
    ax
        Where to draw.

    """
    import numpy as np

    table = _one(run).series
    quantities = table["quantity"]
    if quantity not in quantities:
        known = ", ".join(sorted(set(quantities))) or "none"
        remedy = f"it has {known}; set measure.interval for samples, and measure.ports for those of ports"
        raise ScenarioError(f"the run has no samples of {quantity!r}", key="quantity", remedy=remedy)
    mine = np.array([q == quantity for q in quantities])
    names = np.array(table["element"])[mine]
    times = np.array(table["time_ps"], dtype=float)[mine]
    values = np.array(table["value"], dtype=float)[mine]
    unit = np.array(table["unit"])[mine][0]
    if isinstance(elements, str):
        elements = [elements]
    if elements is None:
        by_peak = sorted(set(names), key=lambda name: (-values[names == name].max(), str(name)))
        elements = by_peak[:most]
    ax = _axes(ax)
    for i, name in enumerate(elements):
        here = names == name
        if not here.any():
            raise ScenarioError(f"there are no samples of {name!r}", key="elements", remedy="see Run.series")
        ax.plot(times[here], values[here], _LINES[i // 8 % 4], color=COLOURS[i % 8], label=str(name))
    _unit(ax.xaxis, "ps", "time")
    _unit(ax.yaxis, str(unit), quantity.replace("_", " "))
    ax.set_ylim(bottom=0)
    ax.legend()
    return ax


@_styled
def pauses(run: Run, *, most: int = 24, ax: Axes | None = None) -> Axes:
    """Draw when egress ports were paused: a bar for each pause, the ports paused longest at the top, at most `most`."""
    import numpy as np

    table = _one(run).pauses
    ports = np.array(table["port"], dtype=object)
    begins = np.array(table["from_ps"], dtype=float)
    lengths = np.array(table["duration_ps"], dtype=float)
    total = {port: lengths[ports == port].sum() for port in set(ports)}
    shown = sorted(total, key=lambda port: (-total[port], port))[:most]
    if ax is None:
        height = max(1.2, 0.6 + 0.14 * len(shown))
        ax = _axes(None, height)
    for i, port in enumerate(shown):
        here = ports == port
        bars = list(zip(begins[here], lengths[here], strict=True))
        ax.broken_barh(bars, (i - 0.4, 0.8), facecolors=COLOURS[0])
    if not shown:
        ax.text(0.5, 0.5, "no pauses", ha="center", transform=ax.transAxes)
    ax.set_yticks(range(len(shown)), shown)
    ax.set_ylim(max(len(shown), 1) - 0.5, -0.5)
    ends = max((begins + lengths).tolist(), default=float(run.summary["simulated_ps"]))
    ax.set_xlim(0, min(1.05 * ends, float(run.summary["simulated_ps"])))
    ax.grid(axis="y", visible=False)
    _unit(ax.xaxis, "ps", "time")
    ax.set_ylabel("paused port")
    return ax


@_styled
def grid(
    grid: GridRun | Store,
    metric: str,
    *,
    x: str | None = None,
    by: str | None = None,
    interval: str = "range",
    ax: Axes | None = None,
) -> Axes:
    """Draw the mean of a number over a varied key; see `GridRun.plot`."""
    comparison = grid.comparison(interval)
    keys = [axis["key"] for axis in comparison["axes"]]
    name = metric.replace(".", "_")
    points = comparison["points"]
    numbers = [point["metrics"] for point in points]
    if name not in numbers[0]:
        remedy = f"the numbers are {', '.join(numbers[0])}"
        raise ScenarioError(f"a grid has no number {metric!r}", key="metric", remedy=remedy)
    if not keys:
        raise ScenarioError("the grid varies nothing", key="x", remedy="draw a grid with varied keys or variants")
    x = keys[-1] if x is None else _key(x, keys, "x")
    others = [key for key in keys if key != x]
    by = (others[0] if len(others) == 1 else None) if by is None else _key(by, keys, "by")
    rest = [key for key in others if key != by]
    if rest:
        raise ScenarioError(
            f"the grid also varies {', '.join(rest)}", key="by", remedy="draw a grid that varies x and by alone"
        )
    lines: dict[Any, list[tuple[Any, Any, Any, Any]]] = {}
    for point, found in zip(points, numbers, strict=True):
        value = found[name] or {"mean": None, "low": None, "high": None}
        line = lines.setdefault(point["values"][by] if by else "", [])
        line.append((point["values"][x], value["mean"], value["low"], value["high"]))
    ax = _axes(ax)
    categories = [str(place) for place, *_ in next(iter(lines.values()))]
    are_numbers = all(isinstance(place, int | float) for line in lines.values() for place, *_ in line)
    numbers_only = (
        [place for line in lines.values() for place, *_ in line] if are_numbers else [0, len(categories)]
    )
    step = 0.012 * (max(numbers_only) - min(numbers_only) or 1)
    for i, (label, line) in enumerate(lines.items()):
        # Beside each other, so that no interval hides another one.
        shift = step * (i - (len(lines) - 1) / 2)
        places = [shift + (place if are_numbers else categories.index(str(place))) for place, *_ in line]
        means = [_number(mean) for _, mean, *_ in line]
        low = [_number(mean) - _number(least, mean) for _, mean, least, _ in line]
        high = [_number(most, mean) - _number(mean) for _, mean, _, most in line]
        dashes = _LINES[i // 8 % 4] if are_numbers else "none"
        style: Any = {"color": COLOURS[i % 8], "marker": _MARKS[i % 8], "linestyle": dashes}
        ax.errorbar(places, means, yerr=[low, high], capsize=2, elinewidth=0.8, label=str(label) or None, **style)
    if not are_numbers:
        ax.set_xticks(range(len(categories)), categories)
        ax.set_xlim(-0.5, len(categories) - 0.5)
    ax.set_xlabel(x or "")
    unit = {"bps": "bit/s", "ps": "ps"}.get(name.rsplit("_", 1)[-1], "")
    unit = "B" if name.endswith("_peak") else unit
    _unit(ax.yaxis, unit, _words(name))
    ax.set_ylim(bottom=0)
    if by:
        ax.legend(title=None if by == "variant" else by)
    return ax


def _key(key: str | None, keys: list[str], what: str) -> str:
    """Find a varied key by its name or its end."""
    found = [known for known in keys if known == key or known.endswith(f".{key}")]
    # Variants are what people call schemes.
    found = found or [known for known in keys if key == "scheme" and known == "variant"]
    if len(found) != 1:
        remedy = f"the grid varies {', '.join(keys) or 'nothing'}"
        raise ScenarioError(f"{what} = {key!r} is not one of the varied keys", key=what, remedy=remedy)
    return found[0]


def _number(value: float | None, otherwise: float | None = None) -> float:
    value = otherwise if value is None else value
    return float("nan") if value is None else float(value)


def _named(runs: Runs) -> dict[str, list[Run]]:
    """Return the runs of each name; of several runs the flows are taken together."""
    if isinstance(runs, Run):
        return {"": [runs]}
    if isinstance(runs, Mapping):
        lists = {str(name): [one] if isinstance(one, Run) else list(one) for name, one in runs.items()}
        if lists and all(several and all(isinstance(run, Run) for run in several) for several in lists.values()):
            return lists
    raise ScenarioError(
        f"expected a run or a dictionary of runs, found {type(runs).__name__}",
        key="runs",
        remedy='such as {"PFC": a}',
    )


def _one(run: object) -> Run:
    return run if isinstance(run, Run) else _check.refuse("run", run, "one run")


def _column(table: Table, name: str) -> str:
    """Return the unit of a column of numbers."""
    numbers = [column for column in table.columns if not any(isinstance(v, str) for v in table.head(column))]
    if name not in numbers:
        raise ScenarioError(
            f"there is no column of numbers {name!r}", key="column", remedy=f"there are {', '.join(numbers)}"
        )
    return table.units[name]


def _finished(runs: list[Run], columns: list[str], class_: str | None) -> list[Floats]:
    """Return columns of the finished flows of all runs, of one class if there is one."""
    import numpy as np

    classes: set[str] = set()
    parts: list[list[Floats]] = [[] for _ in columns]
    for run in runs:
        keep = ~np.isnan(np.array(run.flows["completed_ps"], dtype=float))
        if class_ is not None:
            mine = run.flows["class"]
            classes.update(mine)
            keep &= np.array([name == class_ for name in mine], dtype=bool)
        for part, column in zip(parts, columns, strict=True):
            part.append(np.array(run.flows[column], dtype=float)[keep])
    if class_ is not None and class_ not in classes:
        remedy = f"the classes are {', '.join(sorted(classes))}"
        raise ScenarioError(f"there is no class {class_!r}", key="class_", remedy=remedy)
    return [np.concatenate(part) for part in parts]


def _rank(ordered: Floats, quantile: float) -> float:
    """Return a quantile by nearest rank."""
    import numpy as np

    if not 0 <= quantile <= 1:
        raise ScenarioError(f"the quantile {quantile!r} is not possible", key="quantiles", remedy="from 0 to 1")
    return float(ordered[max(int(np.ceil(quantile * len(ordered))), 1) - 1])


def _axes(ax: Axes | None, height: float | None = None) -> Axes:
    """Return the axes, or those of a new figure, of this height in inches if one is given."""
    from matplotlib import pyplot

    if ax is not None:
        return ax
    width, standard = STYLE["figure.figsize"]
    return pyplot.subplots(figsize=(width, height or standard))[1]


def _words(column: str) -> str:
    """Say a column's name in words."""
    parts = column.removesuffix("_ps").removesuffix("_bps").split("_")
    first = _WORDS.get(parts[0], parts[0])
    return " ".join([first, *parts[1:]])


def _plain(axis: Any) -> None:
    """Write the numbers of a logarithmic axis as people do."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def _unit(axis: Any, unit: str, what: str) -> None:
    """Label an axis with the unit that fits its values."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    scales = _SCALES.get(unit)
    if scales is None:
        axis.set_label_text(what)
        if axis.get_scale() == "log":
            _plain(axis)
        return
    if axis.get_scale() == "log":

        def text(value: float, _: int) -> str:
            factor, name = next((s for s in scales if value >= s[0]), scales[-1])
            return f"{value / factor:g} {name}"

        axis.set_major_formatter(FuncFormatter(text))
        axis.set_minor_formatter(NullFormatter())
        axis.set_label_text(what)
        return
    most = max(abs(v) for v in axis.get_view_interval())
    factor, name = next((s for s in scales if most >= s[0]), scales[-1])
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / factor:g}"))
    axis.set_label_text(f"{what} ({name})")
