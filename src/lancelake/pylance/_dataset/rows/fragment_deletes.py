"""Fragment methods that delete rows without committing, and that validate."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

import numpy as np
from pyroaring import BitMap

from lancelake.clock import Ids, SystemIds
from lancelake.errors import InvalidRequestError
from lancelake.format.fragment import Fragment
from lancelake.format.ids import MAX_ROWS, FragmentId
from lancelake.format.row_address import offset_of
from lancelake.pylance._dataset.arguments.os_errors import os_errors
from lancelake.pylance._dataset.arguments.scan_arguments import Filter
from lancelake.pylance._dataset.scanning.fragment_scans import FragmentScans
from lancelake.pylance._values.fragment_metadata import FragmentMetadata, from_fragment
from lancelake.pylance._values.opened import OpenedDataset
from lancelake.scan.count import physical_rows
from lancelake.table.check.ensure import ensure_in_order
from lancelake.table.row_steps.mark_deleted import mark_deleted

_IDS: Ids = SystemIds()


class FragmentDeletes(FragmentScans, ABC):
    """Methods that write deletion files, for a `LanceOperation.Delete`."""

    _ds: OpenedDataset
    _id: FragmentId

    @property
    @abstractmethod
    def _fragment(self) -> Fragment: ...

    @os_errors()
    def delete(self, predicate: Filter) -> FragmentMetadata | None:
        """Mark rows as deleted, for a later `LanceOperation.Delete`.

        Args:
            predicate: SQL, or an expression of `pyarrow.compute`.

        Returns:
            The new fragment; None if no row is left.

        Examples:
            >>> fragment = ds.get_fragment(0).delete("id = 1")
            >>> delete = lance.LanceOperation.Delete([fragment], [], "id = 1")
            >>> lance.LanceDataset.commit(ds, delete, read_version=1).count_rows()
            2
        """
        found = self.scanner(columns=[], filter=predicate, with_row_address=True).to_table()
        addresses = found.column(0).to_numpy()
        return self._without(BitMap(offset_of(addresses).astype(np.uint32)))

    def delete_rows(self, offsets: Iterable[int]) -> FragmentMetadata | None:
        """Mark rows as deleted by their offsets in the files.

        Args:
            offsets: Positions of the rows, those of deleted ones included.

        Returns:
            The new fragment; None if no row is left.

        Raises:
            InvalidRequestError: An offset is past the last row.

        Examples:
            >>> ds.get_fragment(0).delete_rows([0, 1]).num_deletions
            2
        """
        numbers = [int(offset) for offset in offsets]
        if any(not 0 <= number < MAX_ROWS for number in numbers):
            raise OverflowError("out of range integral type conversion attempted")
        source = self._ds._snapshot
        rows = physical_rows(source.files, source.manifest_at, self._fragment)
        beyond = [number for number in numbers if number >= rows]
        if beyond:
            problem = f"delete_rows offset {beyond[0]} is out of range for fragment {self._id}"
            raise InvalidRequestError(f"{problem} with {rows} rows", table=self._ds.uri)
        return self._without(BitMap(numbers))

    def validate(self) -> None:
        """Raise an error if files of the fragment are missing, or its rows are inconsistent.

        Raises:
            CorruptTableError: The fragment violates the format.

        Examples:
            >>> ds.get_fragment(0).validate()
        """
        ensure_in_order(self._ds._snapshot, fragment=self._id)

    def _without(self, rows: BitMap) -> FragmentMetadata | None:
        if not rows:
            return from_fragment(self._fragment)
        done = mark_deleted(self._ds._snapshot, {self._id: rows}, _IDS)
        return from_fragment(done.updated[0]) if done.updated else None
