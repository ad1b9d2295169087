"""Grids that many processes share."""

import multiprocessing
import signal

import polars
import pytest

import xoff


@pytest.fixture
def grid():
    scenario = xoff.example("leaf-spine").set({"run.duration": "50us", "run.drain": "50us"})
    variants = {
        "pfc": {"flow_control.scheme": "pfc"},
        "irn": {"flow_control.scheme": "none", "transport.kind": "irn"},
    }
    return xoff.Grid(scenario, vary={"traffic.0.load": [0.3, 0.5]}, variants=variants, seeds=range(1, 6))


def work(path):
    signal.signal(signal.SIGINT, signal.default_int_handler)
    return xoff.Store(path).work(jobs=1)


def test_processes_share_a_grid(grid, tmp_path):
    store = xoff.Store.plan(grid, tmp_path / "store", chunk=2)
    assert store.status().data["runs_done"] == 0
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        made = pool.map(work, [store.place] * 2)
    assert sum(runs for runs, _ in made) >= 20
    assert [failed for _, failed in made] == [0, 0]
    status = store.status()
    assert (status.data["runs_done"], status.data["chunks_done"]) == (20, 12)
    assert "complete" in str(status)
    own = grid.run(jobs=2)
    assert store.comparison()["points"] == own.comparison()["points"]
    table = (tmp_path / "store" / "grid.parquet").read_bytes()
    assert table == (own.path / "grid.parquet").read_bytes()
    flows = polars.scan_parquet(f"{store.place}/flows").collect()
    assert flows.height == len(own.flows)
    assert {"variant", "load", "seed", "run", "slowdown"} <= set(flows.columns)
    assert store.work() == (0, 0)


def test_errors_of_a_store(grid, tmp_path):
    with pytest.raises(xoff.ScenarioError, match="is no store"):
        xoff.Store(tmp_path).work()
    xoff.Store.plan(grid, tmp_path / "store")
    other = xoff.Grid(grid.scenario, seeds=[1])
    with pytest.raises(xoff.ScenarioError, match="is of another grid"):
        xoff.Store.plan(other, tmp_path / "store")
    with pytest.raises(xoff.ScenarioError, match="lease"):
        xoff.Store(tmp_path / "store").work(lease="soon")
    with pytest.raises(xoff.ScenarioError, match="the values are"):
        xoff.Store(tmp_path / "store").comparison(baseline="tcp")
