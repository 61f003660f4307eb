"""Write new columns on an executor: one data file per fragment from values in row order."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelake.clock import SystemIds
from lancelake.data.column_file import ColumnFile
from lancelake.data.deletion_files import load_deletions
from lancelake.data.row_meta import MetaColumn
from lancelake.errors import SchemaMismatchError
from lancelake.format.fragment import Fragment
from lancelake.format.row_address import fragment_of, offset_of
from lancelake.scan.count import physical_rows
from lancelake.scan.live_rows import LiveRows
from lancelake.storage.table_files import FileAt, TableFiles
from lancelake.table.column_task import written

ADDRESS = MetaColumn.ROW_ADDRESS.value


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteColumns:
    """Writes the columns of whole fragments; every row has its address."""

    file: ColumnFile
    files: TableFiles
    manifest_at: FileAt
    fragments: Mapping[int, Fragment]
    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> list[bytes]:
        """Write the fragments of a partition and return the entries of their files."""
        runs = itertools.groupby(_pieces(batches), key=lambda piece: piece[0])
        return [self._fragment(number, (batch for _, batch in run)) for number, run in runs]

    def _fragment(self, number: int, rows: Iterator[pa.RecordBatch]) -> bytes:
        fragment = self.fragments[number]
        deleted = load_deletions(self.files, fragment)
        live = LiveRows(deleted)
        entry = self.file.write(
            self._values(rows, live, number),
            self.schema,
            deleted=deleted,
            physical_rows=physical_rows(self.files, self.manifest_at, fragment),
            ids=SystemIds(),
        )
        return written(fragment, entry)

    def _values(
        self, rows: Iterable[pa.RecordBatch], live: LiveRows, number: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield the new columns, after checking that rows are complete and in order."""
        rank = 0
        for batch in rows:
            offsets = offset_of(_addresses(batch))
            ranks = np.arange(rank, rank + batch.num_rows, dtype=np.uint64)
            if not np.array_equal(offsets, live.offsets_of(ranks)):
                raise SchemaMismatchError(
                    f"the rows of fragment {number} are incomplete or out of order",
                    fragment=number,
                    action="Use expressions that return one value for each row.",
                )
            rank += batch.num_rows
            yield pa.RecordBatch.from_arrays(
                [batch.column(name) for name in self.schema.names], schema=self.schema
            )


def _addresses(batch: pa.RecordBatch) -> npt.NDArray[np.uint64]:
    found: npt.NDArray[np.int64] = batch.column(ADDRESS).to_numpy(zero_copy_only=False)
    return found.astype(np.uint64)


def _pieces(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Split batches at fragment boundaries."""
    for batch in batches:
        if not batch.num_rows:
            continue
        numbers = fragment_of(_addresses(batch))
        cuts = np.flatnonzero(numbers[1:] != numbers[:-1]) + 1
        edges = [0, *cuts.tolist(), batch.num_rows]
        for start, stop in itertools.pairwise(edges):
            yield int(numbers[start]), batch.slice(start, stop - start)
