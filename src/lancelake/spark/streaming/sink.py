"""Streaming sink: every batch is committed exactly once."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from lancelake.core.table import Table
from lancelake.core.values.metadata import Fragment, Snapshot, split_list
from lancelake.core.values.reads import ScanRequest
from lancelake.core.values.wal import Unit
from lancelake.core.values.writes import (
    Duplicates,
    InsertAll,
    MergeSpec,
    OnceOnly,
    UpdateAll,
    WritePlan,
    landed,
    staged,
)
from lancelake.data.column_file import WriteTask
from lancelake.errors import (
    InvalidRequestError,
    LanceTableError,
    TableNotFoundError,
    UnsupportedError,
)
from lancelake.spark.jobs.engine import PATIENCE
from lancelake.spark.jobs.fitted_rows import PlainRows
from lancelake.spark.jobs.target_frame import staged_frame
from lancelake.spark.jobs.wal_rows import (
    UPSERT_OPTIONS,
    Upsert,
    table_spec,
    upsert_frame,
    upsert_of,
    upsert_rows,
)
from lancelake.spark.jobs.write_plan import (
    SaveMode,
    commit_plan,
    ensure_columns,
    plain_rows,
    plan_write,
    written,
)
from lancelake.spark.sql.wal_methods import merge_if_due
from lancelake.spark.tasks.on_executors import (
    Portable,
    message_batch,
    sealed_fragments,
    unsealed_fragments,
)
from lancelake.spark.values.options import WRITE_OPTIONS, TableOptions, parse

SINK_OPTIONS = (
    *WRITE_OPTIONS,
    *UPSERT_OPTIONS,
    "checkpointLocation",
    "compactEvery",
    "mergeEvery",
    "mergeKeys",
    "queryName",
    "targetFileRows",
)
_QUERY = "sql.streaming.queryId"


@dataclass(frozen=True, kw_only=True)
class StreamSink:
    """Appends each batch, replaces all rows with it, merges or upserts it by key.

    A batch is identified by the query's id, which its checkpoint stores, and by its number. Invalid
    options fail before the first batch. Processes of plain data sources have no session.
    """

    options: TableOptions
    schema: StructType
    mode: SaveMode
    spark: SparkSession | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        """Refuse what no batch could do."""
        ensure_columns(self.schema, self.options)
        if self._upsert is not None:
            self._ensure_upserts()

    @functools.cached_property
    def rows(self) -> PlainRows:
        """The conversion of rows for the table."""
        return plain_rows(self.options, self.schema, self.mode)

    def plan(self) -> WritePlan:
        """Plan the write of a batch."""
        hidden = ("txnappid", "txnversion")
        rest = {key: value for key, value in self.options.rest.items() if key not in hidden}
        options = replace(self.options, rest=rest)
        plan = plan_write(options, self.rows.schema, self.mode, spark=self.spark)
        if plan is None:
            raise InvalidRequestError("streaming writes do not support this mode")
        return plan.named("STREAMING UPDATE")

    def commit(self, fragments: tuple[Fragment, ...], query: str, batch: int) -> None:
        """Commit a batch; one without rows creates no version."""
        if not fragments and self.mode is not SaveMode.OVERWRITE:
            return
        once = self._once(query, batch)
        keys = split_list(self.options.get("mergeKeys") or "")
        planned = self.plan()
        if self._upsert is not None:
            self._write_entries(planned, fragments, Unit(query=once.app_id, batch=once.version))
            return
        if keys:
            # Keys may repeat in the first batch too, so a new table is created without rows.
            base = planned.base or commit_plan(planned, ())
            _merge(base, self.plan().adapt(once=once), fragments, keys)
        else:
            commit_plan(planned.adapt(once=once), fragments)
        self._compact_after(batch)

    @functools.cached_property
    def _upsert(self) -> Upsert | None:
        return upsert_of(self.options)

    def _ensure_upserts(self) -> None:
        """Refuse what needs a session, or a table with a MemWAL."""
        uri = self.options.location.uri
        needs_session = self._upsert != Upsert() or self.options.get("mergeEvery") is not None
        if self.spark is None and needs_session:
            raise UnsupportedError(
                "options deleteWhen, sequenceBy and mergeEvery need a Spark session, and a plain "
                "data source has none",
                table=uri,
                action="Use foreachBatch(lancelake.spark.upsert_batches(path, ...)).",
            )
        table = self.options.open_existing()
        if table is None:
            raise TableNotFoundError(f"there is no table at {uri}", table=uri)
        if self.mode is SaveMode.OVERWRITE:
            raise InvalidRequestError("upserts do not replace the rows of a table", table=uri)
        table_spec(table.snapshot)

    def _write_entries(
        self, planned: WritePlan, fragments: tuple[Fragment, ...], unit: Unit
    ) -> None:
        """Write the rows of a batch to their regions, which the tasks of a stream do not own."""
        if planned.base is None:
            raise InvalidRequestError("upserts need a table with a MemWAL")
        if self.spark is None:
            rows = _read_staged(planned.base, fragments).read_all()
            upsert_rows(planned.base, rows, unit)
            return
        rows = staged_frame(
            self.spark, staged(planned.base, fragments), self.rows.schema.fieldNames()
        )
        upsert_frame(rows, planned.base, unit, self._upsert)
        merge_if_due(self.spark, self.options, unit.batch)

    def _compact_after(self, batch: int) -> None:
        """Compact the small files of several batches; a failure does not affect the batch."""
        every, rows = self.options.whole("compactEvery"), self.options.whole("targetFileRows")
        if not every or (batch + 1) % every:
            return
        table = self.options.open_existing()
        if table is None:
            return
        try:
            settings = table.maintenance.compaction_settings(target_rows_per_fragment=rows)
            table.maintenance.compact(settings)
        except LanceTableError as error:
            warnings.warn(f"the table was not compacted: {error}", stacklevel=2)

    def _once(self, query: str, batch: int) -> OnceOnly:
        app_id = self.options.get("txnAppId") or query
        if not app_id:
            raise InvalidRequestError(
                "Spark did not provide the id of the query of a batch",
                action="Set the option txnAppId to a name that only this query uses.",
            )
        return OnceOnly(app_id=app_id, version=batch)


@dataclass(frozen=True, slots=True)
class WriteStreamed:
    """Writes the rows of one task of a batch, by the names of the table."""

    task: WriteTask
    rows: PlainRows

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield one batch with one message."""
        yield message_batch(sealed_fragments(written(self.task, self.rows(iter(batches)))))


@dataclass(frozen=True, slots=True)
class WrittenPart(WriterCommitMessage):
    """Fragments that a task of a batch wrote, and the query of the batch."""

    fragments: bytes
    query: str


class LanceStreamWriter(Portable, DataSourceStreamArrowWriter):
    """The sink of a plain data source."""

    def __init__(self, schema: StructType, options: Mapping[str, str], *, overwrite: bool) -> None:
        """Open the table once, so that invalid options fail before the first batch."""
        mode = SaveMode.OVERWRITE if overwrite else SaveMode.APPEND
        self._sink = StreamSink(options=parse(options, SINK_OPTIONS), schema=schema, mode=mode)
        self._rows, self._task = self._sink.rows, self._sink.plan().task

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenPart:
        """Write the rows of a task."""
        fragments = written(self._task, self._rows(iterator))
        context = TaskContext.get()
        query = None if context is None else context.getLocalProperty(_QUERY)
        return WrittenPart(sealed_fragments(fragments), query or "")

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Commit a batch."""
        parts = [m for m in messages if isinstance(m, WrittenPart)]
        fragments = unsealed_fragments(part.fragments for part in parts)
        self._sink.commit(
            fragments, next((part.query for part in parts if part.query), ""), batchId
        )

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Do nothing: cleanup removes orphan files."""


def _merge(
    base: Snapshot, planned: WritePlan, fragments: tuple[Fragment, ...], keys: tuple[str, ...]
) -> None:
    """Merge the rows of a batch by key; of rows with the same key the last one wins."""
    once = planned.options.once
    if once is None:
        raise InvalidRequestError("a batch without a number cannot be merged")
    if landed(base, once) is not None:
        return
    spec = MergeSpec(
        on=keys,
        matched=(UpdateAll(),),
        not_matched=(InsertAll(),),
        duplicates=Duplicates.LAST_WINS,
    )

    rows = _read_staged(base, fragments)
    Table(base).merge(rows, spec, choices=planned.options.choices, retries=PATIENCE, once=once)


def _read_staged(base: Snapshot, fragments: tuple[Fragment, ...]) -> pa.RecordBatchReader:
    """Read the uncommitted rows that tasks wrote."""
    return Table(staged(base, fragments)).scan(ScanRequest()).run()
