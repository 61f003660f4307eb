"""Indices of a version, and the questions of a condition that they can answer.

In tables with stable row ids, release 4.0.2 keeps the old values of updated rows when it refreshes
an index.

Parts that no index can help with are left out before anything is asked: of an OR, all parts must
be known to bound the rows for which it is true; of an AND, one is enough. For the rows for which
they are false it is the other way round.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Generic, TypeVar, cast

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from lancelake import errors
from lancelake.commit.snapshot import Snapshot
from lancelake.data.fragment_reader import RowMeta, known_deletions, physical_rows
from lancelake.expr.condition import (
    And,
    Column,
    ColumnComparison,
    Condition,
    Constant,
    Leaf,
    ListMatch,
    Not,
    Or,
    Path,
    PlannedLeaf,
    SqlLeaf,
    all_of,
)
from lancelake.format.fragment import Fragment
from lancelake.format.fragment_list import FragmentList
from lancelake.format.ids import FieldId, FragmentId
from lancelake.format.index_meta import IndexMetadata
from lancelake.format.row_address import bitmap_of
from lancelake.format.schema import follow
from lancelake.index import cache
from lancelake.index.kind import IdKind, IndexKind, OpenSegment, SortedSegment
from lancelake.index.kinds import KINDS
from lancelake.index.order import KeyRange, has_order, range_of
from lancelake.index.row_sets import EMPTY, RowIds
from lancelake.index.stored_segment import CONTRADICTIONS, Coverage, StoredIndices
from lancelake.scan.live_rows import live_rows

T = TypeVar("T")


class PerSnapshot(Generic[T]):
    """A value for each snapshot, made when it is first asked for."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._known: dict[int, tuple[weakref.ref[Snapshot], T]] = {}

    def __call__(self, snapshot: Snapshot) -> T:
        """Return the value of a snapshot."""
        number = id(snapshot)
        entry = self._known.get(number)
        if entry is not None and entry[0]() is snapshot:
            return entry[1]
        value = self._make()
        owner = weakref.ref(snapshot, lambda _: self._known.pop(number, None))
        self._known[number] = (owner, value)
        return value


def lacks_rows(snapshot: Snapshot, segment: OpenSegment, coverage: Coverage) -> bool:
    """Whether a segment has fewer entries than the fragments that it should cover have rows.

    In tables with stable row ids, release 4.0.2 loses entries when it refreshes an index after
    rows were updated and compacted.
    """
    if coverage.stored is IdKind.ADDRESS or not isinstance(segment, SortedSegment):
        return False
    by_id = FragmentList.of(snapshot.manifest.fragments).by_id()
    covered = (by_id[FragmentId(number)] for number in coverage.fragments)
    rows = (live_rows(snapshot.files, snapshot.manifest_at, fragment) for fragment in covered)
    return segment.num_entries() < sum(rows)


def is_unreliable(
    snapshot: Snapshot, entry: IndexMetadata, segment: OpenSegment, coverage: Coverage
) -> bool:
    """Whether searches of a segment of an early release would miss rows.

    Releases that record the files of a segment do not leave such segments.
    """
    if entry.files:
        return False
    if segment.has_stale_bounds():
        return True
    if coverage.stored is not IdKind.ADDRESS:
        return False
    rows = segment.early_rows()
    return rows is not None and not _has_live_rows(snapshot, rows, coverage)


def _has_live_rows(snapshot: Snapshot, indexed: RowIds, coverage: Coverage) -> bool:
    """Whether a set has all rows of the covered fragments that are not deleted.

    Releases before 0.30 lost the rows of nulls when they compacted a table with a BITMAP.
    """
    by_id = FragmentList.of(snapshot.manifest.fragments).by_id()
    for number in coverage.fragments:
        fragment = by_id[FragmentId(number)]
        rows = physical_rows(snapshot.files, snapshot.manifest_at, fragment)
        live = BitMap(range(rows)) - known_deletions(snapshot.files, fragment)
        if live - indexed.parts.get(number, BitMap()):
            return False
    return True


def uncertain_rows(snapshot: Snapshot, coverage: Coverage) -> RowIds:
    """Return the addresses of covered rows that were updated since they were inserted."""
    if coverage.stored is IdKind.ADDRESS:
        return EMPTY
    by_id = FragmentList.of(snapshot.manifest.fragments).by_id()
    updated: dict[int, BitMap] = {}
    for number in coverage.fragments:
        rows = _find_updated(snapshot, by_id[FragmentId(number)])
        if rows:
            updated[number] = rows
    return RowIds(updated) if updated else EMPTY


def ranked_coverage(snapshot: Snapshot, segment: OpenSegment, coverage: Coverage) -> Coverage:
    """Leave out fragments of which a ranked search may find rows by old values.

    What it finds is not read again, and a score does not show how old the value is.
    """
    uncertain = uncertain_rows(snapshot, coverage)
    if not uncertain or not segment.has_rows_twice():
        return coverage
    return replace(coverage, fragments=coverage.fragments - BitMap(uncertain.parts))


def _find_updated(snapshot: Snapshot, fragment: Fragment) -> BitMap:
    """Return the rows of a fragment that were updated, read once as long as they are kept."""
    created, changed = fragment.created_at_versions, fragment.last_updated_at_versions
    if created == changed:
        return BitMap()
    count = physical_rows(snapshot.files, snapshot.manifest_at, fragment)

    def read() -> BitMap:
        meta = RowMeta(snapshot.files, fragment, count, has_stable_row_ids=True)
        return bitmap_of(np.flatnonzero(meta.is_updated()).astype(np.uint32))

    part = ("updated rows", created, changed, count)
    return cache.kept(cache.of_table(snapshot), part, read, lambda rows: len(rows.serialize()))


# What an open segment keeps in memory by itself, about.
_SEGMENT_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexSource:
    """A segment of an index, and the fragments of the version that it answers for."""

    index: str
    kind: IndexKind
    segment: OpenSegment
    coverage: Coverage


class IndexSources:
    """The indices of a version, by column; segments are opened when their column is asked for."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._stored = StoredIndices(snapshot)
        self._found = _found_in(snapshot)

    @property
    def fragments(self) -> FragmentList:
        """The fragments of the version."""
        return self._stored.fragments

    def of(self, column: Column) -> tuple[IndexSource, ...]:
        """Return the segments that index a column, those of exact kinds first."""
        sources = self._found.get(column.path)
        if sources is None:
            sources = self._found[column.path] = tuple(self._sources(column))
        return sources

    def _sources(self, column: Column) -> Iterator[IndexSource]:
        trail = follow(self._snapshot.manifest.schema.fields, column.path, exact=True)
        if len(trail) < len(column.path):
            return
        fields = (FieldId(trail[-1].id),)
        entries = [e for e in self._snapshot.indices if e.fields == fields and not e.is_system]
        usable = [(e, kind) for e in entries if (kind := self._kind(e, column.dtype)) is not None]
        for entry, kind in sorted(usable, key=lambda pair: KINDS.index(pair[1])):
            source = self._source(entry, kind, column)
            if source is not None and source.coverage.fragments:
                yield source

    def _kind(self, entry: IndexMetadata, dtype: pa.DataType) -> IndexKind | None:
        kind = self._stored.kind(entry, dtype)
        return kind if kind is not None and kind.accepts(dtype) else None

    def _source(self, entry: IndexMetadata, kind: IndexKind, column: Column) -> IndexSource | None:
        try:
            coverage = self._stored.version.coverage(entry, kind)
        except errors.UnsupportedError:
            return None  # rows moved in a way that only newer releases know
        if coverage is not None and len(column.path) > 1:
            coverage = self._without_updates(coverage, entry)
        if coverage is None or not coverage.fragments:
            return None
        with naming_index(entry.name):
            segment = self._open(entry, kind, column.dtype)
            coverage = coverage.trusted(segment)
            if kind.is_ranked:
                coverage = ranked_coverage(self._snapshot, segment, coverage)
            if lacks_rows(self._snapshot, segment, coverage):
                return None
            if is_unreliable(self._snapshot, entry, segment, coverage):
                return None
        return IndexSource(index=entry.name, kind=kind, segment=segment, coverage=coverage)

    def _without_updates(self, coverage: Coverage, entry: IndexMetadata) -> Coverage:
        """Leave out fragments with rows that were updated since a field of a struct was indexed.

        When a whole struct is updated, release 4.0.2 lets indices of its fields cover the new
        rows, of which they have the old values.
        """
        if coverage.stored is IdKind.ADDRESS:
            return coverage
        by_id = self.fragments.by_id()
        places = self._snapshot.files, self._snapshot.manifest_at
        updated = BitMap()
        for number in coverage.fragments:
            fragment = by_id[FragmentId(number)]
            rows = physical_rows(*places, fragment)
            meta = RowMeta(self._snapshot.files, fragment, rows, has_stable_row_ids=True)
            if meta.newest_update() > entry.dataset_version:
                updated.add(number)
        return replace(coverage, fragments=coverage.fragments - updated)

    def _open(self, entry: IndexMetadata, kind: IndexKind, dtype: pa.DataType) -> OpenSegment:
        facts = self._stored.facts(entry, dtype)
        opened: object = cache.kept(
            cache.of(facts.folder.place),
            "segment",
            lambda: kind.open(facts),
            lambda _: _SEGMENT_BYTES,
        )
        return cast(OpenSegment, opened)


_found_in: PerSnapshot[dict[Path, tuple[IndexSource, ...]]] = PerSnapshot(dict)
"""The segments that were found in a snapshot so far."""


@contextmanager
def naming_index(index: str, action: str | None = None) -> Iterator[None]:
    """Turn what is wrong with a file of an index into an error that names the index, too.

    `action` is what to do where the advice for filters does not apply.
    """
    try:
        yield
    except errors.DamagedIndexError:
        raise
    except (errors.CorruptTableError, errors.ObjectNotFoundError) as error:
        problem = f"index {index!r} cannot be searched: {error.problem}"
        path = error.facts.get("path")
        raise errors.DamagedIndexError(problem, action=action, index=index, path=path) from error
    except errors.LanceTableError:
        raise
    except CONTRADICTIONS as error:
        problem = f"index {index!r} cannot be searched: its entries contradict each other"
        raise errors.DamagedIndexError(problem, action=action, index=index) from error


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Question:
    """Conditions on one column that must all hold; `wanted` is the range that they leave."""

    column: Column
    leaves: tuple[Leaf, ...]
    wanted: KeyRange | None = None

    @property
    def condition(self) -> Condition:
        """The question as one condition."""
        return all_of(self.leaves)


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A condition with the same truth for every row."""

    truth: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unasked:
    """A condition that no index is asked about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opposite:
    """NOT before questions."""

    part: Questions


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """Questions joined by AND or by OR."""

    parts: tuple[Questions, ...]
    is_and: bool


Questions = Question | Known | Unasked | Opposite | Joined
UNASKED = Unasked()

ColumnOf = Callable[[Leaf], Column | None]
"""The indexed column that a condition is about; None if there is none."""


def questions_of(condition: Condition, column_of: ColumnOf) -> Questions:
    """Return the questions that bound the rows for which a condition is true."""
    return _Reader(column_of).read(condition, wants_true=True)


def asked(questions: Questions) -> list[Question]:
    """Return the questions to be asked, in the order in which they are stated."""
    match questions:
        case Question():
            return [questions]
        case Opposite():
            return asked(questions.part)
        case Joined():
            return [each for part in questions.parts for each in asked(part)]
        case _:
            return []


@dataclass(frozen=True, slots=True)
class _Reader:
    column_of: ColumnOf

    def read(self, condition: Condition, *, wants_true: bool) -> Questions:
        match condition:
            case Not():
                inner = self.read(condition.part, wants_true=not wants_true)
                return UNASKED if inner is UNASKED else Opposite(part=inner)
            case And() | Or():
                return self._join(condition, wants_true=wants_true)
            case Constant():
                return Known(truth=condition.truth)
            case _:
                column = self.column_of(condition)
                return UNASKED if column is None else _question(column, [condition])

    def _join(self, condition: And | Or, *, wants_true: bool) -> Questions:
        is_and = isinstance(condition, And)
        leaves, others = self._leaves(condition.parts)
        read: list[Questions] = [self.read(part, wants_true=wants_true) for part in others]
        for column, some in leaves:
            read += _ranges(column, some) if is_and else [_question(column, [x]) for x in some]
        is_unknown = [part is UNASKED for part in read]
        needs_all = is_and != wants_true
        if all(is_unknown) or (needs_all and any(is_unknown)):
            return UNASKED
        return read[0] if len(read) == 1 else Joined(parts=tuple(read), is_and=is_and)

    def _leaves(
        self, parts: Sequence[Condition]
    ) -> tuple[list[tuple[Column, list[Leaf]]], list[Condition]]:
        """Return the conditions on indexed columns by column, and all others."""
        by_column: dict[tuple[str, ...], tuple[Column, list[Leaf]]] = {}
        others: list[Condition] = []
        for part in parts:
            column = None
            if not isinstance(part, And | Or | Not | Constant):
                column = self.column_of(part)
            if column is None or isinstance(part, And | Or | Not):
                others.append(part)
            else:
                by_column.setdefault(column.path, (column, []))[1].append(part)
        return list(by_column.values()), others


def column_of_leaf(leaf: Leaf) -> Column | None:
    """Return the one column that a condition with a typed column is about."""
    is_other = isinstance(leaf, Constant | ColumnComparison | SqlLeaf | PlannedLeaf)
    return None if is_other else leaf.column  # type: ignore[union-attr]  # the others have one


def _ranges(column: Column, leaves: Sequence[Leaf]) -> list[Questions]:
    """Return one question for all ranges among conditions, and one for each of the others."""
    ranges: list[Leaf] = []
    rest: list[Leaf] = []
    for leaf in leaves:
        (rest if _range(column, leaf) is None else ranges).append(leaf)
    others: list[Questions] = [_question(column, [leaf]) for leaf in rest]
    return [_question(column, ranges), *others] if ranges else others


def _question(column: Column, leaves: Sequence[Leaf]) -> Question:
    wanted: KeyRange | None = None
    for leaf in leaves:
        part = _range(column, leaf)
        wanted = part if wanted is None or part is None else wanted & part
    return Question(column=column, leaves=tuple(leaves), wanted=wanted)


def _range(column: Column, leaf: Leaf) -> KeyRange | None:
    is_plain = not isinstance(leaf, ListMatch | SqlLeaf)
    return range_of(leaf) if is_plain and has_order(column.dtype) else None
