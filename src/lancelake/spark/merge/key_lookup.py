"""Keys of a merge's source, collected to look up the rows of the table in an index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import SchemaMismatchError
from lancelake.format.schema import Field
from lancelake.scan.count import count_rows
from lancelake.spark.jvm.catalyst import column, ids_named, is_repeatable, items, kind
from lancelake.spark.merge.binding import Binding
from lancelake.spark.merge.keys import Equality, equalities
from lancelake.table.merge.key_index import KeyLookup, key_indices, most_keys
from lancelake.table.merge.keys import Comparer, is_comparable
from lancelake.table.merge.source_keys import SourceKeys

# The keys of fewer rows are read faster than those of the source are collected.
LEAST_ROWS = 1_000_000
# The driver holds all keys.
_MOST_KEYS = 1 << 20
_INTEGERS = ("tinyint", "smallint", "int", "bigint")


def key_lookup(
    base: Snapshot, source: DataFrame, condition: Column, binding: Binding
) -> KeyLookup | None:
    """Collect the keys of a source; None if they are many, or if no index finds their rows.

    The source should be cached, since it is read for this.
    """
    if not base.indices or count_rows(base) < LEAST_ROWS:
        return None
    parts = equalities(binding, condition)
    found = _indexed(base, [equality for _, equality in parts if equality is not None], binding)
    if not found:
        return None
    for part in _conditions_on_source(binding, [part for part, _ in parts]):
        source = source.where(part)
    values = [column(binding.gateway, equality.source) for _, equality in found]
    named = source.select(*[value.alias(f"k{i}") for i, value in enumerate(values)])
    most = min(_MOST_KEYS, most_keys(base))
    rows = named.limit(most + 1).toArrow()
    if rows.num_rows > most:
        return None
    fields: list[Field] = []
    keys: dict[str, pa.ChunkedArray] = {}
    for (field, equality), held in zip(found, rows.columns, strict=True):
        normalised = _normalised(field, equality, held)
        if normalised is not None:
            fields.append(field)
            keys[field.name] = normalised
    if not fields:
        return None
    collected = SourceKeys(table=pa.table(keys), are_unique=False)
    return KeyLookup.of(base, tuple(fields), collected)


def _conditions_on_source(binding: Binding, parts: Sequence[Any]) -> list[Column]:
    """Return the conjuncts about the source alone.

    Without them, keys would be computed for rows that the merge leaves out, and might fail.
    """
    theirs = set(binding.source)
    mine = [part for part in parts if ids_named(part) <= theirs and is_repeatable(part)]
    return [column(binding.gateway, part) for part in mine]


def _indexed(
    base: Snapshot, parts: Sequence[Equality], binding: Binding
) -> list[tuple[Field, Equality]]:
    """Return the equalities with an indexed column whose stored values Spark compares."""
    fields = {field.name: field for field in base.manifest.schema.fields}
    found: dict[str, Equality] = {}
    for equality in parts:
        if equality.name in binding.padded or equality.name not in fields:
            continue
        if not is_repeatable(equality.source):
            continue
        if _is_exact(fields[equality.name]) and _compares_stored_values(equality.target):
            found.setdefault(equality.name, equality)
    return [
        (fields[name], equality) for name, equality in found.items() if key_indices(base, [name])
    ]


def _is_exact(field: Field) -> bool:
    """Whether Spark compares the values of a column as an index does.

    Spark takes zeros of both signs for equal, and has no nanoseconds.
    """
    if not is_comparable(field):
        return False
    plain, types = Comparer.of(field).plain, pa.types
    is_time = types.is_date32(plain) or (types.is_timestamp(plain) and plain.unit != "ns")
    is_text = types.is_string(plain) or types.is_large_string(plain)
    is_bytes = types.is_binary(plain) or types.is_large_binary(plain)
    is_number = types.is_integer(plain) or types.is_decimal128(plain)
    return bool(is_time or is_text or is_bytes or is_number)


def _compares_stored_values(target: Any) -> bool:
    """Whether an expression is a column, or an integer column as a wider integer."""
    if kind(target) != "Cast":
        return kind(target) == "AttributeReference"
    inner = items(target.children())[0]
    types = [str(each.dataType().simpleString()) for each in (inner, target)]
    return kind(inner) == "AttributeReference" and set(types) <= set(_INTEGERS)


def _normalised(
    field: Field, equality: Equality, values: pa.ChunkedArray
) -> pa.ChunkedArray | None:
    """Return values as the index stores them; None if a value cannot be looked up."""
    if equality.is_null_safe and values.null_count:
        return None
    try:
        return Comparer.of(field).whole(values)
    except SchemaMismatchError:
        return None
