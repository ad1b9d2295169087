"""Reads run directories, and those of grids, with pandas, Polars and DuckDB and
compares what they see.

Usage: read_run.py DIRECTORY...
"""

import json
import sys
from pathlib import Path

import duckdb
import pandas
import polars


def value(query):
    """The one value of an SQL query."""
    return duckdb.sql(query).fetchall()[0][0]


def table(path):
    """The rows and column sums of a Parquet file, the same from every reader."""
    a = pandas.read_parquet(path)
    b = polars.read_parquet(path)
    columns = duckdb.sql(f"SELECT * FROM '{path}'").columns
    assert list(a.columns) == b.columns == columns, f"{path}: columns differ"
    rows = {len(a), b.height, value(f"SELECT count(*) FROM '{path}'")}
    assert len(rows) == 1, f"{path}: {rows} rows"
    for name, kind in zip(b.columns, b.dtypes):
        quoted = f'"{name}"'
        nulls = {
            int(a[name].isna().sum()),
            b[name].null_count(),
            value(f"SELECT count(*) - count({quoted}) FROM '{path}'"),
        }
        assert len(nulls) == 1, f"{path}: {name}: {nulls} nulls"
        if kind == polars.Int64:
            # Exact sums: Python's integers, not floats of the readers.
            sums = {
                sum(int(v) for v in a[name].dropna()),
                sum(v for v in b[name].drop_nulls().to_list()),
                int(value(f"SELECT coalesce(sum({quoted}::HUGEINT), 0) FROM '{path}'")),
            }
        elif kind == polars.String:
            sums = {
                a[name].nunique(),
                b[name].drop_nulls().n_unique() if b.height else 0,
                value(f"SELECT count(DISTINCT {quoted}) FROM '{path}'"),
            }
        else:
            assert kind == polars.Float64, f"{path}: {name} is {kind}"
            sums = {
                # Where every value is null pandas has NaN.
                None if a[name].isna().all() else a[name].max(),
                b[name].max(),
                value(f"SELECT max({quoted}) FROM '{path}'"),
            }
        assert len(sums) == 1, f"{path}: {name}: {sums}"
    return a


def check(run):
    manifest = json.loads((run / "manifest.json").read_text())
    summary = json.loads((run / "summary.json").read_text())
    assert manifest["format"] == "xoff run" and manifest["complete"]
    tables = {}
    for entry in manifest["files"]:
        path = run / entry["name"]
        assert path.stat().st_size == entry["bytes"], f"{path}: another size than the manifest says"
        if path.suffix == ".parquet":
            tables[path.stem] = table(path)
            assert len(tables[path.stem]) == entry["rows"], f"{path}: other rows than the manifest says"
    # The tables and the summary tell one story.
    flows, ports = tables["flows"], tables["ports"]
    everything = summary["sizes"][-1]
    assert everything["flows"] == len(flows[flows.start_ps <= manifest["simulated_ps"]])
    assert everything["finished"] == flows.completed_ps.notna().sum()
    assert summary["pauses"]["count"] == len(tables["pauses"])
    assert summary["pauses"]["pause_frames"] == ports.pause_frames.sum()
    sent, of_flows = summary["counters"]["sent"], flows.packets_sent.sum()
    # A cell of Zeropod's may carry the end of one flow and the beginning of another.
    shared = manifest["scenario"]["topology"]["kind"] == "zeropod"
    assert sent <= of_flows if shared else sent == of_flows
    waits = ["own_ps", "victim_ps", "named_victim_ps"]
    waits += ["source_own_ps", "source_victim_ps", "source_named_victim_ps"]
    blocking = tables["blocking"]
    if summary["blocking"] is None:
        assert flows[waits].isna().all().all() and blocking.empty and tables["pauses"].root.isna().all()
    else:
        for name in waits:
            assert summary["blocking"][name] == flows[name].sum() == blocking[name].sum(), name
        assert summary["blocking"]["pauses"] == blocking.pauses.sum() == tables["pauses"].root.notna().sum()
    done = flows.dropna(subset=["completed_ps"])
    assert (done.fct_ps == done.completed_ps - done.start_ps).all()
    assert (done.fct_ps >= done.ideal_ps).all(), "faster than alone in the network"
    assert (done.delivered_bytes == done["size"]).all()
    print(f"read by pandas, Polars and DuckDB: {run} ({len(flows)} flows, {len(tables)} tables)")


def check_grid(grid):
    manifest = json.loads((grid / "grid.json").read_text())
    assert manifest["format"] == "xoff grid" and manifest["complete"]
    rows = table(grid / "grid.parquet")
    runs = manifest["runs"]
    assert list(rows.name) == [run["name"] for run in runs]
    for axis in manifest["axes"]:
        # Written once for the points and once for the runs.
        assert list(rows[axis["key"]]) == [run["values"][axis["key"]] for run in runs]
    for run, row in zip(runs, rows.to_dict("records")):
        flows = pandas.read_parquet(grid / run["path"] / "flows.parquet")
        assert (row["seed"], row["flows"]) == (run["seed"], len(flows[flows.start_ps <= row["simulated_ps"]]))
        assert row["finished"] == flows.completed_ps.notna().sum()
        mean = flows.slowdown.mean()
        if row["finished"]:
            assert abs(row["slowdown_mean"] - mean) <= 1e-12 * mean, f"{run['name']}: another mean slowdown"
        assert row["pauses"] == len(pandas.read_parquet(grid / run["path"] / "pauses.parquet"))
    print(f"read by pandas, Polars and DuckDB: {grid} ({len(rows)} runs)")


if __name__ == "__main__":
    runs = [Path(argument) for argument in sys.argv[1:]]
    assert runs, __doc__
    for run in runs:
        check_grid(run) if (run / "grid.json").exists() else check(run)
