"""Zones: runs of rows of one fragment with a summary each.

A zone is stored by the position of its first row and its span, which includes rows that were
deleted before the index was built.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from lancelake.data.codec.index_file import IndexFileReader, SegmentFolder
from lancelake.errors import CorruptTableError
from lancelake.format.ids import MAX_FRAGMENT_ID, MAX_ROWS
from lancelake.format.index_meta import IndexFile
from lancelake.format.row_address import bitmap_of, fragment_of, split
from lancelake.index import row_sets
from lancelake.index.kind import ROW_ID, VALUE, IdKind, IndexKind, OpenSegment, SegmentFacts

Mask: TypeAlias = npt.NDArray[np.bool_]

FRAGMENT = pa.field("fragment_id", pa.uint64(), nullable=False)
START = pa.field("zone_start", pa.uint64(), nullable=False)
LENGTH = pa.field("zone_length", pa.uint64(), nullable=False)
BOUNDS = (FRAGMENT, START, LENGTH)
NULL_BITMAP = "null_bitmap"
"""Metadata key: the number of the global buffer that has the addresses of null rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Zone:
    """Rows of one fragment, in their order."""

    ids: row_sets.U64Array
    values: pa.Array

    @property
    def fragment(self) -> int:
        """The fragment of its first row."""
        return split(int(self.ids[0]))[0]

    def slice(self, start: int, length: int) -> Zone:
        """Return some of its rows, at most `length`."""
        return Zone(ids=self.ids[start : start + length], values=self.values.slice(start, length))

    @property
    def bounds(self) -> tuple[int, int, int]:
        """Fragment, first row and span."""
        first, last = int(self.ids[0]), int(self.ids[-1])
        return *split(first), last - first + 1

    @property
    def nulls(self) -> row_sets.RowIds:
        """Addresses of the rows without a value."""
        if not self.values.null_count:
            return row_sets.EMPTY
        return row_sets.RowIds.of(self.ids[np.asarray(self.values.is_null())])


def cut(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[Zone]:
    """Split rows into zones of a row count; zones end with their fragment."""
    pending: list[Zone] = []
    missing = rows
    for run in _runs(batches):
        if pending and pending[0].fragment != run.fragment:
            yield _join(pending)
            pending, missing = [], rows
        start = 0
        while start < len(run.ids):
            pending.append(run.slice(start, missing))
            start += missing
            missing -= len(pending[-1].ids)
            if not missing:
                yield _join(pending)
                pending, missing = [], rows
    if pending:
        yield _join(pending)


def _runs(batches: Iterable[pa.RecordBatch]) -> Iterator[Zone]:
    """Yield consecutive rows of one fragment."""
    for batch in batches:
        ids = np.asarray(batch.column(ROW_ID), dtype=np.uint64)
        whole = Zone(ids=ids, values=batch.column(VALUE))
        if len(ids) and split(int(ids[0]))[0] == split(int(ids[-1]))[0]:
            yield whole  # the rows of a fragment are consecutive
            continue
        fragments = fragment_of(ids)
        ends = (np.flatnonzero(fragments[1:] != fragments[:-1]) + 1).tolist()
        for start, end in itertools.pairwise([0, *ends, len(ids)]):
            if start < end:
                yield whole.slice(start, end - start)


def _join(pieces: Sequence[Zone]) -> Zone:
    if len(pieces) == 1:
        return pieces[0]
    ids = np.concatenate([piece.ids for piece in pieces])
    return Zone(ids=ids, values=pa.concat_arrays([piece.values for piece in pieces]))


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneRows:
    """The rows of the zones of a segment; `nulls` is None where they are unknown."""

    fragments: row_sets.U64Array
    starts: row_sets.U64Array
    lengths: row_sets.U64Array
    nulls: row_sets.RowIds | None

    @staticmethod
    def read(file: IndexFileReader, facts: SegmentFacts, name: str) -> ZoneRows:
        """Read the bounds of all zones, and the null rows."""
        path = facts.folder.file(name).path
        names = [each.name for each in BOUNDS]
        file.require(*names)
        table = file.read(columns=names)
        bounds = [np.asarray(table.column(each), dtype=np.uint64) for each in names]
        fragments, starts, lengths = bounds
        is_addressable = np.all(fragments <= MAX_FRAGMENT_ID) and np.all(starts < MAX_ROWS)
        if not is_addressable or np.any(lengths > MAX_ROWS):
            msg = f"index file {path} has a zone outside of every fragment"
            raise CorruptTableError(msg, path=path)
        data = file.buffer(NULL_BITMAP)
        what = f"null rows of index file {path}"
        nulls = None
        if data is not None:
            nulls = row_sets.decode_tree_map(data, rows_of=facts.fragment_rows, what=what)
        return ZoneRows(fragments=fragments, starts=starts, lengths=lengths, nulls=nulls)

    def within(self, zones: Mask) -> row_sets.RowIds:
        """Return the rows of some zones."""
        fragments, starts = self.fragments[zones], self.starts[zones]
        ends = starts + self.lengths[zones]
        is_next = (fragments[1:] == fragments[:-1]) & (starts[1:] == ends[:-1])
        firsts = np.flatnonzero(np.concatenate([[True], ~is_next])[: len(starts)])
        lasts = np.append(firsts[1:], len(starts))[: len(firsts)] - 1
        parts: dict[int, BitMap] = {}
        runs = zip(
            fragments[firsts].tolist(), starts[firsts].tolist(), ends[lasts].tolist(), strict=True
        )
        for fragment, start, end in runs:
            parts.setdefault(fragment, BitMap()).add_range(start, end)
        return row_sets.RowIds.within(parts)

    def answer(self, maybe_true: Mask, maybe_false: Mask) -> row_sets.Answer:
        """Return the result of a condition that can be true and false in these zones only."""
        true, false = (
            row_sets.RowMask(self.within(m) - (self.nulls or row_sets.EMPTY))
            for m in (maybe_true, maybe_false)
        )
        return row_sets.Answer(row_sets.NO_ROWS, true, row_sets.NO_ROWS, false)

    def answer_is_null(self, maybe_null: Mask, maybe_valid: Mask) -> row_sets.Answer:
        """Return the result of a null test, exact where nulls are known."""
        if self.nulls is not None:
            return row_sets.Answer.exact(self.nulls)
        true, false = (
            row_sets.RowMask(self.within(maybe_null)),
            row_sets.RowMask(self.within(maybe_valid)),
        )
        return row_sets.Answer(row_sets.NO_ROWS, true, row_sets.NO_ROWS, false)


class ZoneKind(IndexKind):
    """A kind that summarizes zones, which rows that move leave."""

    def stored_ids(self, index_version: int, *, has_stable_row_ids: bool) -> IdKind:
        """Return the row references of a segment, which are always addresses."""
        return IdKind.ADDRESS


class ZoneSegment(OpenSegment):
    """A segment with a file of zones."""

    file_name: str

    def __init__(self, facts: SegmentFacts) -> None:
        self._facts = facts

    @cached_property
    def file(self) -> IndexFileReader:
        """The file, which has a row for each zone."""
        return self._facts.folder.open(self.file_name)

    @cached_property
    def rows(self) -> ZoneRows:
        """The rows of the zones."""
        return ZoneRows.read(self.file, self._facts, self.file_name)

    def fragments(self) -> BitMap:
        """Return the fragments that have a zone."""
        return bitmap_of(self.rows.fragments.astype(np.uint32))


class ZoneFileWriter:
    """Writes a file with a row for each zone, and the null rows unless a segment lacks them.

    It starts with the zones of other segments, those of fragments that are to be kept.
    """

    def __init__(
        self,
        folder: SegmentFolder,
        name: str,
        schema: pa.Schema,
        zones_at_once: int,
        segments: Iterable[tuple[ZoneSegment, row_sets.RowIds | None]],
    ) -> None:
        self.knows_nulls = True
        self._schema = schema
        self._zones_at_once = zones_at_once
        self._nulls: list[row_sets.RowIds] = []
        self._pending: list[tuple[Any, ...]] = []
        self._file = folder.create(name, schema)
        for segment, keep in segments:
            self._add_segment(segment, keep)

    def add(self, zone: Zone, row: tuple[Any, ...]) -> None:
        """Add a zone, with the values of its columns."""
        self._nulls.append(zone.nulls)
        self._pending.append(row)
        if len(self._pending) >= self._zones_at_once:
            self._flush()

    def _add_segment(self, segment: ZoneSegment, keep: row_sets.RowIds | None) -> None:
        for batch in segment.entries():
            zones = batch.select(self._schema.names)
            if keep is not None:
                fragments = pa.array(sorted(keep.parts), pa.uint64())
                zones = zones.filter(pc.is_in(zones.column(FRAGMENT.name), value_set=fragments))
            self._file.write(pa.RecordBatch.from_arrays(zones.columns, schema=self._schema))
        nulls = segment.rows.nulls
        if nulls is None:
            self.knows_nulls = False
        else:
            self._nulls.append(nulls if keep is None else nulls & keep)

    def finish(self, metadata: Mapping[str, str]) -> IndexFile:
        """Finish the file."""
        self._flush()
        nulls = {}
        if self.knows_nulls:
            nulls[NULL_BITMAP] = str(
                self._file.add_buffer(row_sets.encode_tree_map(row_sets.union(self._nulls)))
            )
        return self._file.finish({**metadata, **nulls})

    def _flush(self) -> None:
        if not self._pending:
            return
        columns = [
            pa.array(column, each.type)
            for column, each in zip(zip(*self._pending, strict=True), self._schema, strict=True)
        ]
        self._file.write(pa.RecordBatch.from_arrays(columns, schema=self._schema))
        self._pending = []
