"""Streaming sink: every batch is committed exactly once."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark import TaskContext
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
from lancelake.errors import (
    InvalidRequestError,
    LanceTableError,
    TableNotFoundError,
    UnsupportedError,
)
from lancelake.spark.jobs import PATIENCE
from lancelake.spark.options import WRITE_OPTIONS, TableOptions, parse
from lancelake.spark.worker.on_executors import Portable, sealed_fragments, unsealed_fragments
from lancelake.spark.writing.wal_rows import (
    UPSERT_OPTIONS,
    Upsert,
    table_spec,
    upsert_of,
    upsert_rows,
)
from lancelake.spark.writing.write_plan import (
    SaveMode,
    commit_plan,
    ensure_columns,
    plain_rows,
    plan_write,
    written,
)

SINK_OPTIONS = (
    *WRITE_OPTIONS,
    *UPSERT_OPTIONS,
    "checkpointLocation",
    "compactEvery",
    "mergeKeys",
    "queryName",
    "targetFileRows",
)
_QUERY = "sql.streaming.queryId"


@dataclass(frozen=True, slots=True)
class WrittenPart(WriterCommitMessage):
    """Fragments that a task of a batch wrote, and the query of the batch."""

    fragments: bytes
    query: str


class LanceStreamWriter(Portable, DataSourceStreamArrowWriter):
    """Appends each batch, replaces all rows with it, or merges it by key.

    A batch is identified by the query's id, which its checkpoint stores, and by its number.
    """

    def __init__(self, schema: StructType, options: Mapping[str, str], *, overwrite: bool) -> None:
        """Open the table once, so that invalid options fail before the first batch."""
        self._options = dict(options)
        self._overwrite = overwrite
        ensure_columns(schema, self._parse())
        self._upserts = self._ensure_upsert()
        self._rows = plain_rows(self._parse(), schema, self._mode)
        self._task = self._plan().task

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenPart:
        """Write the rows of a task."""
        fragments = written(self._task, self._rows(iterator))
        context = TaskContext.get()
        query = None if context is None else context.getLocalProperty(_QUERY)
        return WrittenPart(sealed_fragments(fragments), query or "")

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Commit a batch; one without rows creates no version."""
        parts = [m for m in messages if isinstance(m, WrittenPart)]
        fragments = unsealed_fragments(part.fragments for part in parts)
        if not fragments and not self._overwrite:
            return
        query = next((part.query for part in parts if part.query), "")
        once = self._once(query, batchId)
        keys = split_list(self._parse().get("mergeKeys") or "")
        planned = self._plan()
        if self._upserts:
            _upsert(planned, fragments, Unit(query=once.app_id, batch=once.version))
            return
        if keys:
            # Keys may repeat in the first batch too, so a new table is created without rows.
            base = planned.base or commit_plan(planned, ())
            _merge(base, self._plan().adapt(once=once), fragments, keys)
        else:
            commit_plan(planned.adapt(once=once), fragments)
        self._compact_after(batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Do nothing: cleanup removes orphan files."""

    def _ensure_upsert(self) -> bool:
        """Whether batches are upserts; refuse what needs a session, or a table with a MemWAL."""
        options = self._parse()
        upsert, uri = upsert_of(options), options.location.uri
        if upsert is None:
            return False
        if upsert != Upsert():
            raise UnsupportedError(
                "options deleteWhen and sequenceBy need a Spark session, and a plain data source "
                "has none",
                table=uri,
                action="Use foreachBatch(lancelake.spark.upsert_batches(path, ...)).",
            )
        table = options.open_existing()
        if table is None:
            raise TableNotFoundError(f"there is no table at {uri}", table=uri)
        if self._overwrite:
            raise InvalidRequestError("upserts do not replace the rows of a table", table=uri)
        table_spec(table.snapshot)
        return True

    def _compact_after(self, batch: int) -> None:
        """Compact the small files of several batches; a failure does not affect the batch."""
        options = self._parse()
        every, rows = options.whole("compactEvery"), options.whole("targetFileRows")
        if not every or (batch + 1) % every:
            return
        table = options.open_existing()
        if table is None:
            return
        try:
            settings = table.maintenance.compaction_settings(target_rows_per_fragment=rows)
            table.maintenance.compact(settings)
        except LanceTableError as error:
            warnings.warn(f"the table was not compacted: {error}", stacklevel=2)

    def _once(self, query: str, batch: int) -> OnceOnly:
        app_id = self._parse().get("txnAppId") or query
        if not app_id:
            raise InvalidRequestError(
                "Spark did not provide the id of the query of a batch",
                action="Set the option txnAppId to a name that only this query uses.",
            )
        return OnceOnly(app_id=app_id, version=batch)

    @property
    def _mode(self) -> SaveMode:
        return SaveMode.OVERWRITE if self._overwrite else SaveMode.APPEND

    def _parse(self) -> TableOptions:
        return parse(self._options, SINK_OPTIONS)

    def _plan(self) -> WritePlan:
        options = self._parse()
        hidden = ("txnappid", "txnversion")
        rest = {key: value for key, value in options.rest.items() if key not in hidden}
        plan = plan_write(replace(options, rest=rest), self._rows.schema, self._mode)
        if plan is None:
            raise InvalidRequestError("streaming writes do not support this mode")
        return plan.named("STREAMING UPDATE")


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


def _upsert(planned: WritePlan, fragments: tuple[Fragment, ...], unit: Unit) -> None:
    """Write the rows of a batch to their regions; tasks of a plain source do not own regions."""
    if planned.base is None:
        raise InvalidRequestError("upserts need a table with a MemWAL")
    upsert_rows(planned.base, _read_staged(planned.base, fragments).read_all(), unit)


def _read_staged(base: Snapshot, fragments: tuple[Fragment, ...]) -> pa.RecordBatchReader:
    """Read the uncommitted rows that tasks wrote."""
    return Table(staged(base, fragments)).scan(ScanRequest()).run()
