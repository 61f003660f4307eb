"""Add members to structs, also inside lists and maps, null in every row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from lancelake.commit.snapshot import Snapshot, names_table
from lancelake.data.arrays.retype import struct_of
from lancelake.data.arrays.tight_lists import rebuilt_list, tightened
from lancelake.engine.port import Engine
from lancelake.format import evolution, growth
from lancelake.format.arrow_schema import from_arrow, public_schema, storage_schema
from lancelake.format.growth import Growth
from lancelake.format.schema import Schema
from lancelake.scan.plan import ScanTask
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest
from lancelake.table.column_task import ColumnTask
from lancelake.table.columns.add import add_null_columns
from lancelake.table.columns.backfill import Backfill, ColumnPlan, column_file, default_engine
from lancelake.table.columns.live_columns import live_batches
from lancelake.table.publish import DEFAULT_CHOICES, CommitChoices


@dataclass(frozen=True, slots=True, kw_only=True)
class GrownValues:
    """Values of columns with more members, which are null."""

    before: Schema
    after: Schema

    @property
    def schema(self) -> pa.Schema:
        """Schema of all batches."""
        return storage_schema(self.after)

    def batches(self, scan: ScanTask) -> Iterator[pa.RecordBatch]:
        """Yield the values of the live rows."""
        schema = self.schema
        for batch in live_batches(scan, self.before):
            arrays = [grown(a, f.type) for a, f in zip(batch.columns, schema, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)


@names_table
def add_null_members(
    base: Snapshot,
    schema: pa.Schema,
    *,
    engine: Engine | None = None,
    choices: CommitChoices = DEFAULT_CHOICES,
) -> Snapshot:
    """Add columns, and members of existing columns, null in every row.

    A column is written once more, in one file for each fragment, if members cannot be added to its
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
    """Return the members of existing columns that only the data has."""
    return public_schema(growth.missing_members(base.manifest.schema, from_arrow(data)))


def grown(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Return values in a type with more members, which are null."""
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
    file = column_file(base, found.after)
    values = GrownValues(before=found.before, after=found.after)
    file.ensure_possible(values.schema)
    tasks = [
        ColumnTask(scan=scan, values=values, file=file)
        for scan in plan(base, ScanRequest(columns=())).tasks
    ]
    return ColumnPlan(schema=found.schema, tasks=tasks)
