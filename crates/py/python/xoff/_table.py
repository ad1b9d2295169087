"""Tables of results."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from . import _check
from ._errors import ScenarioError

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from . import _xoff


class Table:
    """A table of results in memory, in Arrow's form.

    Polars, pandas, DuckDB and pyarrow read it any number of times, numbers without a copy:
    `polars.DataFrame(table)`, `pyarrow.table(table)`, or `duckdb.sql("FROM table")`.

    Columns are signed 64-bit integers, floating-point numbers (ratios) or texts; a missing value is null. The unit of
    a column is in its name (`_ps`, `_bps`), in `units`, and in the metadata of its Arrow field.
    """

    def __init__(self, native: _xoff.Table) -> None:
        self._native = native

    def __len__(self) -> int:
        return self._native.rows

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return [name for name, _ in self._native.units]

    @property
    def units(self) -> dict[str, str]:
        """Unit of each column: `ps`, `B`, `bit/s`, or an empty text for counts, ratios and names."""
        return dict(self._native.units)

    def __getitem__(self, column: str) -> list[Any]:
        """Return the values of a column, of length `len(table)`; nulls are None."""
        if not isinstance(column, str):
            remedy = f"the columns are {', '.join(self.columns)}"
            raise ScenarioError(f"{column!r} is not the name of a column", key="column", remedy=remedy)
        return self._native.column(column)

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __contains__(self, column: object) -> bool:
        return column in self.columns

    def keys(self) -> list[str]:
        """Names of the columns, as of a dictionary."""
        return self.columns

    def head(self, column: str, rows: int = 10) -> list[Any]:
        """Return the first values of a column, at most `rows`."""
        return self._native.head(_check.text("column", column), _check.whole("rows", rows, 0, 2**63 - 1))

    def to_polars(self) -> polars.DataFrame:
        """Return a Polars data frame."""
        import polars

        return polars.DataFrame(self)

    def to_arrow(self) -> pyarrow.Table:
        """Return a pyarrow table."""
        import pyarrow

        return pyarrow.table(self)

    def to_pandas(self) -> pandas.DataFrame:
        """Return a pandas data frame. It needs pandas and pyarrow."""
        return self.to_arrow().to_pandas(split_blocks=True)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export the table (Arrow's PyCapsule interface)."""
        return self._native.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """Export names and types of the columns (Arrow's PyCapsule interface)."""
        return self._native.__arrow_c_schema__()

    def __repr__(self) -> str:
        return f"<xoff.Table: {len(self):,} rows, {len(self.columns)} columns: {', '.join(self.columns)}>"

    def _repr_html_(self) -> str:
        shown = 10
        head = "".join(
            f"<th>{html.escape(name)}<br><small>{html.escape(unit)}</small></th>"
            for name, unit in self._native.units
        )
        columns = [self.head(name, shown) for name in self.columns]
        rows = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in zip(*columns, strict=True))
        more = f"<p>{len(self):,} rows in all</p>" if len(self) > shown else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{more}"


def cells(values: Iterable[object], tag: str) -> str:
    """Return cells of a table in HTML; those of None are empty."""
    texts = ("" if value is None else html.escape(str(value)) for value in values)
    return "".join(f"<{tag}>{text}</{tag}>" for text in texts)
