"""Methods of pyarrow's dataset class that pylance does not define.

pyarrow's own methods work on a C++ object that has no rows (`arrow_classes`): every public one must
be overridden here or in another mixin.
"""

from __future__ import annotations

from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads

from lancelake.errors import UnsupportedError


class ArrowMethods:
    """Methods of `pyarrow.dataset.Dataset`; results are in-memory datasets, as in pyarrow."""

    def sort_by(self, sorting: str | list[tuple[str, str]], **kwargs: Any) -> pads.InMemoryDataset:
        """Return all rows sorted by one or more columns."""
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
        """Return the join with another dataset."""
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
        """Return the join with the nearest rows of another dataset."""
        joined = _rows(self).join_asof(
            _rows(right_dataset), on, by, tolerance, right_on=right_on, right_by=right_by
        )
        return pads.InMemoryDataset(joined)

    def filter(self, expression: pc.Expression) -> NoReturn:
        """Not supported: scans take a filter."""
        raise UnsupportedError(
            "LanceDataset.filter() is not supported",
            action="Pass the filter to scanner(), to_table() or to_batches().",
        )

    def replace_schema(self, schema: pa.Schema) -> NoReturn:
        """Not supported: scans take the columns to return."""
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
