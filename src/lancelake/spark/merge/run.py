"""A DataFrame merged into a version: joined, changed, written on executors, then committed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from lancelake.data.row_meta import MetaColumn
from lancelake.errors import InvalidRequestError, LanceTableError
from lancelake.format.primary_key import key_names
from lancelake.spark.merge.binding import Binding
from lancelake.spark.merge.clauses import Clauses
from lancelake.spark.merge.explain import explained
from lancelake.spark.merge.names import columns_named, key_pairs
from lancelake.spark.merge.row_maker import RowMaker, quoted
from lancelake.spark.merge.rows_out import (
    ADDRESS,
    ROW_ID,
    KeyColumns,
    Parts,
)
from lancelake.spark.once import OnceOnly
from lancelake.spark.patience import PATIENCE
from lancelake.spark.target_frame import target_frame
from lancelake.spark.types import arrow_schema
from lancelake.table.merge.run import MergeCounts, Merged, update_operation, with_changes
from lancelake.table.publish import DEFAULT_CHOICES, CommitChoices, new_transaction, publish
from lancelake.table.rows.take_out import take_out
from lancelake.table.run_again import Retries, racing, until_it_lands
from lancelake.table.snapshot import Snapshot
from lancelake.table.write import widened
from lancelake.txn.inserted_keys import collected

_SEEN = "__lance_seen_"


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameMerge:
    """A merge: the source, the condition that joins it, the clauses, and the sides' names."""

    source: DataFrame
    condition: Column | str
    clauses: Clauses
    target_name: str = "target"
    source_name: str = "source"
    adds_columns: bool = False
    binding: Binding | None = None

    def __post_init__(self) -> None:
        """Refuse a merge that changes nothing."""
        clauses = self.clauses
        if not (clauses.matched or clauses.not_matched or clauses.not_matched_by_source):
            raise InvalidRequestError(
                "the merge has no clause", action="Say what to do with rows that match or do not."
            )


def merge_frame(
    base: Snapshot,
    merge: FrameMerge,
    *,
    choices: CommitChoices = DEFAULT_CHOICES,
    retries: Retries = PATIENCE,
    once: OnceOnly | None = None,
) -> Merged:
    """Merge on the executors and commit; after a conflict again on the newest version."""
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
    if merge.adds_columns:
        base = widened(base, arrow_schema(merge.source.schema), choices)
    parts = _OneMerge(base, merge).parts()
    # A numbered merge leaves its mark even so: done again later, it might find something.
    if not parts.changes and once is None:
        return Merged(snapshot=base, counts=MergeCounts(inserted=0, updated=0, deleted=0))
    keys = parts.keys
    gone = take_out(base, parts.gone, choices.surroundings.ids)
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
        self._maker = RowMaker(
            base=base,
            target_name=merge.target_name,
            source_name=merge.source_name,
            source_columns=tuple(merge.source.columns),
            binding=merge.binding,
        )

    def parts(self) -> Parts:
        """Run the merge up to its commit."""
        clauses = self._merge.clauses
        matched = self._matched().persist() if clauses.matched or clauses.not_matched else None
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
            frames.append(self._maker.changed(matched, clauses.matched))
        if clauses.not_matched_by_source:
            lonely = self._not_matched_by_source()
            frames.append(self._maker.changed(lonely, clauses.not_matched_by_source))
        if matched is not None and clauses.not_matched:
            frames.append(self._maker.new(self._not_matched(matched), clauses.not_matched))
        return frames

    def _not_matched(self, matched: DataFrame) -> DataFrame:
        """Return the source rows that match nothing: rows alike in what joins match alike.

        Numbers for rows would not do: rows that are computed anew, since an executor died, may
        come in another order.
        """
        joining = self._joining_columns()
        struct = f.col(quoted(self._merge.source_name))
        values = [_comparable(struct.getField(c.name), c) for c in joining]
        seen = matched.select(*[v.alias(f"{_SEEN}{i}") for i, v in enumerate(values)])
        is_same = f.lit(True)
        for number, field in enumerate(joining):
            mine = _comparable(f.col(quoted(field.name)), field)
            is_same = is_same & mine.eqNullSafe(f.col(f"{_SEEN}{number}"))
        return self._merge.source.join(seen.distinct(), is_same, "left_anti")

    def _joining_columns(self) -> list[t.StructField]:
        """Return the source's columns that the condition names; all when that cannot be told."""
        merge = self._merge
        fields = merge.source.schema.fields
        if merge.binding is not None:
            return [fields[i] for i in merge.binding.source_positions([merge.condition])]
        named = columns_named([merge.condition], [field.name for field in fields])
        return [field for field in fields if named is None or field.name in named]

    def _matched(self) -> DataFrame:
        """Return source rows, as a struct, with the address of each row that they match."""
        name = self._merge.source_name
        source = self._merge.source.alias(name)
        condition = as_column(self._merge.condition)
        joined = self._with_target(lambda target: source.join(target, condition, "inner"))
        whole = f.struct(*[f.col(f"{name}.{quoted(c)}") for c in self._maker.source_columns])
        return joined.select(whole.alias(name), f.col(ADDRESS), f.col(ROW_ID))

    def _not_matched_by_source(self) -> DataFrame:
        source = self._merge.source.alias(self._merge.source_name)
        condition = as_column(self._merge.condition)
        lonely = self._with_target(lambda target: target.join(source, condition, "left_anti"))
        return lonely.select(f.col(ADDRESS), f.col(ROW_ID))

    def _with_target(self, build: Callable[[DataFrame], DataFrame]) -> DataFrame:
        """Build a frame from the columns of the table that join it, and where its rows are."""
        binding, condition = self._merge.binding, self._merge.condition
        spark, name = self._merge.source.sparkSession, self._merge.target_name

        def built(columns: Sequence[str]) -> DataFrame:
            frame = addressed_frame(spark, self._base, columns)
            return build((binding.of_target(frame) if binding else frame).alias(name))

        return explained(built, self._maker.named([condition]), self._maker.columns)

    def _written(self, frames: list[DataFrame]) -> Parts:
        key = self._key()
        parts = self._maker.written(frames, key, "merge into")
        if key is not None and parts.keys is None:
            return replace(parts, keys=collected(key.ids, []))
        return parts

    def _key(self) -> KeyColumns | None:
        """Return the columns whose values tell new rows apart: joined ones, or the primary key."""
        if not self._merge.clauses.not_matched:
            return None
        merge = self._merge
        if merge.binding is not None:
            pairs = merge.binding.key_pairs()
        else:
            pairs = key_pairs(merge.condition, merge.target_name, merge.source_name)
        by_lower = {field.name.lower(): field for field in self._base.manifest.schema.fields}
        joined = tuple(target for target, _ in pairs if target.lower() in by_lower)
        names = joined or key_names(self._base.manifest.schema)
        fields = [by_lower[name.lower()] for name in names]
        if not fields:
            return None
        return KeyColumns(names=tuple(f.name for f in fields), ids=tuple(f.id for f in fields))


def addressed_frame(spark: SparkSession, base: Snapshot, columns: Sequence[str]) -> DataFrame:
    """Return columns of a version, with the address and the id of each row."""
    metas = [MetaColumn.ROW_ADDRESS.value, MetaColumn.ROW_ID.value]
    frame = target_frame(spark, base, columns, metas)
    return frame.withColumnsRenamed({metas[0]: ADDRESS, metas[1]: ROW_ID})


def as_column(condition: Column | str) -> Column:
    """Return a condition as a column."""
    return f.expr(condition) if isinstance(condition, str) else condition


def _comparable(value: Column, field: t.StructField) -> Column:
    """Return a value that can be compared: maps cannot, but their text can."""
    can = not any(kind in field.dataType.simpleString() for kind in ("map<", "variant"))
    return value if can else f.to_json(f.struct(value))
