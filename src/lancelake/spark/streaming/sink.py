"""Streaming sink: every batch is committed exactly once."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import (
    InvalidRequestError,
    LanceTableError,
    TableNotFoundError,
    UnsupportedError,
)
from lancelake.format.column_path import split_list
from lancelake.format.fragment import Fragment
from lancelake.memwal.once import Unit
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest
from lancelake.scan.stream import run
from lancelake.spark.jobs.retry_limits import PATIENCE
from lancelake.spark.options.table_options import WRITE_OPTIONS, TableOptions, parse
from lancelake.spark.worker.fragment_messages import sealed_fragments, unsealed_fragments
from lancelake.spark.worker.on_executors import Portable
from lancelake.spark.writing.frame_writer import written
from lancelake.spark.writing.wal_rows import (
    UPSERT_OPTIONS,
    Upsert,
    table_spec,
    upsert_of,
    upsert_rows,
)
from lancelake.spark.writing.write_plan import (
    SaveMode,
    ensure_columns,
    existing,
    plain_rows,
    plan_write,
)
from lancelake.table.compact.clustering import table_settings
from lancelake.table.compact.run import compact
from lancelake.table.conflict_retry import racing, until_it_lands
from lancelake.table.idempotent import OnceOnly, landed
from lancelake.table.merge.clauses import Duplicates, InsertAll, MergeSpec, UpdateAll
from lancelake.table.merge.run import prepare, with_changes
from lancelake.table.merge.source import kept
from lancelake.table.planned_write import WritePlan, commit_write
from lancelake.table.publish import publish
from lancelake.table.row_steps.staged_rows import staged

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
        ensure_columns(schema, self._parsed())
        self._upserts = self._ensure_upsert()
        self._rows = plain_rows(self._parsed(), schema, self._mode)
        self._task = self._planned().task

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
        keys = split_list(self._parsed().get("mergeKeys") or "")
        planned = self._planned()
        if self._upserts:
            _upsert(planned, fragments, Unit(query=once.app_id, batch=once.version))
            return
        if keys:
            # Keys may repeat in the first batch too, so a new table is created without rows.
            base = planned.base or commit_write(planned, ())
            _merge(base, replace(self._planned(), once=once), fragments, keys)
        else:
            commit_write(replace(planned, once=once), fragments)
        self._compact_after(batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Do nothing: cleanup removes orphan files."""

    def _ensure_upsert(self) -> bool:
        """Whether batches are upserts; refuse what needs a session, or a table with a MemWAL."""
        options = self._parsed()
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
        base = existing(options)
        if base is None:
            raise TableNotFoundError(f"there is no table at {uri}", table=uri)
        if self._overwrite:
            raise InvalidRequestError("upserts do not replace the rows of a table", table=uri)
        table_spec(base)
        return True

    def _compact_after(self, batch: int) -> None:
        """Compact the small files of several batches; a failure does not affect the batch."""
        options = self._parsed()
        every, rows = options.whole("compactEvery"), options.whole("targetFileRows")
        base = existing(options)
        if not every or (batch + 1) % every or base is None:
            return
        try:
            compact(base, table_settings(base, target_rows_per_fragment=rows))
        except LanceTableError as error:
            warnings.warn(f"the table was not compacted: {error}", stacklevel=2)

    def _once(self, query: str, batch: int) -> OnceOnly:
        app_id = self._parsed().get("txnAppId") or query
        if not app_id:
            raise InvalidRequestError(
                "Spark did not provide the id of the query of a batch",
                action="Set the option txnAppId to a name that only this query uses.",
            )
        return OnceOnly(app_id=app_id, version=batch)

    @property
    def _mode(self) -> SaveMode:
        return SaveMode.OVERWRITE if self._overwrite else SaveMode.APPEND

    def _parsed(self) -> TableOptions:
        return parse(self._options, SINK_OPTIONS)

    def _planned(self) -> WritePlan:
        options = self._parsed()
        hidden = ("txnappid", "txnversion")
        rest = {key: value for key, value in options.rest.items() if key not in hidden}
        found = plan_write(replace(options, rest=rest), self._rows.schema, self._mode)
        if found is None:
            raise InvalidRequestError("streaming writes do not support this mode")
        return found


def _merge(
    base: Snapshot, planned: WritePlan, fragments: tuple[Fragment, ...], keys: tuple[str, ...]
) -> None:
    """Merge the rows of a batch by key; of rows with the same key the last one wins."""
    once = planned.once
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

    with kept(_staged(base, fragments)) as rows:

        def work(version: Snapshot) -> Snapshot:
            ready = prepare(version, rows, spec, choices=planned.choices)
            choices = with_changes(
                racing(planned.choices, PATIENCE), ready.affected, ready.inserted_keys
            )
            return publish(version, once.stamped(ready.transaction), choices)

        until_it_lands(base, work, PATIENCE, planned.choices.surroundings)


def _upsert(planned: WritePlan, fragments: tuple[Fragment, ...], unit: Unit) -> None:
    """Write the rows of a batch to their regions; tasks of a plain source do not own regions."""
    if planned.base is None:
        raise InvalidRequestError("upserts need a table with a MemWAL")
    upsert_rows(planned.base, _staged(planned.base, fragments).read_all(), unit)


def _staged(base: Snapshot, fragments: tuple[Fragment, ...]) -> pa.RecordBatchReader:
    """Read the uncommitted rows that tasks wrote."""
    return run(plan(staged(base, fragments), ScanRequest()))
