"""Methods of pyarrow's dataset class that pylance does not define.

pyarrow's own methods work on a C++ object that has no rows (`arrow_classes`): every public one must
be overridden here or in another mixin.
"""

from __future__ import annotations

from typing import Any, NoReturn, Unpack

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads

from lancelake.errors import UnsupportedError
from lancelake.pylance._dataset.arguments.options import SortOptions


class ArrowMethods:
    """Methods of `pyarrow.dataset.Dataset`; results are in-memory datasets, as in pyarrow."""

    def sort_by(
        self, sorting: str | list[tuple[str, str]], **kwargs: Unpack[SortOptions]
    ) -> pads.InMemoryDataset:
        """Return all rows sorted by one or more columns.

        Args:
            sorting: A column, or pairs of a column and `ascending` or `descending`.
            **kwargs: Arguments of `pyarrow.Table.sort_by`.

        Returns:
            The rows in memory.

        Examples:
            >>> ds.sort_by([("id", "descending")]).to_table()["id"].to_pylist()
            [3, 2, 1]
        """
        return pads.InMemoryDataset(_rows(self).sort_by(sorting, **kwargs))

    def join(
        self,
        right_dataset: pads.Dataset,
        keys: str | list[str],
        right_keys: str | list[str] | None = None,
        join_type: str = "left outer",
        left_suffix: str | None = None,
        right_suffix: str | None = None,
        coalesce_keys: bool = True,
        use_threads: bool = True,
    ) -> pads.InMemoryDataset:
        """Return the join with another dataset.

        Args:
            right_dataset: The other dataset.
            keys: Key columns.
            right_keys: Key columns of the other dataset; by default of the same names.
            join_type: A kind of join of `pyarrow.Table.join`.
            left_suffix: Suffix of column names that both sides have.
            right_suffix: Suffix of column names that both sides have.
            coalesce_keys: Return the keys of both sides as one column.
            use_threads: Use several threads.

        Returns:
            The rows in memory.

        Examples:
            >>> cities = lance.write_dataset({"id": [2], "city": ["Oslo"]}, "cities.lance")
            >>> ds.join(cities, "id", join_type="inner").to_table().to_pylist()
            [{'id': 2, 'name': 'bob', 'score': 2.5, 'city': 'Oslo'}]
        """
        joined = _rows(self).join(
            _rows(right_dataset),
            keys,
            right_keys=right_keys,
            join_type=join_type,
            left_suffix=left_suffix,
            right_suffix=right_suffix,
            coalesce_keys=coalesce_keys,
            use_threads=use_threads,
        )
        return pads.InMemoryDataset(joined)

    def join_asof(
        self,
        right_dataset: pads.Dataset,
        on: str,
        by: str | list[str],
        tolerance: int,
        right_on: str | None = None,
        right_by: str | list[str] | None = None,
    ) -> pads.InMemoryDataset:
        """Return the join with the nearest rows of another dataset.

        Args:
            right_dataset: The other dataset.
            on: Column whose values are compared; both sides must be sorted by it.
            by: Columns whose values must be equal.
            tolerance: Largest distance of a match, negative to look backwards.
            right_on: Column of the other dataset; by default of the same name.
            right_by: Columns of the other dataset; by default of the same names.

        Returns:
            The rows in memory.

        Examples:
            >>> left = lance.write_dataset({"at": [5], "key": [1]}, "left.lance")
            >>> right = lance.write_dataset({"at": [3], "key": [1], "price": [9]}, "right.lance")
            >>> left.join_asof(right, "at", "key", -5).to_table()["price"].to_pylist()
            [9]
        """
        joined = _rows(self).join_asof(
            _rows(right_dataset), on, by, tolerance, right_on=right_on, right_by=right_by
        )
        return pads.InMemoryDataset(joined)

    def filter(self, expression: pc.Expression) -> NoReturn:
        """Not supported: scans take a filter.

        Args:
            expression: The filter.

        Raises:
            UnsupportedError: Always.
        """
        raise UnsupportedError(
            "LanceDataset.filter() is not supported",
            action="Pass the filter to scanner(), to_table() or to_batches().",
        )

    def replace_schema(self, schema: pa.Schema) -> NoReturn:
        """Not supported: scans take the columns to return.

        Args:
            schema: The schema.

        Raises:
            UnsupportedError: Always.
        """
        raise UnsupportedError(
            "LanceDataset.replace_schema() is not supported",
            action="Pass columns to scanner(), or cast the table that a scan returns.",
        )


def _rows(source: Any) -> pa.Table:
    if isinstance(source, pa.Table):
        return source
    if not isinstance(source, pads.Dataset):
        raise TypeError(f"expected a dataset, not {type(source).__name__}")
    return source.to_table()
