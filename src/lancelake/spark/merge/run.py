"""Merge a DataFrame into a version: join, compute and write on executors, then commit."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import LanceTableError
from lancelake.format.column_path import quoted_name
from lancelake.format.primary_key import key_names
from lancelake.format.schema import Field
from lancelake.spark.jobs.retry_limits import PATIENCE
from lancelake.spark.merge.binding import Binding, ResolvedClauses
from lancelake.spark.merge.bound_rows import maker_of
from lancelake.spark.merge.explicit import ExplicitClauses
from lancelake.spark.merge.key_lookup import key_lookup
from lancelake.spark.merge.rows_out import (
    ADDRESS,
    ROW_ID,
    KeyColumns,
    Parts,
)
from lancelake.spark.reading.needed_columns import empty_frame, needed_columns
from lancelake.table.conflict_retry import Retries, racing, until_it_lands
from lancelake.table.idempotent import OnceOnly
from lancelake.table.merge.key_index import KeyLookup
from lancelake.table.merge.keys import is_comparable, key_fields
from lancelake.table.merge.run import MergeCounts, Merged, update_operation, with_changes
from lancelake.table.publish import DEFAULT_CHOICES, CommitChoices, new_transaction, publish
from lancelake.table.row_steps.mark_deleted import mark_deleted
from lancelake.table.write import widened
from lancelake.txn.inserted_keys import collected

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
    clauses: ExplicitClauses | ResolvedClauses
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
) -> Merged:
    """Merge on the executors and commit, with retries on the newest version after conflicts."""
    _warn_without_key(base, merge)
    source = merge.source.persist()
    try:
        return until_it_lands(
            base,
            lambda version: _merge_onto(
                version, replace(merge, source=source), racing(choices, retries), once
            ),
            retries,
            choices.surroundings,
        )
    except LanceTableError as error:
        raise error.at(base.location.uri, base.version) from error.__cause__
    finally:
        source.unpersist()


def _merge_onto(
    base: Snapshot, merge: FrameMerge, choices: CommitChoices, once: OnceOnly | None
) -> Merged:
    if merge.adds_columns is not None:
        base = widened(base, merge.adds_columns, choices)
    parts = _OneMerge(base, merge).parts()
    # An idempotent merge is recorded even without changes: a later attempt might have some.
    if not parts.changes and once is None:
        return Merged(snapshot=base, counts=MergeCounts(inserted=0, updated=0, deleted=0))
    keys = parts.keys
    gone = mark_deleted(base, parts.gone, choices.surroundings.ids)
    operation = update_operation(base, gone, parts.fragments, keys)
    chosen = with_changes(choices, gone.affected, keys)
    transaction = new_transaction(operation, base.version, chosen)
    if once is not None:
        transaction = once.stamped(transaction)
    counts = MergeCounts(inserted=parts.inserted, updated=parts.updated, deleted=parts.deleted)
    return Merged(snapshot=publish(base, transaction, chosen), counts=counts)


class _OneMerge:
    """The frames of one attempt."""

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
            return self._written(self._frames(matched))
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
            lonely = self._not_matched_by_source()
            frames.append(self._maker.changed(lonely, clauses.not_matched_by_source))
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
        found = joined.select(whole.alias(name), f.col(ADDRESS), f.col(ROW_ID))
        return found.coalesce(1).sortWithinPartitions(ADDRESS) if self._are_few else found

    def _not_matched_by_source(self) -> DataFrame:
        source = self._merge.source.alias(self._merge.source_name)
        lonely = self._target().join(source, self._merge.condition, "left_anti")
        return lonely.select(f.col(ADDRESS), f.col(ROW_ID))

    def _lookup(self) -> KeyLookup | None:
        """Return the keys of the source, if they are few and an index finds their rows."""
        merge = self._merge
        if merge.binding is None:
            return None
        return key_lookup(self._base, merge.source, merge.condition, merge.binding)

    def _target(self, lookup: KeyLookup | None = None) -> DataFrame:
        """Return the table columns that the condition refers to, with row addresses."""
        merge, maker = self._merge, self._maker
        spark, theirs = merge.source.sparkSession, merge.source.schema.fields

        def build(columns: Sequence[str]) -> DataFrame:
            return self._empty_join(theirs, [maker.rows.schema[name] for name in columns])

        found = maker.addressed(spark, merge.condition, build, lookup)
        return found.alias(merge.target_name)

    def _written(self, frames: list[DataFrame]) -> Parts:
        key = self._key()
        parts = self._maker.rows.written(frames, key, "merge into")
        if key is not None and parts.keys is None:
            return replace(parts, keys=collected(key.ids, []))
        return parts

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
