"""Sort orders: sort keys computed from columns, and rows sorted by them."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lancelake.data.projection import project
from lancelake.errors import InvalidRequestError
from lancelake.format.arrow_schema import storage_field
from lancelake.format.blobs import has_blobs
from lancelake.format.schema import Field, Schema
from lancelake.scan.request import Ordering
from lancelake.table.compact.options import CompactionSettings
from lancelake.table.compact.z_order import ZCurve

Path = tuple[str, ...]

_SIMPLE = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_boolean,
    pa.types.is_temporal,
    pa.types.is_decimal,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_fixed_size_binary,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowOrder:
    """Rows sorted by the values at some paths, or along a Z-order curve through these values."""

    paths: tuple[Path, ...]
    directions: tuple[Ordering, ...]
    curve: ZCurve | None = None

    def read_schema(self, schema: Schema) -> Schema:
        """Restrict a table's schema to the columns that the keys are computed from."""
        return project(schema, self.paths)

    def values(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """Return the values at the paths, in comparable types."""
        return [_comparable(_at(batch, path)) for path in self.paths]

    def keys(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """Return the sort columns, one for each direction."""
        values = self.values(batch)
        return values if self.curve is None else [self.curve.positions(values)]


def asked_order(schema: Schema, options: CompactionSettings) -> RowOrder:
    """Return the requested order; values may be nested in structs.

    Its curve is not set yet, since that depends on values.
    """
    if options.z_order_by:
        names = options.z_order_by
        directions: tuple[Ordering, ...] = (Ordering(column="curve", nulls_first=True),)
    else:
        names = tuple(ordering.column for ordering in options.sort_by)
        directions = options.sort_by
    return RowOrder(paths=tuple(_path(schema, name) for name in names), directions=directions)


def _path(schema: Schema, column: str) -> Path:
    trail = schema.resolve(column)
    leaf = trail[-1]
    if any(node.logical_type != "struct" for node in trail[:-1]) or not _is_sortable(leaf):
        raise InvalidRequestError(
            f"rows cannot be sorted by column {column} of type {leaf.logical_type}",
            action="Sort by numbers, times, text or binary values.",
            column=column,
        )
    return tuple(node.name for node in trail)


def _is_sortable(field: Field) -> bool:
    if field.children or field.is_json or has_blobs(field):
        return False
    found = storage_field(field).type
    kind = found.value_type if pa.types.is_dictionary(found) else found
    return any(is_kind(kind) for is_kind in _SIMPLE)


def _at(batch: pa.RecordBatch, path: Path) -> pa.Array:
    found = batch.column(path[0])
    for name in path[1:]:
        found = pc.struct_field(found, name)
    return found


def _comparable(values: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(values.type):
        return _comparable(values.dictionary_decode())
    if pa.types.is_float16(values.type):
        return values.cast(pa.float32())
    if pa.types.is_floating(values.type):
        # Normalises negative zero.
        return pc.add(values, pa.scalar(0.0, values.type))
    if pa.types.is_fixed_size_binary(values.type):
        return values.cast(pa.binary())
    return values
