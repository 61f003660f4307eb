"""The part of a dataset that reads rows other than by a scan."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from lancelake.errors import InvalidRequestError
from lancelake.pylance.scanner import Columns, request_columns, row_numbers
from lancelake.scan import take as taking
from lancelake.scan.request import ScanRequest
from lancelake.scan.row_lookup import MISSING, addresses_of
from lancelake.table.snapshot import Snapshot


class DatasetReads:
    """Methods that read single rows."""

    _snapshot: Snapshot
    _default_scan_options: dict[str, Any] | None

    @property
    def initial_storage_options(self) -> dict[str, str] | None:
        """Options of the store that the table was opened with."""
        return self._snapshot.location.storage_options or None

    def latest_storage_options(self) -> dict[str, str] | None:
        """Options of the store in use, which stay those of the beginning."""
        return self.initial_storage_options

    def take(
        self, indices: Iterable[int] | pa.Array, columns: Columns = None, **_: Any
    ) -> pa.Table:
        """Return rows by number, in the order asked for."""
        request = ScanRequest(columns=request_columns(columns))
        return taking.take(self._snapshot.source, row_numbers(indices), request)

    def slice(self, start: int, end: int, columns: Columns = None) -> pa.Table:
        """Return the rows from one number up to, not including, another."""
        if start < 0:
            raise InvalidRequestError(f"start must be non-negative, got {start}")
        if end < start:
            raise InvalidRequestError(f"end ({end}) must be >= start ({start})")
        return self.scanner(columns=columns, offset=start, limit=end - start).to_table()

    def _take_rows(
        self,
        row_ids: Iterable[int] | pa.Array,
        columns: Columns = None,
        *,
        ignore_deletions: bool = False,
        **_: Any,
    ) -> pa.Table:
        """Return rows by id, in the order asked for, without those that are not there."""
        source = self._snapshot.source
        addresses = addresses_of(source, row_numbers(row_ids))
        request = ScanRequest(columns=request_columns(columns))
        return taking.take_at(source, addresses[addresses != MISSING], request)

    def scanner(self, *args: Any, **kwargs: Any) -> Any:
        """Return a scan."""
        raise NotImplementedError
