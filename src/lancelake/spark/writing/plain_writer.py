"""Batch writer of the plain data source: fragments from executors, and one commit.

Executors write data files and return the fragments as bytes. Nothing is visible before the commit,
and an abort deletes nothing: a commit whose reply was lost may have succeeded, and cleanup removes
orphan files.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from lancelake.errors import InvalidRequestError
from lancelake.spark.options.table_options import TableOptions
from lancelake.spark.worker.fragment_messages import sealed_fragments, unsealed_fragments
from lancelake.spark.worker.on_executors import Portable
from lancelake.spark.writing.fitted_rows import PlainRows
from lancelake.spark.writing.frame_writer import written
from lancelake.spark.writing.write_plan import SaveMode, ensure_columns, plain_rows, plan_write
from lancelake.table.open import AtVersion, open_snapshot
from lancelake.table.planned_write import WritePlan, commit_write


@dataclass(frozen=True, slots=True)
class WrittenFragments(WriterCommitMessage):
    """The fragments of one task, as bytes."""

    fragments: bytes


class LanceWriter(Portable, DataSourceArrowWriter):
    """Appends to a table, or overwrites it; creates the table if it does not exist.

    It is sent to every task, so it only keeps the number of the version it changes.
    """

    def __init__(self, plan: WritePlan, rows: PlainRows) -> None:
        self._rows = rows
        self._plan = replace(plan, base=None)
        self._base = None if plan.base is None else (plan.base.location, plan.base.version)

    @staticmethod
    def prepare(schema: StructType, options: TableOptions, *, overwrite: bool) -> LanceWriter:
        """Open the table, and plan the write."""
        ensure_columns(schema, options)
        mode = SaveMode.OVERWRITE if overwrite else SaveMode.APPEND
        rows = plain_rows(options, schema, mode)
        plan = plan_write(options, rows.schema, mode)
        if plan is None:
            raise InvalidRequestError("there is nothing to write")
        return LanceWriter(plan, rows)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenFragments:
        """Write the rows of one task."""
        return WrittenFragments(sealed_fragments(written(self._plan.task, self._rows(iterator))))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Commit the rows of all tasks in one version."""
        found = (m.fragments for m in messages if isinstance(m, WrittenFragments))
        fragments = unsealed_fragments(found)
        base = None
        if self._base is not None:
            location, version = self._base
            base = open_snapshot(location, AtVersion(version))
        commit_write(replace(self._plan, base=base), fragments)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Do nothing."""
