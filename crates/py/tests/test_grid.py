"""Grids of runs."""

import gc
import json

import duckdb
import polars
import pyarrow.dataset
import pytest
from conftest import ROOT

import xoff

SHORT = {"run.duration": "50us", "run.drain": "50us"}


@pytest.fixture(scope="module")
def grid():
    scenario = xoff.example("leaf-spine").set(SHORT)
    variants = {
        "pfc": {"flow_control.scheme": "pfc"},
        "irn": {"flow_control.scheme": "none", "transport.kind": "irn"},
    }
    return xoff.Grid(scenario, vary={"traffic.0.load": [0.3, 0.5]}, variants=variants, seeds=range(1, 4)).run(
        jobs=2
    )


def test_the_files_are_those_of_the_command_line(command, tmp_path):
    path = ROOT / "examples" / "leaf-spine.toml"
    options = [f"--set={key}={value}" for key, value in SHORT.items()]
    vary = ["--vary", "traffic.0.load=0.3,0.5", "--vary", "flow_control.scheme=pfc,pyrrha", "--seeds", "1,2"]
    assert command("run", path, "--quiet", "--out", tmp_path / "a", *options, *vary)[0] == 0
    grid = xoff.Grid(
        xoff.Scenario.load(path).set(SHORT),
        vary={"traffic.0.load": [0.3, 0.5], "flow_control.scheme": ["pfc", "pyrrha"]},
        seeds=[1, 2],
    )
    made = grid.run(jobs=2).save(tmp_path / "b")
    for name in ("grid.json", "grid.parquet"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    runs = sorted(path.name for path in (tmp_path / "a" / "runs").iterdir())
    assert runs == sorted(path.name for path in (tmp_path / "b" / "runs").iterdir())
    assert len(runs) == 8
    for run in runs:
        for file in ("flows.parquet", "summary.json"):
            assert (tmp_path / "a" / "runs" / run / file).read_bytes() == (
                tmp_path / "b" / "runs" / run / file
            ).read_bytes()
    assert str(made) == command("run", path, "--no-out", "--quiet", *options, *vary)[1].rstrip("\n")


def test_variants_and_values_and_seeds(grid):
    assert grid.complete
    assert grid.failed == {}
    table = polars.DataFrame(grid.table)
    assert table.select("variant", "traffic.0.load", "seed").rows() == [
        (variant, load, seed) for variant in ("pfc", "irn") for load in (0.3, 0.5) for seed in (1, 2, 3)
    ]
    schemes = [run.scenario["flow_control"]["scheme"] for run in grid.runs()]
    assert schemes == ["pfc"] * 6 + ["none"] * 6


def test_flows_of_all_runs_are_one_table(grid):
    flows = polars.DataFrame(grid.flows)
    counted = flows.group_by("variant", "traffic.0.load", "seed").len()
    assert counted.height == 12
    assert flows.height == sum(len(run.flows) for run in grid.runs())
    assert len(polars.DataFrame(grid.all("ports"))) == 12 * len(grid.runs()[0].ports)
    # The same traffic for both variants.
    sizes = flows.group_by("variant").agg(polars.col("size").sum()).sort("variant")
    assert sizes["size"].n_unique() == 1


def test_comparisons_have_intervals(grid):
    metrics = grid.comparison()["points"][0]["metrics"]["slowdown_mean"]
    values = grid.table["slowdown_mean"][:3]
    assert metrics["mean"] == pytest.approx(sum(values) / 3)
    assert (metrics["low"], metrics["high"]) == (min(values), max(values))
    narrow = grid.comparison("ci95")["points"][0]["metrics"]["slowdown_mean"]
    assert narrow["low"] < narrow["mean"] < narrow["high"]


def test_a_grid_is_shown_and_reported(grid, tmp_path):
    assert repr(grid) == "<xoff.GridRun leaf-spine: 12 of 12 runs finished>"
    assert grid._repr_html_().startswith("<iframe")
    assert grid.report(tmp_path / "page.html").stat().st_size > 10_000


def test_an_interrupted_grid_is_resumed(tmp_path):
    scenario = xoff.example("leaf-spine").set(SHORT)
    grid = xoff.Grid(scenario, vary={"traffic.0.load": [0.3, 0.5]}, seeds=[1])
    made = grid.run(out=tmp_path / "grid")
    before = (tmp_path / "grid" / "grid.json").read_bytes()
    for file in (tmp_path / "grid" / "runs" / made.table["name"][1]).iterdir():
        file.unlink()
    again = grid.run(out=tmp_path / "grid", resume=True)
    assert again.complete
    assert (tmp_path / "grid" / "grid.json").read_bytes() == before
    assert xoff.GridRun.open(tmp_path / "grid").table["seed"] == [1, 1]
    with pytest.raises(xoff.ResultsError, match="contains a different grid"):
        xoff.Grid(scenario, vary={"traffic.0.load": [0.3]}).run(out=tmp_path / "grid", resume=True)


def test_runs_keep_their_grid(grid):
    runs = xoff.Grid(xoff.example("hello"), seeds=[1, 2]).run(jobs=1024).runs()
    gc.collect()
    assert [len(run.flows) for run in runs] == [1, 1]
    chosen = grid.runs({"variant": "irn", "traffic.0.load": 0.5, "seed": 2})
    assert [run.seed for run in chosen] == [2]
    assert chosen[0].scenario["transport"]["kind"] == "irn"
    for where, words in [({"seed": "2"}, "no run has seed"), ({"load": 0.5}, "does not vary 'load'")]:
        with pytest.raises(xoff.ScenarioError, match=words):
            grid.runs(where)


def test_seeds_alone_make_a_grid():
    grid = xoff.Grid(xoff.example("hello"), seeds=[5, 9]).run()
    assert json.loads(json.dumps(grid.manifest["seeds"])) == [5, 9]
    assert grid.table["seed"] == [5, 9]


VARIANTS = """
[[variant]]
name = "pfc"
set = { flow_control.scheme = "pfc" }

[[variant]]
name = "irn"
[variant.set]
flow_control.scheme = "none"
transport = { kind = "irn" }
"""


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """A grid of variants, loads and seeds, from the tables of a file."""
    directory = tmp_path_factory.mktemp("variants")
    text = (ROOT / "examples" / "leaf-spine.toml").read_text()
    (directory / "net.toml").write_text(text + VARIANTS)
    scenario = xoff.Scenario.load(directory / "net.toml").set({"run.duration": "100us", "run.drain": "1ms"})
    assert scenario.variants == {
        "pfc": {"flow_control.scheme": "pfc"},
        "irn": {"flow_control.scheme": "none", "transport": {"kind": "irn"}},
    }
    grid = xoff.Grid(scenario, variants=scenario.variants, vary={"traffic.0.load": [0.3, 0.5]}, seeds=[1, 2])
    return grid.run(out=directory / "grid", jobs=2)


def test_the_flows_of_all_runs_are_one_dataset(compared):
    directory = compared.path / "flows"
    rows = len(compared.flows)
    seen = polars.scan_parquet(directory).collect()
    assert seen.height == rows
    counts = seen.group_by("variant", "load", "seed").len().sort("variant", "load", "seed").rows()
    own = polars.DataFrame(compared.flows).group_by("variant", "traffic.0.load", "seed").len()
    assert counts == own.sort("variant", "traffic.0.load", "seed").rows()
    table = pyarrow.dataset.dataset(directory, partitioning="hive").to_table()
    assert table.num_rows == rows
    assert {"variant", "load", "seed", "slowdown"} <= set(table.column_names)
    found = duckdb.sql(f"SELECT count(*) FROM read_parquet('{directory}/**/*.parquet', hive_partitioning = true)")
    assert found.fetchall() == [(rows,)]


def test_a_saved_grid_has_the_dataset(compared, tmp_path):
    saved = compared.save(tmp_path / "copy")
    assert polars.scan_parquet(saved.path / "flows").collect().height == len(compared.flows)
    names = [sorted(p.relative_to(g.path) for g in [g] for p in g.path.rglob("*")) for g in (compared, saved)]
    assert names[0] == names[1]


def test_points_are_compared_with_a_baseline(compared):
    found = compared.comparison()
    assert found["baseline"] == ["variant", "pfc"]
    assert [("ratios" in point) for point in found["points"]] == [False, False, True, True]
    goodput = [
        [r.summary["sizes"][-1]["goodput_bps"] for r in compared.runs({"variant": v, "traffic.0.load": 0.3})]
        for v in ("irn", "pfc")
    ]
    ratios = [own / base for own, base in zip(*goodput, strict=True)]
    assert found["points"][2]["ratios"]["goodput_bps"]["mean"] == pytest.approx(sum(ratios) / 2)
    by_load = compared.comparison(baseline=0.5)
    assert by_load["baseline"] == ["traffic.0.load", 0.5]
    assert [("ratios" in point) for point in by_load["points"]] == [True, False, True, False]
    with pytest.raises(xoff.ResultsError, match="no run has the value"):
        compared.comparison(baseline="tcp")


def test_the_table_has_classes_and_sizes(compared):
    table = polars.DataFrame(compared.table)
    assert table["class.poisson.flows"].to_list() == table["flows"].to_list()
    sizes = [c for c in table.columns if c.startswith("size.") and c.endswith(".flows")]
    assert table.select(polars.sum_horizontal(sizes)).to_series().to_list() == table["flows"].to_list()


def test_intervals_end_at_what_is_possible(compared):
    for point in compared.comparison("ci95")["points"]:
        assert point["metrics"]["slowdown_p99"]["low"] >= 1
        assert point["metrics"]["pauses"]["low"] >= 0
