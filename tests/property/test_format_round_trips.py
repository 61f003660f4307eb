"""Every value is read as it was written, with unknown fields of newer writers."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancelake.format import fragment, index_meta, refs
from lancelake.format import operations as ops
from lancelake.format.manifest import decode_manifest, encode_manifest
from lancelake.format.operations import UnknownOperation, decode_transaction, encode_transaction
from lancelake.format.schema import decode_schema, encode_schema
from tests.strategies import format_operations
from tests.strategies import format_values as values

KINDS = sorted(format_operations.BY_KIND, key=lambda kind: kind.__name__)
FROM_THE_FUTURE = UnknownOperation(tag=115, data=b"\x9a\x07\x03abc")


@given(values.manifests(), st.none() | values.blob, st.none() | values.blob)
def test_a_manifest_file_is_read_as_it_was_written(manifest, section, inline):
    data = encode_manifest(manifest, index_section=section, transaction=inline)
    found = decode_manifest(data)

    assert (found.manifest, found.index_section, found.inline_transaction) == (
        manifest,
        section,
        inline,
    )


@given(values.manifests())
def test_a_manifest_is_the_same_after_pickling(manifest):
    found = decode_manifest(encode_manifest(manifest)).manifest

    assert pickle.loads(pickle.dumps(found)) == manifest


@given(values.manifests())
def test_equal_manifests_have_equal_hashes(manifest):
    found = decode_manifest(encode_manifest(manifest)).manifest

    assert hash(found) == hash(manifest)


@given(values.schemas())
def test_a_schema_is_read_as_it_was_written(schema):
    assert decode_schema(encode_schema(schema), schema.metadata) == schema


@given(values.fragments())
def test_a_fragment_is_read_as_it_was_written(value):
    assert fragment.decode(fragment.encode(value)) == value


@given(values.data_files())
def test_a_data_file_is_read_as_it_was_written(value):
    assert fragment.decode_data_file(fragment.encode_data_file(value)) == value


@given(values.base_paths())
def test_a_base_path_is_read_as_it_was_written(value):
    assert fragment.BASE.decode(fragment.BASE.encode(value)) == value


@given(values.tuples(values.index_entries()))
def test_an_index_section_is_read_as_it_was_written(value):
    assert index_meta.decode_section(index_meta.encode_section(value)) == value


@given(values.key_filters())
def test_a_key_filter_is_read_as_it_was_written(value):
    assert ops.decode_keys(ops.encode_keys(value)) == value


@given(values.merged_generations())
def test_a_merged_generation_is_read_as_it_was_written(value):
    assert index_meta.MERGED_GENERATION.decode(index_meta.MERGED_GENERATION.encode(value)) == value


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@given(data=st.data())
def test_a_transaction_is_read_as_it_was_written(kind, data):
    value = data.draw(format_operations.transactions(format_operations.BY_KIND[kind]))

    assert decode_transaction(encode_transaction(value)) == value


@given(format_operations.transactions(st.just(FROM_THE_FUTURE)))
def test_a_transaction_of_a_newer_release_is_written_as_it_was(value):
    data = encode_transaction(value)

    assert encode_transaction(decode_transaction(data)) == data


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@given(data=st.data())
def test_an_operation_is_the_same_after_pickling(kind, data):
    value = data.draw(format_operations.BY_KIND[kind])

    assert pickle.loads(pickle.dumps(value)) == value


@given(values.tags())
def test_a_tag_is_read_as_it_was_written(value):
    assert refs.decode_tag(refs.encode_tag(value)) == value


@given(values.branches())
def test_a_branch_is_read_as_it_was_written(value):
    assert refs.decode_branch(refs.encode_branch(value)) == value
