"""Add fields to structs, also inside lists and maps, null in every row."""

from __future__ import annotations

import pyarrow as pa

from lancelake.commit.snapshot import Snapshot, names_table
from lancelake.data.arrays.retype import struct_of
from lancelake.data.arrays.tight_lists import rebuilt_list, tightened
from lancelake.engine.port import Engine
from lancelake.format import evolution, growth
from lancelake.format.arrow_schema import from_arrow, public_schema
from lancelake.format.growth import Growth
from lancelake.format.schema import Field
from lancelake.table.columns.add import add_null_columns
from lancelake.table.columns.backfill import Backfill, ColumnPlan, default_engine
from lancelake.table.columns.retyped import RetypedValues, rewrite_plan
from lancelake.table.publish import DEFAULT_CHOICES, CommitChoices


class GrownValues(RetypedValues):
    """Values of columns with more fields, which are null."""

    __slots__ = ()

    def retyped(self, array: pa.Array, old: Field, new: Field, target: pa.DataType) -> pa.Array:  # noqa: ARG002
        """Add the fields."""
        return grown(array, target)


@names_table
def add_null_members(
    base: Snapshot,
    schema: pa.Schema,
    *,
    engine: Engine | None = None,
    choices: CommitChoices = DEFAULT_CHOICES,
) -> Snapshot:
    """Add columns, and fields of existing columns, null in every row.

    A column is written once more, in one file for each fragment, if fields cannot be added to its
    files in place. The fields of that column get new ids, and its indices are dropped.
    """
    found = _growth(base, schema)
    if found.after.fields:
        backfill = Backfill(engine=engine or default_engine(), choices=choices)
        base = backfill.run(base, lambda at: _plan(at, schema))
    if found.in_place.fields:
        base = add_null_columns(base, public_schema(found.in_place), choices=choices)
    return base


def missing_members(base: Snapshot, data: pa.Schema) -> pa.Schema:
    """Return the fields of existing columns that only the data has."""
    return public_schema(growth.missing_members(base.manifest.schema, from_arrow(data)))


def grown(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Return values in a type with more fields, which are null."""
    if array.type.equals(target):
        return array
    if pa.types.is_struct(target):
        names = [field.name for field in array.type]
        children = [
            grown(array.field(names.index(f.name)), f.type)
            if f.name in names
            else pa.nulls(len(array), f.type)
            for f in target
        ]
        return struct_of(children, list(target), array)
    tight = tightened(array)
    if not pa.types.is_map(target):
        return rebuilt_list(tight, target, grown(tight.values, target.value_type))
    entries = pa.StructArray.from_arrays(
        [grown(tight.keys, target.key_type), grown(tight.items, target.item_type)],
        fields=[target.key_field, target.item_field],
    )
    return rebuilt_list(tight, target, entries)


def _growth(base: Snapshot, schema: pa.Schema) -> Growth:
    manifest = base.manifest
    return growth.grow(
        manifest.schema,
        from_arrow(schema),
        first_id=evolution.first_free_id(manifest.schema, manifest.fragments),
        version=manifest.data_version,
    )


def _plan(base: Snapshot, schema: pa.Schema) -> ColumnPlan:
    found = _growth(base, schema)
    values = GrownValues(before=found.before, after=found.after)
    return rewrite_plan(base, found.schema, values)
