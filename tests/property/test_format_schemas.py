"""Arrow schemas survive the conversion to table schemas and back."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lancelake.format import logical_types
from lancelake.format.arrow_schema import from_arrow, public_schema, storage_schema
from lancelake.format.schema import decode_schema, encode_schema
from tests.strategies.arrow_types import arrow_types
from tests.strategies.tables import schemas
from tests.strategies.target import Target

WIDEST = Target(release="14.0.2", file_version="2.2")


def is_flat(dtype: pa.DataType) -> bool:
    is_extension = isinstance(dtype, pa.BaseExtensionType)
    return not is_extension and (
        not pa.types.is_nested(dtype) or pa.types.is_fixed_size_list(dtype)
    )


@given(arrow_types(WIDEST).filter(is_flat))
def test_a_type_has_a_name_that_stands_for_it(dtype):
    name = logical_types.from_arrow(dtype)

    assert logical_types.from_arrow(logical_types.to_arrow(name)) == name


@given(schemas(WIDEST))
def test_a_public_schema_makes_the_same_table_schema_again(schema):
    made = from_arrow(schema)

    assert from_arrow(public_schema(made)) == made


@given(schemas(WIDEST))
def test_a_storage_schema_makes_the_same_table_schema_again(schema):
    made = from_arrow(schema)

    assert from_arrow(storage_schema(made)) == made


@given(schemas(WIDEST))
def test_a_table_schema_is_read_as_it_was_written(schema):
    made = from_arrow(schema)

    assert decode_schema(encode_schema(made), made.metadata) == made


@given(schemas(WIDEST), st.integers(0, 1000))
def test_ids_are_those_from_the_first_on(schema, first_id):
    ids = [node.id for node in from_arrow(schema, first_id=first_id).walk()]

    assert ids == list(range(first_id, first_id + len(ids)))


@given(schemas(WIDEST))
def test_names_nullability_and_metadata_of_columns_come_back(schema):
    shown = public_schema(from_arrow(schema))

    assert [(f.name, f.nullable) for f in shown] == [(f.name, f.nullable) for f in schema]
    assert (shown.metadata or {}) == (schema.metadata or {})
