"""Merge on executors."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from lancelake.core.values.metadata import Field, Snapshot, key_names, quoted_name
from lancelake.core.values.reads import KeyLookup
from lancelake.core.values.writes import (
    DEFAULT_CHOICES,
    CommitChoices,
    OnceOnly,
    Retries,
    RowsChanged,
    key_fields,
    retry_on_newest,
)
from lancelake.errors import SchemaMismatchError
from lancelake.scan.live_rows import count_rows
from lancelake.spark.jobs.binding import Binding, Equality, equalities
from lancelake.spark.jobs.engine import PATIENCE, SparkEngine
from lancelake.spark.jobs.row_maker import RowClauses, maker_of
from lancelake.spark.jobs.rows_out import ADDRESS, ROW_ID, Parts
from lancelake.spark.jvm.catalyst import column, ids_named, is_repeatable, items, kind
from lancelake.spark.tasks.columns import empty_frame, needed_columns
from lancelake.table.columns.alter import widened
from lancelake.table.merge.match import key_indices, most_keys
from lancelake.table.merge.source import Comparer, SourceKeys, is_comparable
from lancelake.table.merge.write import KeyColumns
from lancelake.table.row_steps import commit_rows

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
    indexed = _indexed(base, [equality for _, equality in parts if equality is not None], binding)
    if not indexed:
        return None
    for part in _conditions_on_source(binding, [part for part, _ in parts]):
        source = source.where(part)
    values = [column(binding.gateway, equality.source) for _, equality in indexed]
    named = source.select(*[value.alias(f"k{i}") for i, value in enumerate(values)])
    most = min(_MOST_KEYS, most_keys(base))
    rows = named.limit(most + 1).toArrow()
    if rows.num_rows > most:
        return None
    fields: list[Field] = []
    keys: dict[str, pa.ChunkedArray] = {}
    for (field, equality), column_values in zip(indexed, rows.columns, strict=True):
        normalised = _normalised(field, equality, column_values)
        if normalised is not None:
            fields.append(field)
            keys[field.name] = normalised
    if not fields:
        return None
    source_keys = SourceKeys(table=pa.table(keys), are_unique=False)
    return KeyLookup.of(base, tuple(fields), source_keys)


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
    by_name: dict[str, Equality] = {}
    for equality in parts:
        if equality.name in binding.padded or equality.name not in fields:
            continue
        if not is_repeatable(equality.source):
            continue
        if _is_exact(fields[equality.name]) and _compares_stored_values(equality.target):
            by_name.setdefault(equality.name, equality)
    return [
        (fields[name], equality) for name, equality in by_name.items() if key_indices(base, [name])
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


_SEEN = "__lance_seen_"
# So many rows of the table are joined and written by one task.
_FEW_ROWS = 1 << 14


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameMerge:
    """A merge: the source, the join condition, the clauses, and the aliases.

    `on` lists the table columns that the condition compares for equality. Columns of `adds_columns`
    that the table does not have are added to it.
    """

    source: DataFrame
    condition: Column
    clauses: RowClauses[Any]
    on: tuple[str, ...] = ()
    target_name: str = "target"
    source_name: str = "source"
    adds_columns: pa.Schema | None = None
    binding: Binding | None = None


def merge_frame(
    base: Snapshot,
    merge: FrameMerge,
    *,
    choices: CommitChoices = DEFAULT_CHOICES,
    retries: Retries = PATIENCE,
    once: OnceOnly | None = None,
) -> RowsChanged:
    """Merge on the executors and commit, with retries on the newest version after conflicts."""
    _warn_without_key(base, merge)
    choices = choices.named("MERGE", base.location)
    source = merge.source.persist()

    def attempt(version: Snapshot) -> RowsChanged:
        return _merge_onto(version, replace(merge, source=source), choices.within(retries), once)

    try:
        return retry_on_newest(base, attempt, retries)
    finally:
        source.unpersist()


def _merge_onto(
    base: Snapshot, merge: FrameMerge, choices: CommitChoices, once: OnceOnly | None
) -> RowsChanged:
    if merge.adds_columns is not None:
        engine = SparkEngine(merge.source.sparkSession)
        base = widened(base, merge.adds_columns, choices, engine=engine, casts=True)
    parts = _Attempt(base, merge).parts()
    # An idempotent merge is recorded even without changes: a later attempt might have some.
    if not parts.changes and once is None:
        return RowsChanged(snapshot=base)
    return commit_rows(base, replace(parts.change, once=once), choices)


class _Attempt:
    """The frames of a merge into one version."""

    def __init__(self, base: Snapshot, merge: FrameMerge) -> None:
        self._base = base
        self._merge = merge
        self._are_few = False
        self._maker = maker_of(
            base,
            merge.target_name,
            source_name=merge.source_name,
            source_columns=tuple(merge.source.columns),
            binding=merge.binding,
            clauses=merge.clauses,
        )

    def parts(self) -> Parts:
        """Run the merge up to its commit."""
        clauses = self._merge.clauses
        has_matches = bool(clauses.matched or clauses.not_matched)
        lookup = self._lookup() if has_matches else None
        self._are_few = lookup is not None and lookup.most_rows(self._base) <= _FEW_ROWS
        matched = self._matched(lookup).persist() if has_matches else None
        try:
            return self._write(self._frames(matched))
        finally:
            if matched is not None:
                matched.unpersist()

    def _frames(self, matched: DataFrame | None) -> list[DataFrame]:
        """Return changed rows before new ones."""
        clauses = self._merge.clauses
        frames: list[DataFrame] = []
        if matched is not None and clauses.matched:
            near = self._are_few
            frames.append(self._maker.changed(matched, clauses.matched, are_near=near))
        if clauses.not_matched_by_source:
            others = self._not_matched_by_source()
            frames.append(self._maker.changed(others, clauses.not_matched_by_source))
        if matched is not None and clauses.not_matched:
            frames.append(self._maker.new(self._not_matched(matched), clauses.not_matched))
        return frames

    def _not_matched(self, matched: DataFrame) -> DataFrame:
        """Return the source rows without a match; rows equal in all joining columns match alike.

        Row numbers would not work: rows that are recomputed after an executor failure may have
        another order.
        """
        joining = self._joining_columns()
        struct = f.col(quoted_name(self._merge.source_name))
        values = [_comparable(struct.getField(c.name), c) for c in joining]
        seen = matched.select(*[v.alias(f"{_SEEN}{i}") for i, v in enumerate(values)])
        is_same = f.lit(True)
        for number, field in enumerate(joining):
            mine = _comparable(f.col(quoted_name(field.name)), field)
            is_same = is_same & mine.eqNullSafe(f.col(f"{_SEEN}{number}"))
        seen = f.broadcast(seen) if self._are_few else seen.distinct()
        return self._merge.source.join(seen, is_same, "left_anti")

    def _joining_columns(self) -> list[t.StructField]:
        """Return the source columns that the condition refers to."""
        merge = self._merge
        fields = merge.source.schema.fields
        if merge.binding is not None:
            return [fields[i] for i in merge.binding.source_positions([merge.condition])]
        by_name = {field.name: field for field in fields}

        def build(columns: Sequence[str]) -> DataFrame:
            mine = [by_name[name] for name in columns]
            return self._empty_join(mine, self._maker.rows.schema.fields)

        return [by_name[name] for name in needed_columns(build, list(by_name))]

    def _empty_join(
        self, source: Sequence[t.StructField], target: Sequence[t.StructField]
    ) -> DataFrame:
        merge, spark = self._merge, self._merge.source.sparkSession
        theirs = empty_frame(spark, source).alias(merge.source_name)
        mine = empty_frame(spark, target).alias(merge.target_name)
        return theirs.join(mine, merge.condition)

    def _matched(self, lookup: KeyLookup | None) -> DataFrame:
        """Return source rows, as a struct, with the address of each row that they match.

        Few rows are put in order at once: to distribute them by address takes several jobs.
        """
        name = self._merge.source_name
        source = self._merge.source.alias(name)
        joined = source.join(self._target(lookup), self._merge.condition, "inner")
        whole = f.struct(f.col(f"{quoted_name(name)}.*"))
        pairs = joined.select(whole.alias(name), f.col(ADDRESS), f.col(ROW_ID))
        return pairs.coalesce(1).sortWithinPartitions(ADDRESS) if self._are_few else pairs

    def _not_matched_by_source(self) -> DataFrame:
        source = self._merge.source.alias(self._merge.source_name)
        others = self._target().join(source, self._merge.condition, "left_anti")
        return others.select(f.col(ADDRESS), f.col(ROW_ID))

    def _lookup(self) -> KeyLookup | None:
        """Return the keys of the source, if they are few and an index finds their rows."""
        merge = self._merge
        if merge.binding is None:
            return None
        return key_lookup(self._base, merge.source, merge.condition, merge.binding)

    def _target(self, lookup: KeyLookup | None = None) -> DataFrame:
        """Return the table columns that the condition refers to, with row addresses."""
        merge = self._merge
        spark = merge.source.sparkSession
        rows = self._maker.addressed(spark, merge.condition, self._with_target, lookup)
        return rows.alias(merge.target_name)

    def _with_target(self, columns: Sequence[str]) -> DataFrame:
        fields = [self._maker.rows.schema[name] for name in columns]
        return self._empty_join(self._merge.source.schema.fields, fields)

    def _compared_columns(self) -> Sequence[str]:
        """Return the table columns that the condition refers to."""
        if self._merge.binding is not None:
            return self._merge.binding.named([self._merge.condition])
        return needed_columns(self._with_target, list(self._maker.rows.columns))

    def _write(self, frames: list[DataFrame]) -> Parts:
        return self._maker.rows.write(frames, self._key(), "merge into", self._naming)

    def _naming(self) -> Sequence[str]:
        """Return the key columns, or else the compared ones, or else the first."""
        fields = _key_fields(self._base, self._merge)
        every = self._maker.rows.columns
        return [field.name for field in fields] or self._compared_columns() or every[:1]

    def _key(self) -> KeyColumns | None:
        """Return the columns that identify new rows."""
        if not self._merge.clauses.not_matched:
            return None
        fields = _key_fields(self._base, self._merge)
        return KeyColumns.of(fields) if fields else None


def _key_fields(base: Snapshot, merge: FrameMerge) -> tuple[Field, ...]:
    """Return the columns compared for equality by the condition, or else the primary key."""
    schema = base.manifest.schema
    by_lower = {field.name.lower(): field for field in schema.fields}
    joined = [by_lower[name.lower()] for name in merge.on if name.lower() in by_lower]
    comparable = [field for field in joined if is_comparable(field)]
    return tuple(comparable) or key_fields(key_names(schema), schema)


def _warn_without_key(base: Snapshot, merge: FrameMerge) -> None:
    if merge.clauses.not_matched and not _key_fields(base, merge):
        warnings.warn(
            f"the merge into {base.location.uri} has no key filter: its condition compares no "
            "column for equality with the source, and the table has no primary key. A "
            "concurrent merge may insert the same rows",
            stacklevel=2,
        )


def _comparable(value: Column, field: t.StructField) -> Column:
    """Return a comparable value; maps are converted to text."""
    can = not any(kind in field.dataType.simpleString() for kind in ("map<", "variant"))
    return value if can else f.to_json(f.struct(value))
