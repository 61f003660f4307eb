"""The fragments of a version: decoded one by one, encoded anew only where they changed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Literal

from lancelake.format import fragment
from lancelake.format.fragment import Fragment
from lancelake.format.frozen import LazyTuple
from lancelake.format.ids import TOMBSTONE, FragmentId
from lancelake.proto import table_pb2

# The field id of a replaced column (-2) as it is encoded; other bytes may look the same.
_TOMBSTONE_BYTES = b"\xfe" + b"\xff" * 8 + b"\x01"

FileNumbers = tuple[int, int]
"""Major and minor version of a data file."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Traits:
    """What decides how a fragment is treated; there is one object of each kind."""

    file_numbers: frozenset[FileNumbers]
    has_several_files: bool
    lacks_file_size: bool
    may_have_tombstones: bool
    lacks_rows: bool
    lacks_deleted_rows: bool
    has_deletions: bool
    has_row_ids: bool
    is_empty: bool


class FragmentList(LazyTuple[table_pb2.DataFragment | None, Fragment]):
    """Behaves as the tuple of its fragments.

    A manifest may list 100,000 fragments of which a change touches one: what is asked about all
    of them is answered from their messages, and those untouched are written as they were read.
    """

    __slots__ = ("_ids", "_may_have_tombstones", "_traits", "_trust_counts")

    def __init__(
        self,
        messages: Sequence[table_pb2.DataFragment | None],
        *,
        trust_counts: bool = True,
        values: list[Fragment | None] | None = None,
        traits: list[Traits | None] | None = None,
        may_have_tombstones: bool = True,
    ) -> None:
        """List fragments, each given as a message, a value or both."""
        decode: Callable[[table_pb2.DataFragment | None], Fragment]
        decode = partial(_decode, trust_counts=trust_counts)
        super().__init__(messages, decode, values)
        self._trust_counts = trust_counts
        self._traits: list[Traits | None] = traits or [None] * len(messages)
        self._ids: list[FragmentId] | None = None
        self._may_have_tombstones = may_have_tombstones

    @classmethod
    def of(cls, fragments: Sequence[Fragment]) -> FragmentList:
        """List fragments that are given as values."""
        if isinstance(fragments, cls):
            return fragments
        return cls([None] * len(fragments), values=list(fragments))

    @property
    def ids(self) -> list[FragmentId]:
        """The ids of all fragments, in the order of the list."""
        if self._ids is None:
            pairs = zip(self._raw, self._values, strict=True)
            self._ids = [_id(message, value) for message, value in pairs]
        return self._ids

    @property
    def is_ascending(self) -> bool:
        """Whether each id is larger than the one before."""
        ids = self.ids
        return all(map(int.__lt__, ids, ids[1:]))

    def messages(self) -> list[table_pb2.DataFragment]:
        """Return the fragments as they are written."""
        if not self._trust_counts:
            return [fragment.encode(f) for f in self]
        return [self._message(i) if m is None else m for i, m in enumerate(self._raw)]

    def traits(self) -> frozenset[Traits]:
        """Return the traits that occur."""
        return frozenset(self._all_traits())

    def having(self, trait: Callable[[Traits], bool]) -> Iterator[Fragment]:
        """Yield the fragments with a trait; the others are not decoded."""
        wanted = {t for t in self.traits() if trait(t)}
        if wanted:
            yield from (self[i] for i, t in enumerate(self._all_traits()) if t in wanted)

    def live_rows(self) -> int | None:
        """Count the rows that are not deleted, None when a fragment does not say."""
        if not self._trust_counts:
            return None
        total = 0
        for message in self.messages():
            rows = message.physical_rows
            if not rows:
                return None
            if message.HasField("deletion_file"):
                deleted = message.deletion_file.num_deleted_rows
                if not deleted:
                    return None
                rows -= deleted
            total += rows
        return total

    def appended(self, added: Iterable[Fragment]) -> FragmentList:
        """Return the list with more fragments at its end."""
        if not self._trust_counts:
            return FragmentList.of((*self, *added))
        more = tuple(added)
        nothing = [None] * len(more)
        return FragmentList(
            [*self._raw, *nothing],
            values=[*self._values, *more],
            traits=[*self._traits, *nothing],
        )

    def exchanged(
        self, updated: Iterable[Fragment], *, removed: Collection[FragmentId] = ()
    ) -> FragmentList:
        """Return the list with fragments replaced by those of the same id, and without others."""
        by_id = {f.id: f for f in updated}
        gone = frozenset(removed)
        kept = [i for i, number in enumerate(self.ids) if number not in gone]
        return self.picked(kept, {i: by_id[n] for i in kept if (n := self.ids[i]) in by_id})

    def mapped(self, change: Callable[[Fragment], Fragment]) -> FragmentList:
        """Return the list with a change made to every fragment."""
        pairs = ((i, old, change(old)) for i, old in enumerate(self))
        changed = {i: new for i, old, new in pairs if new is not old}
        return self.picked(range(len(self)), changed)

    def without(self, dropped: Callable[[Traits], bool]) -> FragmentList:
        """Return the list without the fragments that have a trait."""
        gone = {t for t in self.traits() if dropped(t)}
        if not gone:
            return self
        return self.picked([i for i, t in enumerate(self._all_traits()) if t not in gone])

    def ordered(self) -> FragmentList:
        """Return the list sorted by id."""
        if self.is_ascending:
            return self
        return self.picked(sorted(range(len(self)), key=self.ids.__getitem__))

    def picked(
        self, positions: Sequence[int], changed: Mapping[int, Fragment] | None = None
    ) -> FragmentList:
        """Return the fragments at these positions, some of them exchanged for others."""
        new = changed or {}
        if not self._trust_counts:
            return FragmentList.of([new.get(i) or self[i] for i in positions])
        return FragmentList(
            [None if i in new else self._raw[i] for i in positions],
            values=[new[i] if i in new else self._values[i] for i in positions],
            traits=[None if i in new else self._traits[i] for i in positions],
        )

    def by_id(self) -> Mapping[FragmentId, Fragment]:
        """Give access to the fragments by id."""
        return _ById(self)

    def changed_since(self, before: FragmentList) -> list[Fragment]:
        """Return the fragments that are not the very same objects as before."""
        places = before.places()
        found = []
        for i, number in enumerate(self.ids):
            old = places.get(number)
            if old is None or not self._is_same(i, before, old):
                found.append(self[i])
        return found

    def places(self) -> dict[FragmentId, int]:
        """Return where in the list each id is."""
        return {number: i for i, number in enumerate(self.ids)}

    def _is_same(self, i: int, before: FragmentList, old: int) -> bool:
        message, value = self._raw[i], self._values[i]
        same_message = message is not None and message is before._raw[old]
        same_value = value is not None and value is before._values[old]
        return same_message or same_value

    def _message(self, i: int) -> table_pb2.DataFragment:
        message = self._raw[i]
        if message is None:
            message = self._raw[i] = fragment.encode(self[i])
        return message

    def _all_traits(self) -> list[Traits]:
        if not self._trust_counts:
            return [_traits_of(f) for f in self]
        if None in self._traits:
            for i, known in enumerate(self._traits):
                if known is None:
                    self._traits[i] = self._traits_at(i)
        return self._traits  # type: ignore[return-value]  # all are known now

    def _traits_at(self, i: int) -> Traits:
        message = self._raw[i]
        if message is None:
            return _traits_of(self[i])
        return _traits(message, look_for_tombstones=self._may_have_tombstones)


class _ById(Mapping[FragmentId, Fragment]):
    """Fragments by id; only those asked for are decoded."""

    __slots__ = ("_list", "_places")

    def __init__(self, fragments: FragmentList) -> None:
        self._list = fragments
        self._places = fragments.places()

    def __getitem__(self, key: FragmentId) -> Fragment:
        return self._list[self._places[key]]

    def __contains__(self, key: object) -> bool:
        return key in self._places

    def __iter__(self) -> Iterator[FragmentId]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def _decode(message: table_pb2.DataFragment | None, *, trust_counts: bool) -> Fragment:
    if message is None:
        raise LookupError("a fragment has neither a message nor a value")
    return fragment.decode(message, trust_counts=trust_counts)


def _id(message: table_pb2.DataFragment | None, value: Fragment | None) -> FragmentId:
    if value is not None:
        return value.id
    return FragmentId(0 if message is None else message.id)


def may_hold_tombstones(encoded: bytes) -> bool:
    """Whether encoded fragments may list a column that was replaced."""
    return _TOMBSTONE_BYTES in encoded


_Deleted = Literal["none", "counted", "uncounted"]


def _traits(message: table_pb2.DataFragment, *, look_for_tombstones: bool) -> Traits:
    fragment.ensure_understood(message)
    rows, count = message.physical_rows, None
    if message.HasField("deletion_file"):
        count = message.deletion_file.num_deleted_rows
    files = [
        (f.file_major_version, f.file_minor_version, not f.file_size_bytes) for f in message.files
    ]
    return _interned(
        tuple(files),
        look_for_tombstones and may_hold_tombstones(message.SerializeToString()),
        not rows,
        "none" if count is None else "counted" if count else "uncounted",
        bool(rows) and rows == count,
        message.HasField("inline_row_ids") or message.HasField("external_row_ids"),
    )


def _traits_of(value: Fragment) -> Traits:
    """Return the traits of a value, which tells no rows from an unknown number of them."""
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
