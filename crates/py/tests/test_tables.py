"""Tables: Polars, pandas, pyarrow and DuckDB read them, any number of times and numbers without a copy."""

import duckdb
import pandas
import polars
import pyarrow
import pytest

import xoff


def address(array):
    return array.__array_interface__["data"][0]


def test_every_reader_sees_the_same_twice(victims):
    flows = victims.flows
    stored = polars.read_parquet(victims.path / "flows.parquet")
    for _ in range(2):
        assert polars.DataFrame(flows).equals(stored)
        assert pyarrow.table(flows).num_rows == len(stored)
        frame = flows.to_pandas()
        pandas.testing.assert_frame_equal(
            frame, pandas.read_parquet(victims.path / "flows.parquet"), check_dtype=False
        )
        assert duckdb.sql("SELECT count(*), max(fct_ps) FROM flows").fetchall() == [
            (len(stored), stored["fct_ps"].max())
        ]
    assert flows.to_polars().equals(stored)


@pytest.mark.parametrize(
    "name",
    ["flows", "series", "pauses", "blocking", "critical", "ahead", "computations", "ports", "accounts", "nodes"],
)
def test_every_table_is_its_file(victims, name):
    table = getattr(victims, name)
    stored = polars.read_parquet(victims.path / f"{name}.parquet")
    assert table.to_polars().equals(stored)
    assert table.columns == stored.columns
    assert all(table[column] == stored[column].to_list() for column in table.columns)


def test_numbers_are_not_copied(victims):
    flows = victims.flows
    for column in ("size", "id", "delivered_bytes", "ideal_ps", "packets_sent"):
        of_polars = {address(polars.DataFrame(flows)[column].to_numpy(allow_copy=False)) for _ in range(2)}
        of_arrow = {pyarrow.table(flows)[column].chunk(0).buffers()[1].address for _ in range(2)}
        of_pandas = {address(flows.to_pandas()[column].to_numpy()) for _ in range(2)}
        assert len(of_polars | of_arrow | of_pandas) == 1, column


def test_units_are_in_names_and_fields(victims):
    units = victims.flows.units
    assert (units["fct_ps"], units["size"], units["slowdown"], units["src"]) == ("ps", "B", "", "")
    assert victims.ports.units["rate_bps"] == "bit/s"
    field = pyarrow.table(victims.flows).schema.field("size")
    assert field.metadata == {b"unit": b"B"}
    assert pyarrow.schema(victims.flows).names == victims.flows.columns


def test_a_table_is_shown(victims):
    shown = victims.flows._repr_html_()
    assert shown.count("<tr>") == 11
    assert "961 rows in all" in shown
    assert "&lt;" not in shown
    assert repr(victims.flows).startswith("<xoff.Table: 961 rows, 30 columns: id, src")


def test_nulls_stay_nulls():
    run = xoff.example("bcube-deadlock").run()
    unfinished = sum(value is None for value in run.flows["completed_ps"])
    sizes = run.summary["sizes"][-1]
    assert unfinished == len(run.flows) - sizes["finished"] > 0
    assert run.flows.to_polars()["completed_ps"].null_count() == unfinished
    assert run.flows.to_pandas()["completed_ps"].isna().sum() == unfinished


def test_an_empty_table_has_its_columns():
    run = xoff.example("hello").run()
    assert len(run.pauses) == 0
    assert polars.DataFrame(run.pauses).columns == run.pauses.columns
    assert run.pauses.to_pandas().empty
