"""Task that reads fragments and writes their live rows to new ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from lancelake.clock import SystemIds
from lancelake.data.fragment_writer import write_fragments
from lancelake.data.read_ahead import read_ahead
from lancelake.data.write_task import WriteTask
from lancelake.errors import UnsupportedError
from lancelake.format.fragment import Fragment
from lancelake.format.fragment_bytes import to_bytes
from lancelake.table.compact.carried import CarriedRows
from lancelake.table.compact.dictionaries import Joinable
from lancelake.table.compact.options import CompactionMode
from lancelake.table.compact.page_copies import copied, planned_copy
from lancelake.table.compact.row_reads import read_in_turn
from lancelake.table.compact.row_stream import RowStream
from lancelake.table.compact.staging import Unit, staged
from lancelake.table.compact.stored_rows import LINEAGE, Source, lineage_of_all, stored_rows

_TASK_BYTES = 320 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactFragments:
    """Adjacent fragments whose rows are rewritten into fewer, or fuller, fragments.

    `file_rows` is the number of rows of each new file; there may be more files with fewer rows, as
    `write` limits their bytes.
    """

    source: Source
    fragments: tuple[Fragment, ...]
    write: WriteTask
    file_rows: tuple[int, ...]
    batch_rows: int | None = None
    mode: CompactionMode | None = None

    @property
    def memory_bytes(self) -> int:
        """Estimated memory of a run."""
        return _TASK_BYTES

    def run(self) -> bytes:
        """Write the rows and return their fragments, which have no ids yet."""
        carried = CarriedRows()
        fragments = self._copied(carried) or self._encoded(carried)
        if self.source.has_stable_row_ids:
            fragments = [carried.given_to(fragment) for fragment in fragments]
        return to_bytes(fragments)

    def _copied(self, carried: CarriedRows) -> list[Fragment]:
        """Copy pages unchanged; return nothing if that is not possible."""
        plan = None
        if len(self.file_rows) == 1:
            plan = planned_copy(self.source.files, self.fragments, self.write, self.mode)
        if plan is None:
            self._ensure_not_forced()
            return []
        if self.source.has_stable_row_ids:
            for fragment in self.fragments:
                carried.add(lineage_of_all(self.source, fragment))
        return [copied(plan, self.fragments, self.write, SystemIds())]

    def _encoded(self, carried: CarriedRows) -> list[Fragment]:
        rows = RowStream(read_ahead(self._batches(carried)))
        schema = self.source.columns
        return [
            fragment
            for count in self.file_rows
            for fragment in write_fragments(
                self.write,
                pa.RecordBatchReader.from_batches(schema, rows.next_rows(count)),
                ids=SystemIds(),
            )
        ]

    def _ensure_not_forced(self) -> None:
        if self.mode is CompactionMode.FORCE_BINARY_COPY:
            ids = ", ".join(str(fragment.id) for fragment in self.fragments)
            raise UnsupportedError(
                f"pages of fragments {ids} cannot be copied unchanged",
                table=self.source.files.root.uri,
                version=self.source.version,
                action='Use compaction_mode="try_binary_copy".',
            )

    def _batches(self, carried: CarriedRows) -> Iterator[pa.RecordBatch]:
        names = self.source.columns.names
        metas = [meta.value for meta in LINEAGE]
        joinable = Joinable(self.source.schema, self.write.file_version)
        with staged(self.source, self.fragments, self.write) as units:
            for batch in read_in_turn(units, self._stored):
                if self.source.has_stable_row_ids:
                    carried.add(batch.select(metas))
                yield joinable(batch.select(names))

    def _stored(self, _: int, unit: Unit) -> Iterator[pa.RecordBatch]:
        source, fragment = unit
        return stored_rows(source, fragment, self.batch_rows)
