"""Figures."""

import matplotlib as mpl
import pytest

import xoff
from xoff import plot

mpl.use("Agg")
from matplotlib import pyplot  # noqa: E402


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def runs(victims):
    return {"PFC": victims, "Pyrrha": xoff.example("victims").set("flow_control.scheme", "pyrrha").run()}


def test_slowdown_over_size(runs):
    ax = plot.slowdown(runs, bins=4)
    assert [line.get_label() for line in ax.lines] == ["PFC p50", "PFC p99", "Pyrrha p50", "Pyrrha p99"]
    # The last group's p99 by hand.
    flows = runs["PFC"].flows.to_polars().drop_nulls("completed_ps").sort("size", maintain_order=True)
    last = flows["slowdown"][-240:].sort()
    assert ax.lines[1].get_ydata()[-1] == last[237]
    assert len(plot.slowdown(runs["PFC"], class_="mice", quantiles=[0.9]).lines) == 1


def test_distributions(runs):
    ax = plot.cdf(runs, "slowdown")
    x, y = ax.lines[0].get_data()
    assert (len(x), y[-1]) == (961, 1)
    assert x[0] == min(runs["PFC"].flows["slowdown"])


def test_series_over_time(victims):
    ax = plot.series(victims, "buffered", most=3)
    assert len(ax.lines) == 3
    peak = max(
        v for v, q in zip(victims.series["value"], victims.series["quantity"], strict=True) if q == "buffered"
    )
    assert max(ax.lines[0].get_ydata()) == peak
    assert "MB" in ax.get_ylabel() or "kB" in ax.get_ylabel()
    assert len(plot.series(victims, "goodput", elements=["mice"]).lines) == 1


def test_pauses(victims):
    ax = plot.pauses(victims, most=5)
    assert len(ax.collections) == 5
    assert plot.pauses(xoff.example("hello").run()).texts[0].get_text() == "no pauses"


def test_grids():
    scenario = xoff.example("leaf-spine").set({"run.duration": "50us", "run.drain": "50us"})
    variants = {name: {"flow_control.scheme": name} for name in ("pfc", "pyrrha")}
    grid = xoff.Grid(scenario, vary={"traffic.0.load": [0.3, 0.5]}, variants=variants, seeds=[1, 2]).run()
    ax = grid.plot("slowdown.p99", x="traffic.0.load", by="variant", interval="ci95")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["pfc", "pyrrha"]
    points = [p["metrics"]["slowdown_p99"]["mean"] for p in grid.comparison()["points"][:2]]
    assert list(ax.containers[0].lines[0].get_ydata()) == points
    assert grid.plot("goodput_bps", x="variant").get_ylabel() == "goodput (Gbit/s)"
    _, given = pyplot.subplots()
    assert grid.plot("pauses", ax=given) is given


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda runs: plot.slowdown(list(runs.values())), "expected a run or a dictionary"),
        (lambda runs: plot.slowdown(runs, class_="nope"), "there is no class"),
        (lambda runs: plot.slowdown(runs, quantiles=[99]), "quantile"),
        (lambda runs: plot.cdf(runs, "nope"), "there is no column"),
        (lambda runs: plot.series(runs["PFC"], "queue"), "no samples of 'queue'"),
        (lambda runs: plot.series(runs["PFC"], "buffered", elements=["nope"]), "no samples of 'nope'"),
    ],
)
def test_mistakes(runs, wrong, words):
    with pytest.raises(xoff.ScenarioError, match=words):
        wrong(runs)


def test_figures_are_files(runs, tmp_path):
    plot.slowdown(runs).figure.savefig(tmp_path / "a.pdf")
    assert (tmp_path / "a.pdf").stat().st_size > 1000
