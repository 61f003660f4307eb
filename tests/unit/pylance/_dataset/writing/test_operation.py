"""Lossless conversion between operations of the format and public operations."""

from __future__ import annotations

import pickle
from dataclasses import replace
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancelake.errors import InvalidRequestError, UnsupportedError
from lancelake.format import operations
from lancelake.format.frozen import FrozenMap
from lancelake.format.operations import ExactKeys, KeyExistenceFilter, RewrittenIndex, UpdateMode
from lancelake.pylance._dataset.arguments import DatasetBasePath
from lancelake.pylance._dataset.transactions import LanceOperation, from_operation, to_operation
from lancelake.pylance._values.fragment_metadata import DataFile, FragmentMetadata
from lancelake.pylance.schema import LanceSchema, to_schema
from tests.strategies.format_operations import BY_KIND
from tests.strategies.index_entries import well_formed

ARROW = pa.schema([pa.field("a", pa.int32())])
KINDS = BY_KIND | {
    operations.CreateIndex: st.builds(
        operations.CreateIndex,
        new_indices=st.lists(well_formed(), max_size=2).map(tuple),
        removed_indices=st.lists(well_formed(), max_size=2).map(tuple),
        unknown=st.just(b""),
    )
}
EVERY = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
SHOWN_AS_BASE = (
    operations.ReserveFragments,
    operations.UpdateBases,
    operations.UpdateMemWalState,
    operations.UnknownOperation,
)


@EVERY
@given(data=st.data())
def test_an_operation_of_the_format_comes_back_whole(kind, data):
    operation = data.draw(KINDS[kind])

    assert to_operation(from_operation(operation)) == operation


@EVERY
@given(data=st.data())
def test_pickle_keeps_everything(kind, data):
    operation = data.draw(KINDS[kind])

    assert to_operation(pickle.loads(pickle.dumps(from_operation(operation)))) == operation


@EVERY
@given(data=st.data())
def test_an_operation_is_shown_by_the_class_of_its_name(kind, data):
    shown = from_operation(data.draw(KINDS[kind]))

    expected = "BaseOperation" if kind in SHOWN_AS_BASE else kind.__name__
    assert type(shown).__name__ == expected


def test_a_changed_value_is_written():
    shown = from_operation(
        operations.Delete(updated_fragments=(), deleted_fragment_ids=(), predicate="a")
    )
    shown.predicate = "b"

    assert to_operation(shown).predicate == "b"


def test_an_overwrite_keeps_the_config_it_sets():
    schema = to_schema(ARROW)
    operation = operations.Overwrite(
        fragments=(), schema=schema, config_upsert_values=FrozenMap({"k": "v"})
    )

    changed = replace(from_operation(operation), fragments=[FragmentMetadata(1, [], 2)])

    assert to_operation(changed).config_upsert_values == {"k": "v"}


def test_an_update_keeps_the_keys_it_inserted():
    keys = KeyExistenceFilter(field_ids=(0,), keys=ExactKeys(key_hashes=(1,)))

    shown = from_operation(operations.Update(inserted_rows=keys))

    assert to_operation(shown).inserted_rows == keys


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("rewrite_rows", UpdateMode.REWRITE_ROWS),
        ("rewrite_columns", UpdateMode.REWRITE_COLUMNS),
        ("", UpdateMode.REWRITE_ROWS),
        ("anything", UpdateMode.REWRITE_ROWS),
    ],
)
def test_an_update_rewrites_rows_unless_it_says_otherwise(text, mode):
    assert to_operation(LanceOperation.Update(update_mode=text)).update_mode is mode


OFFSETS = b":0\x00\x00\x01\x00\x00\x00\x00\x00\x01\x00\x10\x00\x00\x00\x00\x00\x01\x00"


def test_rows_that_an_update_touched_are_shown():
    unknown = b"R\x18\x08\x01\x12\x14" + OFFSETS

    shown = from_operation(operations.Update(unknown=unknown))

    assert shown.updated_fragment_offsets == {1: OFFSETS}
    assert to_operation(shown).unknown == unknown


def test_rows_that_an_update_touched_can_be_set():
    made = to_operation(LanceOperation.Update(updated_fragment_offsets={1: OFFSETS}))

    assert from_operation(made).updated_fragment_offsets == {1: OFFSETS}


def test_rows_that_a_recorded_update_touched_cannot_be_changed():
    shown = from_operation(operations.Update(unknown=b"R\x18\x08\x01\x12\x14" + OFFSETS))
    shown.updated_fragment_offsets = None

    with pytest.raises(UnsupportedError):
        to_operation(shown)


def test_a_data_overlay_is_refused():
    file = LanceOperation.DataOverlayFile(DataFile("a", [0]), [1, 2])
    group = LanceOperation.DataOverlayGroup(1, [file])

    with pytest.raises(UnsupportedError):
        to_operation(LanceOperation.DataOverlay([group]))


def test_a_base_operation_made_by_hand_is_refused():
    with pytest.raises(InvalidRequestError, match="BaseOperation"):
        to_operation(LanceOperation.BaseOperation())


def test_an_overwrite_made_by_hand_becomes_one_of_the_format():
    base = DatasetBasePath("s3://b", "n", False, 2)

    made = to_operation(LanceOperation.Overwrite(ARROW, [FragmentMetadata(1, [], 2)], [base]))

    assert made.schema == to_schema(ARROW)
    assert [fragment.id for fragment in made.fragments] == [1]
    assert [(b.id, b.name, b.path) for b in made.initial_bases] == [(2, "n", "s3://b")]


def test_a_merge_made_by_hand_becomes_one_of_the_format():
    schema = LanceSchema.from_pyarrow(ARROW)

    made = to_operation(LanceOperation.Merge([], schema, preserves_nullability=True))

    assert made == operations.Merge(
        fragments=(), schema=to_schema(ARROW), preserves_nullability=True
    )


def test_a_rewritten_index_made_by_hand_becomes_one_of_the_format():
    old, new = str(UUID(int=1)), str(UUID(int=2))
    index = LanceOperation.RewrittenIndex(old, new, "", b"", 3)

    (made,) = to_operation(LanceOperation.Rewrite([], [index])).rewritten_indices

    assert made == RewrittenIndex(old_id=UUID(old), new_id=UUID(new), new_index_version=3)


def test_a_rewritten_index_needs_uuids():
    index = LanceOperation.RewrittenIndex("x", "y", "", b"", 3)

    with pytest.raises(InvalidRequestError):
        to_operation(LanceOperation.Rewrite([], [index]))


def test_fields_without_an_update_are_left_alone():
    shown = LanceOperation.UpdateConfig(
        field_metadata_updates={1: LanceOperation.UpdateMap({"k": "v"}, replace=True), 2: None}
    )

    made = to_operation(shown)

    assert list(made.field_metadata) == [1]
    assert made.field_metadata[1].replace
