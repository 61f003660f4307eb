"""Fragments of a version, decoded on access and encoded only where they changed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import overload

from lancelake.format import fragment, fragment_traits
from lancelake.format.fragment import Fragment
from lancelake.format.fragment_traits import Survey, Traits
from lancelake.format.ids import FragmentId
from lancelake.proto import columns_pb2, table_pb2


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
        known = self._surveyed()
        if known is not None:
            return known.live_rows
        counts = [f.live_rows for f in self]
        return None if None in counts else sum(c or 0 for c in counts)

    def appended(self, added: Iterable[Fragment]) -> FragmentList:
        """Return the list with more fragments at its end."""
        more = tuple(added)
        return FragmentList(
            [*self._values, *more],
            encoded=self.encoded() + _joined(_payload(f) for f in more),
            traits=[*self._all_traits(), *(fragment_traits.of(f) for f in more)],
            ids=[*self.ids, *(f.id for f in more)],
        )

    def exchanged(
        self, updated: Iterable[Fragment], *, removed: Collection[FragmentId] = ()
    ) -> FragmentList:
        """Return the list with fragments replaced by id, and without the removed ones."""
        by_id = {f.id: f for f in updated}
        gone = frozenset(removed)
        kept = [i for i, number in enumerate(self.ids) if number not in gone]
        return self._picked(kept, {i: by_id[n] for i in kept if (n := self.ids[i]) in by_id})

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
        known = frozenset(before.payloads())
        return [self._at(i) for i, data in enumerate(self.payloads()) if data not in known]

    def _at(self, position: int) -> Fragment:
        value = self._values[position]
        if value is None:
            message = table_pb2.DataFragment.FromString(self.payloads()[position])
            value = self._values[position] = fragment.decode(message)
        return value

    def _picked(self, positions: Sequence[int], changed: Mapping[int, Fragment]) -> FragmentList:
        if not changed and len(positions) == len(self) and positions == range(len(self)):
            return self
        new = {i: (f, _payload(f), fragment_traits.of(f)) for i, f in changed.items()}
        payloads, traits = self.payloads(), self._all_traits()
        return FragmentList(
            [new[i][0] if i in new else self._values[i] for i in positions],
            payloads=[new[i][1] if i in new else payloads[i] for i in positions],
            traits=[new[i][2] if i in new else traits[i] for i in positions],
            ids=[new[i][0].id if i in new else self.ids[i] for i in positions],
        )

    def _all_traits(self) -> list[Traits]:
        if self._traits is None:
            known = self._surveyed()
            if known is None and self._is_given:
                self._traits = [fragment_traits.of(f) for f in self]
            elif known is None or known.apart_from_deletions is None or known.some_have_deletions:
                self._traits = fragment_traits.of_each(self.payloads(), known)
            else:
                self._traits = [known.apart_from_deletions] * len(self)
        return self._traits

    def _read_ids(self) -> list[FragmentId]:
        known = self._surveyed()
        if known is None or known.ids is None:
            return [f.id for f in self]
        return known.ids

    def _surveyed(self) -> Survey | None:
        if self._survey is None and not self._is_given:
            self._survey = fragment_traits.survey(self.encoded(), self.payloads())
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


def _payload(value: Fragment) -> bytes:
    return fragment.encode(value).SerializeToString(deterministic=True)


def _joined(payloads: Iterable[bytes]) -> bytes:
    return columns_pb2.FragmentPayloads(fragments=payloads).SerializeToString()
