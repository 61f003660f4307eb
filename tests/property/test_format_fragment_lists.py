"""Lists of encoded fragments behave like tuples of fragments."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from dataclasses import astuple, replace

from hypothesis import given
from hypothesis import strategies as st

from lancelake.format import fragment, fragment_list
from lancelake.format.fragment import DataFile, Fragment
from lancelake.format.fragment_list import FragmentList, Traits
from lancelake.format.ids import TOMBSTONE, FieldId, FragmentId
from lancelake.proto import table_pb2
from tests.strategies.format_values import fragments

PLAIN = Fragment(
    id=FragmentId(0),
    files=(
        DataFile(
            path="data.lance",
            fields=(FieldId(0),),
            column_indices=(0,),
            file_major_version=2,
            file_minor_version=1,
            file_size_bytes=10,
        ),
    ),
    physical_rows=5,
)


@st.composite
def lists(draw: st.DrawFn) -> tuple[Fragment, ...]:
    """Draw fragments, most of them plain as in most tables."""
    found = draw(st.lists(st.one_of(st.just(PLAIN), fragments()), max_size=6))
    ids = draw(st.lists(st.integers(0, 300), min_size=6, max_size=6, unique=True))
    if draw(st.booleans()):
        ids.sort()
    return tuple(replace(f, id=FragmentId(i)) for f, i in zip(found, ids, strict=False))


def read(values: tuple[Fragment, ...]) -> FragmentList:
    """Return the list as a manifest that lists these fragments gives it."""
    message = table_pb2.Manifest(fragments=[fragment.encode(f) for f in values], version=3)
    return FragmentList.in_manifest(message.SerializeToString())


def facts(traits: Iterable[Traits]) -> set[tuple[object, ...]]:
    """Return traits apart from what is only a suspicion."""
    return {astuple(replace(t, may_have_tombstones=False)) for t in traits}


@given(lists())
def test_it_holds_what_was_written(values: tuple[Fragment, ...]) -> None:
    assert read(values) == values


@given(lists())
def test_it_is_pickled_as_its_fragments(values: tuple[Fragment, ...]) -> None:
    assert pickle.loads(pickle.dumps(read(values))) == values


@given(lists())
def test_it_knows_the_ids(values: tuple[Fragment, ...]) -> None:
    assert read(values).ids == [f.id for f in values]


@given(lists())
def test_it_counts_the_rows(values: tuple[Fragment, ...]) -> None:
    counts = [f.live_rows for f in values]
    assert read(values).live_rows() == (None if None in counts else sum(c or 0 for c in counts))


@given(lists())
def test_it_knows_the_traits_of_each(values: tuple[Fragment, ...]) -> None:
    assert facts(read(values).traits()) == facts(fragment_list.of(f) for f in values)


@given(lists())
def test_it_overlooks_no_tombstone(values: tuple[Fragment, ...]) -> None:
    has_tombstones = any(TOMBSTONE in file.fields for f in values for file in f.files)
    may_have = any(t.may_have_tombstones for t in read(values).traits())
    assert may_have or not has_tombstones


@given(lists(), lists())
def test_it_grows_as_a_tuple(values: tuple[Fragment, ...], more: tuple[Fragment, ...]) -> None:
    grown = read(values).appended(more)
    assert grown == (*values, *more)
    assert grown.encoded() == read((*values, *more)).encoded()


@given(lists(), st.data())
def test_fragments_are_exchanged_by_id(values: tuple[Fragment, ...], data: st.DataObject) -> None:
    some = st.sets(st.sampled_from([f.id for f in values])) if values else st.just(set())
    updated = [replace(PLAIN, id=i) for i in sorted(data.draw(some))]
    removed = data.draw(some)
    new = {f.id: f for f in updated}
    expected = tuple(new.get(f.id, f) for f in values if f.id not in removed)
    after = read(values).exchanged(updated, removed=removed)
    assert after == expected
    assert after.encoded() == read(expected).encoded()
    assert facts(after.traits()) == facts(fragment_list.of(f) for f in expected)
    assert after.ids == [f.id for f in expected]


@given(lists())
def test_it_is_sorted_by_id(values: tuple[Fragment, ...]) -> None:
    assert read(values).ordered() == tuple(sorted(values, key=lambda f: f.id))


@given(lists(), lists())
def test_it_returns_what_was_absent_before(
    values: tuple[Fragment, ...], others: tuple[Fragment, ...]
) -> None:
    before = read(values)
    assert before.appended(others).changed_since(before) == list(others)
    assert read(others).changed_since(before) == [f for f in others if f not in values]


@given(lists())
def test_fragments_are_found_by_id(values: tuple[Fragment, ...]) -> None:
    assert dict(read(values).by_id()) == {f.id: f for f in values}
