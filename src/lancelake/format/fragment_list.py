"""Fragments of a version, in columns, and their totals."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, overload

from google.protobuf.message import DecodeError

from lancelake.format import fragment
from lancelake.format.fragment import Fragment
from lancelake.format.ids import MAX_FRAGMENT_ID, MAX_ROWS, TOMBSTONE, FragmentId
from lancelake.proto import columns_pb2, table_pb2

# The encoded field id of a replaced column (-2); other bytes may be the same.
_TOMBSTONE_BYTES = b"\xfe" + b"\xff" * 8 + b"\x01"

FileNumbers = tuple[int, int]
"""Major and minor version of a data file."""

_Deleted = Literal["none", "counted", "uncounted"]
_Columns = columns_pb2.FragmentColumns.Fragments


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Traits:
    """Traits of a fragment; equal traits are one object."""

    file_numbers: frozenset[FileNumbers]
    has_several_files: bool
    lacks_file_size: bool
    may_have_tombstones: bool
    lacks_rows: bool
    lacks_deleted_rows: bool
    has_deletions: bool
    has_row_ids: bool
    is_empty: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """Traits of many fragments; None where each must be inspected.

    `apart_from_deletions` are the traits of all fragments without the deletions of some.
    """

    ids: list[FragmentId] | None
    live_rows: int | None
    apart_from_deletions: Traits | None
    some_have_deletions: bool


def survey(encoded: bytes, payloads: list[bytes]) -> Survey | None:
    """Inspect encoded fragments column by column; None when they cannot be read this way."""
    try:
        columns = columns_pb2.FragmentColumns.FromString(encoded).fragments
    except DecodeError:
        return None
    rows = list(columns.physical_rows)
    deleted = [table_pb2.DeletionFile.FromString(d).num_deleted_rows for d in columns.deletion_file]
    has_all_rows = len(rows) == len(payloads) and min(rows, default=1) > 0
    is_counted = has_all_rows and min(deleted, default=1) > 0
    is_addressable = max(rows, default=0) <= MAX_ROWS
    return Survey(
        ids=_ids(columns, payloads),
        live_rows=sum(rows) - sum(deleted) if is_counted else None,
        apart_from_deletions=_common(columns, len(payloads), tombstones=_mentioned(encoded))
        if has_all_rows and is_addressable
        else None,
        some_have_deletions=bool(deleted),
    )


def of_each(payloads: Iterable[bytes], columns: Survey | None) -> list[Traits]:
    """Return the traits of encoded fragments one by one."""
    common = None if columns is None else columns.apart_from_deletions
    traits = []
    for payload in payloads:
        message = table_pb2.DataFragment.FromString(payload)
        if common is not None and not message.HasField("deletion_file"):
            traits.append(common)
        else:
            traits.append(_of_message(message, payload))
    return traits


def of(value: Fragment) -> Traits:
    """Return the traits of a value, in which zero rows differ from an unknown count."""
    lacks_count = value.num_deleted_rows is None
    files = [
        (f.file_major_version, f.file_minor_version, f.file_size_bytes is None) for f in value.files
    ]
    return _interned(
        tuple(files),
        any(TOMBSTONE in f.fields for f in value.files),
        value.physical_rows is None,
        "none" if value.deletion_file is None else "uncounted" if lacks_count else "counted",
        value.live_rows == 0,
        value.row_ids is not None,
    )


def _of_message(message: table_pb2.DataFragment, payload: bytes) -> Traits:
    fragment.ensure_understood(message)
    rows, count = message.physical_rows, None
    if message.HasField("deletion_file"):
        count = message.deletion_file.num_deleted_rows
    files = [
        (f.file_major_version, f.file_minor_version, not f.file_size_bytes) for f in message.files
    ]
    return _interned(
        tuple(files),
        _mentioned(payload),
        not rows,
        "none" if count is None else "counted" if count else "uncounted",
        bool(rows) and rows == count,
        message.HasField("inline_row_ids") or message.HasField("external_row_ids"),
    )


def _mentioned(encoded: bytes) -> bool:
    return _TOMBSTONE_BYTES in encoded


def _ids(columns: _Columns, payloads: list[bytes]) -> list[FragmentId] | None:
    # The value 0 is not encoded, so it can only be recognized when it is the first.
    ids = [FragmentId(i) for i in columns.id]
    starts_at_zero = (
        len(ids) == len(payloads) - 1 and table_pb2.DataFragment.FromString(payloads[0]).id == 0
    )
    if starts_at_zero:
        ids.insert(0, FragmentId(0))
    return ids if len(ids) == len(payloads) and max(ids, default=0) <= MAX_FRAGMENT_ID else None


def _common(columns: _Columns, count: int, *, tombstones: bool) -> Traits | None:
    """Return the traits of fragments of one file each, all of the same version and complete."""
    files = columns.files
    numbers = {*zip(files.file_major_version, files.file_minor_version, strict=False)}
    counts = {len(files.path), len(files.file_major_version), len(files.file_minor_version)}
    sizes = list(files.file_size_bytes)
    row_ids = len(columns.inline_row_ids) + len(columns.external_row_ids)
    is_common = (
        not tombstones
        and counts == {count}
        and len(numbers) == 1
        and len(sizes) == count
        and min(sizes, default=0) > 0
        and row_ids in (0, count)
    )
    if not is_common:
        return None
    ((major, minor),) = numbers
    return _interned(((major, minor, False),), False, False, "none", False, row_ids > 0)


@cache
def _interned(
    files: tuple[tuple[int, int, bool], ...],
    tombstones: bool,
    lacks_rows: bool,
    deleted: _Deleted,
    is_empty: bool,
    has_row_ids: bool,
) -> Traits:
    return Traits(
        file_numbers=frozenset((major, minor) for major, minor, _ in files),
        has_several_files=len(files) > 1,
        lacks_file_size=any(lacks for *_, lacks in files),
        may_have_tombstones=tombstones,
        lacks_rows=lacks_rows,
        lacks_deleted_rows=deleted == "uncounted",
        has_deletions=deleted != "none",
        has_row_ids=has_row_ids,
        is_empty=is_empty,
    )


# Those with row ids of their own may be long.
_MOST_CACHED_BYTES = 512
_CACHED = 4096


class FragmentList(Sequence[Fragment]):
    """Sequence of fragments, used like a tuple.

    A manifest may list 100,000 fragments of which a change affects one: questions about all of
    them are answered from their bytes, and unchanged ones are written as they were read.
    """

    __slots__ = (
        "_encoded",
        "_ids",
        "_is_given",
        "_payloads",
        "_places",
        "_survey",
        "_traits",
        "_values",
    )

    def __init__(
        self,
        values: list[Fragment | None],
        *,
        encoded: bytes | None = None,
        payloads: list[bytes] | None = None,
        traits: list[Traits] | None = None,
        ids: list[FragmentId] | None = None,
    ) -> None:
        """Create a list; fragments without a value are in `encoded` or in `payloads`."""
        self._values = values
        # Values have more information than their encoding.
        self._is_given = encoded is None and payloads is None
        self._encoded = encoded
        self._payloads = payloads
        self._traits = traits
        self._ids = ids
        self._survey: Survey | None = None
        self._places: dict[FragmentId, int] | None = None

    @classmethod
    def of(cls, fragments: Sequence[Fragment]) -> FragmentList:
        """Create a list of fragment values."""
        return fragments if isinstance(fragments, cls) else cls(list(fragments))

    @classmethod
    def in_manifest(cls, body: bytes) -> FragmentList:
        """Create the list of an encoded manifest."""
        only = columns_pb2.FragmentPayloads.FromString(body)
        only.DiscardUnknownFields()
        return cls([None] * len(only.fragments), encoded=only.SerializeToString())

    @overload
    def __getitem__(self, index: int) -> Fragment: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Fragment, ...]: ...
    def __getitem__(self, index: int | slice) -> Fragment | tuple[Fragment, ...]:
        if isinstance(index, slice):
            return tuple(self._at(i) for i in range(*index.indices(len(self))))
        return self._at(range(len(self))[index])

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[Fragment]:
        return (self._at(i) for i in range(len(self)))

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, Sequence) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))

    def __reduce__(self) -> tuple[type[tuple[Fragment, ...]], tuple[tuple[Fragment, ...]]]:
        return (tuple, (tuple(self),))

    @property
    def ids(self) -> list[FragmentId]:
        """Ids of all fragments, in list order."""
        if self._ids is None:
            self._ids = self._read_ids()
        return self._ids

    @property
    def is_ascending(self) -> bool:
        """Whether each id is larger than the one before."""
        return all(map(int.__lt__, self.ids, self.ids[1:]))

    def encoded(self) -> bytes:
        """Return the fragments as encoded in a manifest."""
        if self._encoded is None:
            self._encoded = _joined(self.payloads())
        return self._encoded

    def payloads(self) -> list[bytes]:
        """Return the fragments, each encoded."""
        if self._payloads is None:
            if self._encoded is None:
                self._payloads = [_payload(f) for f in self]
            else:
                self._payloads = list(
                    columns_pb2.FragmentPayloads.FromString(self._encoded).fragments
                )
        return self._payloads

    def traits(self) -> frozenset[Traits]:
        """Return the traits that occur."""
        return frozenset(self._all_traits())

    def having(self, trait: Callable[[Traits], bool]) -> Iterator[Fragment]:
        """Yield the fragments with a trait; the others are not decoded."""
        wanted = {t for t in self.traits() if trait(t)}
        if wanted:
            yield from (self._at(i) for i, t in enumerate(self._all_traits()) if t in wanted)

    def live_rows(self) -> int | None:
        """Count the live rows, None when a fragment does not state its count."""
        columns = self._surveyed()
        if columns is not None:
            return columns.live_rows
        counts = [f.live_rows for f in self]
        return None if None in counts else sum(c or 0 for c in counts)

    def appended(self, added: Iterable[Fragment]) -> FragmentList:
        """Return the list with more fragments at its end."""
        more = tuple(added)
        return FragmentList(
            [*self._values, *more],
            encoded=self.encoded() + _joined(_payload(f) for f in more),
            traits=[*self._all_traits(), *(of(f) for f in more)],
            ids=[*self.ids, *(f.id for f in more)],
        )

    def exchanged(
        self, updated: Iterable[Fragment], *, removed: Collection[FragmentId] = ()
    ) -> FragmentList:
        """Return the list with fragments replaced by id, and without the removed ones."""
        by_id = {f.id: f for f in updated}
        gone = frozenset(removed)
        positions = [i for i, number in enumerate(self.ids) if number not in gone]
        return self._picked(
            positions, {i: by_id[n] for i in positions if (n := self.ids[i]) in by_id}
        )

    def mapped(self, change: Callable[[Fragment], Fragment]) -> FragmentList:
        """Return the list with a change made to every fragment."""
        pairs = ((i, old, change(old)) for i, old in enumerate(self))
        changed = {i: new for i, old, new in pairs if new is not old}
        return self._picked(range(len(self)), changed)

    def without(self, dropped: Callable[[Traits], bool]) -> FragmentList:
        """Return the list without the fragments that have a trait."""
        gone = {t for t in self.traits() if dropped(t)}
        if not gone:
            return self
        return self._picked([i for i, t in enumerate(self._all_traits()) if t not in gone], {})

    def ordered(self) -> FragmentList:
        """Return the list sorted by id."""
        if self.is_ascending:
            return self
        return self._picked(sorted(range(len(self)), key=self.ids.__getitem__), {})

    def by_id(self) -> Mapping[FragmentId, Fragment]:
        """Give access to the fragments by id."""
        if self._places is None:
            self._places = dict(zip(self.ids, range(len(self)), strict=True))
        return _ById(self, self._places)

    def changed_since(self, before: FragmentList) -> list[Fragment]:
        """Return the fragments that are new or changed since `before`."""
        if self.encoded().startswith(before.encoded()):
            return [self._at(i) for i in range(len(before), len(self))]
        payloads = frozenset(before.payloads())
        return [self._at(i) for i, data in enumerate(self.payloads()) if data not in payloads]

    def _at(self, position: int) -> Fragment:
        value = self._values[position]
        if value is None:
            payload = self.payloads()[position]
            decode = _decoded if len(payload) <= _MOST_CACHED_BYTES else _decode
            value = self._values[position] = decode(payload)
        return value

    def _picked(self, positions: Sequence[int], changed: Mapping[int, Fragment]) -> FragmentList:
        if not changed and len(positions) == len(self) and positions == range(len(self)):
            return self
        new = {i: (f, _payload(f), of(f)) for i, f in changed.items()}
        payloads, traits = self.payloads(), self._all_traits()
        return FragmentList(
            [new[i][0] if i in new else self._values[i] for i in positions],
            payloads=[new[i][1] if i in new else payloads[i] for i in positions],
            traits=[new[i][2] if i in new else traits[i] for i in positions],
            ids=[new[i][0].id if i in new else self.ids[i] for i in positions],
        )

    def _all_traits(self) -> list[Traits]:
        if self._traits is None:
            columns = self._surveyed()
            if columns is None and self._is_given:
                self._traits = [of(f) for f in self]
            elif (
                columns is None
                or columns.apart_from_deletions is None
                or columns.some_have_deletions
            ):
                self._traits = of_each(self.payloads(), columns)
            else:
                self._traits = [columns.apart_from_deletions] * len(self)
        return self._traits

    def _read_ids(self) -> list[FragmentId]:
        columns = self._surveyed()
        if columns is None or columns.ids is None:
            return [f.id for f in self]
        return columns.ids

    def _surveyed(self) -> Survey | None:
        if self._survey is None and not self._is_given:
            self._survey = survey(self.encoded(), self.payloads())
        return self._survey


class _ById(Mapping[FragmentId, Fragment]):
    """Fragments by id, decoded on access."""

    __slots__ = ("_list", "_places")

    def __init__(self, fragments: FragmentList, places: dict[FragmentId, int]) -> None:
        self._list = fragments
        self._places = places

    def __getitem__(self, key: FragmentId) -> Fragment:
        return self._list[self._places[key]]

    def __contains__(self, key: object) -> bool:
        return key in self._places

    def __iter__(self) -> Iterator[FragmentId]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


@functools.lru_cache(maxsize=_CACHED)
def _decoded(payload: bytes) -> Fragment:
    """Decode a fragment; versions that have it share it, and what is cached for it."""
    return _decode(payload)


def _decode(payload: bytes) -> Fragment:
    return fragment.decode(table_pb2.DataFragment.FromString(payload))


def _payload(value: Fragment) -> bytes:
    return fragment.encode(value).SerializeToString(deterministic=True)


def _joined(payloads: Iterable[bytes]) -> bytes:
    return columns_pb2.FragmentPayloads(fragments=payloads).SerializeToString()
