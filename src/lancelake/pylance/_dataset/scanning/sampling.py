"""Dataset methods that count rows, and return the first or random ones."""

from __future__ import annotations

from typing import Any, Unpack

import pyarrow as pa
import pyarrow.compute as pc

from lancelake.clock import Ids, SystemIds
from lancelake.errors import InvalidRequestError
from lancelake.pylance._dataset.arguments.options import CountOptions, HeadOptions, NoOptions
from lancelake.pylance._dataset.arguments.os_errors import names_dataset, os_errors
from lancelake.pylance._dataset.arguments.scan_arguments import Columns, Filter
from lancelake.pylance._dataset.scanning.scan_methods import DatasetScans
from lancelake.scan.count import count_rows
from lancelake.scan.stream import count_by_index

_IDS: Ids = SystemIds()


class DatasetSamples(DatasetScans):
    """Methods that count rows, and return the first or random ones."""

    def head(self, num_rows: int, **kwargs: Unpack[HeadOptions]) -> pa.Table:
        """Return the first rows.

        Args:
            num_rows: Rows to return, at most.
            **kwargs: Further arguments of `scanner`.

        Returns:
            The rows.

        Examples:
            >>> ds.head(2, columns=["id"]).to_pydict()
            {'id': [1, 2]}
        """
        return self.scanner(limit=num_rows, **kwargs).to_table()

    def sample(
        self,
        num_rows: int,
        columns: Columns = None,
        randomize_order: bool = True,
        **kwargs: Unpack[NoOptions],
    ) -> pa.Table:
        """Return a random sample of rows, without repetition.

        Args:
            num_rows: Rows to return.
            columns: Names, or SQL expressions by name; by default all columns.
            randomize_order: Return the rows in random order instead of table order.
            **kwargs: None are accepted.

        Returns:
            The rows.

        Raises:
            InvalidRequestError: The table has fewer rows.

        Examples:
            >>> ds.sample(2, columns=["id"]).num_rows
            2
        """
        total = self.count_rows()
        if num_rows > total or num_rows < 0:
            raise InvalidRequestError(
                "Sample larger than population or is negative",
                table=self._snapshot.location.uri,
            )
        chosen = _IDS.sample(total, num_rows)
        dataset: Any = self
        return dataset.take(chosen if randomize_order else sorted(chosen), columns, **kwargs)

    @os_errors()
    def count_rows(self, filter: Filter = None, **kwargs: Unpack[CountOptions]) -> int:
        """Count the rows, or those that match a filter.

        Args:
            filter: SQL, or an expression of `pyarrow.compute`; without one the manifest has the
                answer.
            **kwargs: Further arguments of `scanner`.

        Returns:
            The number of rows.

        Raises:
            InvalidExpressionError: The filter cannot be parsed or bound.

        Examples:
            >>> ds.count_rows(), ds.count_rows("name LIKE 'b%'")
            (3, 1)
        """
        if filter is None and not kwargs:
            return count_rows(self._snapshot)
        found = None
        if filter is not None and not kwargs and not self._default_scan_options:
            found = self._counted_by_index(filter)
        if found is None:
            return self.scanner(filter=filter, columns=[], **kwargs).count_rows()
        return found

    @names_dataset
    def _counted_by_index(self, filter: str | pc.Expression) -> int | None:
        return count_by_index(self._snapshot, filter)
