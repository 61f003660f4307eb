"""One task of a compaction: fragments to new fragments."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

import pyarrow as pa

from lancelake.data.arrays.batches import read_ahead
from lancelake.data.arrays.conform import column_ids
from lancelake.data.codec.readers import temporary_folder
from lancelake.data.column_file import WriteTask, write_fragments
from lancelake.data.column_reader import StoreSource
from lancelake.data.joined_fragments import (
    FEWEST_JOINED,
    LARGE_PAGE_BYTES,
    MOST_JOINED,
    PageCopy,
    has_movable_columns,
    is_small,
    join,
    joined_fragment,
    page_copy,
)
from lancelake.errors import UnsupportedError
from lancelake.format import layout
from lancelake.format.fragment import FileVersion, Fragment, to_bytes
from lancelake.format.ids import FieldId
from lancelake.format.layout import data_file_name
from lancelake.maintenance.compact import stored_rows
from lancelake.maintenance.compact.options import CompactionMode
from lancelake.storage.location import Location
from lancelake.storage.table_files import TableFiles
from lancelake.threads import Future, Pool

# Small pages are slow to read, so most bytes must be in large ones.
_LARGE_SHARE = 0.9


def planned_copy(
    files: TableFiles,
    fragments: Sequence[Fragment],
    write: WriteTask,
    mode: CompactionMode | None,
) -> PageCopy | None:
    """Return the plan to copy the fragments into one file; None if values must be encoded again."""
    if mode is CompactionMode.REENCODE or not is_copyable(fragments, write):
        return None
    if mode is None and not _may_have_large_pages(fragments):
        return None
    places = [files.data_file(fragment.files[0]) for fragment in fragments]
    found = page_copy(StoreSource(place.store, place.path) for place in places)
    if found is None or (mode is None and found.large_share < _LARGE_SHARE):
        return None
    return found


def copied(plan: PageCopy, fragments: Sequence[Fragment], write: WriteTask) -> Fragment:
    """Write the file and return its fragment."""
    name = data_file_name(write.root.session.ids.uuid4())
    size_bytes = plan.write(write.root.store, layout.data_file(name))
    return joined_fragment(fragments, name, size_bytes)


def is_copyable(fragments: Sequence[Fragment], write: WriteTask) -> bool:
    """Whether each fragment consists of one file with exactly the table's columns."""
    size_bytes = sum(f.file_size_bytes or 0 for fragment in fragments for f in fragment.files)
    return size_bytes <= write.full_at_bytes and all(map(WholeFiles.of(write), fragments))


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeFiles:
    """Decides whether a fragment consists of one file with exactly the table's columns.

    Without fields, because some columns cannot be copied, no fragment qualifies.
    """

    version: FileVersion
    fields: tuple[FieldId, ...] | None
    column_indices: tuple[int, ...]

    @staticmethod
    def of(write: WriteTask) -> WholeFiles:
        """Create the check for the files that a task would write."""
        fields = column_ids(write.schema, write.file_version)
        return WholeFiles(
            version=write.file_version,
            fields=fields if has_movable_columns(write.schema) else None,
            column_indices=tuple(range(len(fields))),
        )

    def __call__(self, fragment: Fragment) -> bool:
        """Whether the fragment is such a file."""
        if len(fragment.files) != 1 or fragment.deletion_file is not None:
            return False
        (file,) = fragment.files
        return (
            fragment.physical_rows is not None
            and file.fields == self.fields
            and file.column_indices == self.column_indices
            and file.version is self.version
        )


def _may_have_large_pages(fragments: Sequence[Fragment]) -> bool:
    sizes = [file.file_size_bytes or 0 for fragment in fragments for file in fragment.files]
    return sum(s for s in sizes if s >= LARGE_PAGE_BYTES) >= _LARGE_SHARE * sum(sizes)


Unit = tuple[stored_rows.Source, Fragment]
"""A fragment, and the locations of its files."""


@contextmanager
def staged(
    source: stored_rows.Source, fragments: Sequence[Fragment], write: WriteTask
) -> Iterator[list[Unit]]:
    """Return the same rows in fewer fragments if opening each would take most of the time."""
    with temporary_folder("lancelake-compact-") as folder:
        (folder / layout.DATA).mkdir()
        place = replace(source, files=TableFiles(root=Location.parse(folder)))
        units: list[Unit] = []
        for is_joinable, run in _runs(fragments, write):
            whole = _joined(source, place, run) if is_joinable else None
            units += [(source, fragment) for fragment in run] if whole is None else [whole]
        yield units


def _runs(
    fragments: Sequence[Fragment], write: WriteTask
) -> Iterator[tuple[bool, tuple[Fragment, ...]]]:
    """Yield runs of similar adjacent fragments, and whether they are small, whole and many."""
    is_whole = WholeFiles.of(write)
    for is_like, run in groupby(fragments, key=lambda f: is_small(f) and is_whole(f)):
        alike = tuple(run)
        for start in range(0, len(alike), MOST_JOINED):
            part = alike[start : start + MOST_JOINED]
            yield is_like and len(part) >= FEWEST_JOINED, part


def _joined(
    source: stored_rows.Source, place: stored_rows.Source, run: tuple[Fragment, ...]
) -> Unit | None:
    """Gather the pages of a run in one file; None if that is not possible."""
    whole = join(source.files, run, Path(place.files.root.uri))
    if whole is None:
        return None
    carried = stored_rows.CarriedRows()
    if source.has_stable_row_ids:
        for fragment in run:
            carried.add(stored_rows.lineage_of_all(source, fragment))
        whole = carried.given_to(whole)
    return place, whole


Read = Callable[[int, Unit], Iterator[pa.RecordBatch]]
"""Reads a fragment, given its position among those that are read."""

Begun = tuple[pa.RecordBatch | None, Iterator[pa.RecordBatch]]
"""The first rows of a fragment, and the remaining ones."""

_MOST_AHEAD = 3
_AHEAD_BYTES = 32 << 20


def read_in_turn(units: Sequence[Unit], read: Read) -> Iterator[pa.RecordBatch]:
    """Yield the output of `read` for each fragment, in order."""
    sizes = [sum(file.file_size_bytes or 0 for file in f.files) for _, f in units]
    ahead = max(1, min(_MOST_AHEAD, int(_AHEAD_BYTES / max(1, *sizes))))

    def begin(number: int, unit: Unit) -> Begun:
        batches = read(number, unit)
        return next(batches, None), batches

    with Pool(ahead) as pool:
        waiting = deque(enumerate(units))
        begun: deque[Future[Begun]] = deque()
        while waiting or begun:
            while waiting and len(begun) < ahead:
                begun.append(pool.submit(begin, *waiting.popleft()))
            first, rest = begun.popleft().result()
            if first is not None:
                yield first
            yield from rest


_TASK_BYTES = 320 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactFragments:
    """Adjacent fragments whose rows are rewritten into fewer, or fuller, fragments.

    `file_rows` is the number of rows of each new file; there may be more files with fewer rows, as
    `write` limits their bytes.
    """

    source: stored_rows.Source
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
        carried = stored_rows.CarriedRows()
        fragments = self._copied(carried) or self._encoded(carried)
        if self.source.has_stable_row_ids:
            fragments = [carried.given_to(fragment) for fragment in fragments]
        return to_bytes(fragments)

    def _copied(self, carried: stored_rows.CarriedRows) -> list[Fragment]:
        """Copy pages unchanged; return nothing if that is not possible."""
        plan = None
        if len(self.file_rows) == 1:
            plan = planned_copy(self.source.files, self.fragments, self.write, self.mode)
        if plan is None:
            self._ensure_not_forced()
            return []
        if self.source.has_stable_row_ids:
            for fragment in self.fragments:
                carried.add(stored_rows.lineage_of_all(self.source, fragment))
        return [copied(plan, self.fragments, self.write)]

    def _encoded(self, carried: stored_rows.CarriedRows) -> list[Fragment]:
        rows = stored_rows.RowStream(read_ahead(self._batches(carried)))
        schema = self.source.columns
        return [
            fragment
            for count in self.file_rows
            for fragment in write_fragments(
                self.write,
                pa.RecordBatchReader.from_batches(schema, rows.next_rows(count)),
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

    def _batches(self, carried: stored_rows.CarriedRows) -> Iterator[pa.RecordBatch]:
        names = self.source.columns.names
        metas = [meta.value for meta in stored_rows.LINEAGE]
        joinable = stored_rows.Joinable(self.source.schema, self.write.file_version)
        with staged(self.source, self.fragments, self.write) as units:
            for batch in read_in_turn(units, self._stored):
                if self.source.has_stable_row_ids:
                    carried.add(batch.select(metas))
                yield joinable(batch.select(names))

    def _stored(self, _: int, unit: Unit) -> Iterator[pa.RecordBatch]:
        source, fragment = unit
        return stored_rows.stored_rows(source, fragment, self.batch_rows)
