"""Update or delete the rows of a version that match a Spark condition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import LanceTableError
from lancelake.spark.jobs.retry_limits import PATIENCE
from lancelake.spark.merge.binding import Binding, ResolvedClause, ResolvedClauses
from lancelake.spark.merge.bound_rows import maker_of
from lancelake.spark.merge.explicit import Change, ExplicitClauses
from lancelake.spark.merge.row_maker import Maker, addressed_frame
from lancelake.spark.merge.rows_out import ADDRESS, ROW_ID
from lancelake.spark.reading.needed_columns import empty_frame
from lancelake.table.conflict_retry import Retries, racing, until_it_lands
from lancelake.table.merge.run import MergeCounts, Merged, update_operation
from lancelake.table.publish import DEFAULT_CHOICES, CommitChoices, new_transaction, publish
from lancelake.table.row_steps.mark_deleted import mark_deleted


def change_rows(
    spark: SparkSession,
    base: Snapshot,
    condition: Column | None,
    clause: Change | ResolvedClause,
    *,
    target_name: str = "target",
    binding: Binding | None = None,
    choices: CommitChoices = DEFAULT_CHOICES,
    retries: Retries = PATIENCE,
) -> Merged:
    """Update or delete rows on the executors and commit, with retries after conflicts."""
    only = _alone(clause)

    def work(version: Snapshot) -> Merged:
        maker = maker_of(version, target_name, binding=binding, clauses=only)
        if condition is None:
            rows = addressed_frame(spark, version, ())
        else:
            rows = _chosen_rows(spark, maker, condition, target_name)
        rows = rows.select(f.col(ADDRESS), f.col(ROW_ID))
        parts = maker.rows.written([maker.changed(rows, [clause])], None, "change rows of")
        if not parts.changes:
            return Merged(snapshot=version, counts=MergeCounts(inserted=0, updated=0, deleted=0))
        gone = mark_deleted(version, parts.gone, choices.surroundings.ids)
        operation = update_operation(version, gone, parts.fragments, None)
        chosen = replace(racing(choices, retries), affected_rows=gone.affected)
        made = publish(version, new_transaction(operation, version.version, chosen), chosen)
        counts = MergeCounts(inserted=0, updated=parts.updated, deleted=parts.deleted)
        return Merged(snapshot=made, counts=counts)

    try:
        return until_it_lands(base, work, retries, choices.surroundings)
    except LanceTableError as error:
        raise error.at(base.location.uri, base.version) from error.__cause__


def _alone(clause: Change | ResolvedClause) -> ResolvedClauses | ExplicitClauses:
    if isinstance(clause, ResolvedClause):
        return ResolvedClauses(matched=(clause,))
    return ExplicitClauses(matched=(clause,))


def _chosen_rows(
    spark: SparkSession, maker: Maker, condition: Column, target_name: str
) -> DataFrame:
    """Return the rows that match a condition, reading only the columns it refers to."""

    def named(columns: Sequence[str]) -> DataFrame:
        fields = [maker.rows.schema[name] for name in columns]
        return empty_frame(spark, fields).alias(target_name).where(condition)

    return maker.addressed(spark, condition, named).alias(target_name).where(condition)
