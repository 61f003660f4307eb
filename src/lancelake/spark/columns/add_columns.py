"""Add columns computed by Spark: one more file per fragment, without rewriting rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import types as t

from lancelake.commit.snapshot import Snapshot
from lancelake.data.deletion_files import load_deletions
from lancelake.errors import InvalidRequestError
from lancelake.format.evolution import Widened
from lancelake.format.fragment import DataFile, Fragment
from lancelake.format.fragment_bytes import from_bytes
from lancelake.format.ids import OFFSET_BITS, FragmentId
from lancelake.spark.columns.column_writer import ADDRESS, WriteColumns
from lancelake.spark.jobs.engine import SparkEngine
from lancelake.spark.jobs.partition_job import on_partitions
from lancelake.spark.jvm.gateway import is_classic
from lancelake.spark.reading.needed_columns import empty_frame, needed_columns
from lancelake.spark.reading.target_frame import fragments_frame
from lancelake.spark.types import arrow_schema, spark_schema
from lancelake.storage.open import open_store
from lancelake.table.column_task import written, written_file
from lancelake.table.columns.add import add_mapped_columns, widened
from lancelake.table.columns.backfill import PATIENCE, column_file, publish_columns
from lancelake.table.columns.checkpoint import Checkpoint, source_key
from lancelake.table.columns.syncing import Syncing
from lancelake.table.columns.udf import BatchFunction
from lancelake.table.conflict_retry import until_it_lands
from lancelake.table.publish import DEFAULT_CHOICES, CommitChoices

_FRAGMENT = "__lance_fragment"
# Fragments between two entries of a checkpoint, for each parallel task.
_WAVE = 4


def add_spark_columns(
    spark: SparkSession,
    base: Snapshot,
    columns: Mapping[str, Column],
    *,
    types: Mapping[str, pa.DataType] | None = None,
    checkpoint: Path | None = None,
    choices: CommitChoices = DEFAULT_CHOICES,
) -> Snapshot:
    """Add columns with the values of Spark expressions, including pandas and Arrow UDFs.

    Each fragment is read, computed and written by the same task, in row order. `types` stores
    columns as other Arrow types than Spark's. With a checkpoint, fragments that an earlier run has
    written are not computed again.
    """
    unknown = sorted(set(types or {}) - set(columns))
    if unknown:
        raise InvalidRequestError(
            f"types has an entry for a column that is not added: {unknown[0]}"
        )
    kept = None if checkpoint is None else Checkpoint(path=checkpoint)
    addition = _Addition(spark, columns, types or {}, kept, choices)
    made = until_it_lands(base, addition.attempt, PATIENCE, choices.surroundings)
    if kept is not None:
        kept.remove()
    return made


def add_function_columns(
    spark: SparkSession,
    base: Snapshot,
    function: Callable[[pa.RecordBatch], Any],
    schema: pa.Schema,
) -> Snapshot:
    """Add the columns that a function on Arrow batches returns, called on executors."""
    portable = _Portable(function)
    mapped = BatchFunction(function=portable, output_schema=schema)
    return add_mapped_columns(base, mapped, engine=SparkEngine(spark))


class _Portable:
    """A function that can be pickled wherever it was defined."""

    def __init__(self, function: Callable[[pa.RecordBatch], Any]) -> None:
        self._function = function

    def __call__(self, batch: pa.RecordBatch) -> Any:
        return self._function(batch)

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpacked, (cloudpickle.dumps(self._function),)  # type: ignore[no-untyped-call]


def _unpacked(data: bytes) -> _Portable:
    return _Portable(cloudpickle.loads(data))


@dataclass(slots=True)
class _Addition:
    """One addition of columns, through all its attempts."""

    spark: SparkSession
    columns: Mapping[str, Column]
    types: Mapping[str, pa.DataType]
    checkpoint: Checkpoint | None
    choices: CommitChoices
    done: dict[object, DataFile | None] = field(default_factory=dict)

    def attempt(self, at: Snapshot) -> Snapshot:
        """Write what is missing for a version, and commit."""
        data = self._schema(at)
        wanted = [f.with_type(self.types.get(f.name, f.type)) for f in data]
        wide = widened(at, pa.schema(wanted))
        column_file(at, wide.added, casts=True).ensure_possible(data)
        fragments = list(at.manifest.fragments)
        self._recall(at, wide, fragments)
        missing = [f for f in fragments if _key(f, wide) not in self.done]
        with Syncing(at.location) as syncing:
            for wave in self._waves(missing):
                for fragment, file in self._written(at, wide, data, wave):
                    self._keep(at, wide, fragment, file)
                    syncing.add(file)
        files = {f.id: self.done.get(_key(f, wide)) for f in fragments}
        return publish_columns(at, wide.schema, files, self.choices)

    def _schema(self, at: Snapshot) -> pa.Schema:
        shown = self._selected(at, ()).drop(ADDRESS).schema
        fields = [t.StructField(f.name, f.dataType, True, f.metadata) for f in shown.fields]
        return arrow_schema(t.StructType(fields))

    def _selected(self, at: Snapshot, ids: Sequence[FragmentId]) -> DataFrame:
        values = [column.alias(name) for name, column in self.columns.items()]
        frame = fragments_frame(self.spark, at, ids, self._needed(at, values))
        return frame.select(*values, frame[ADDRESS])

    def _needed(self, at: Snapshot, values: Sequence[Column]) -> Sequence[str]:
        """Return the columns to read; classic sessions prune unused ones."""
        if is_classic(self.spark):
            return at.manifest.schema.names
        schema = spark_schema(at.manifest.schema)

        def build(columns: Sequence[str]) -> DataFrame:
            return empty_frame(self.spark, [schema[name] for name in columns]).select(*values)

        return needed_columns(build, schema.names)

    def _waves(self, missing: list[Fragment]) -> Iterator[Sequence[Fragment]]:
        if self.checkpoint is None:
            yield from [missing] if missing else []
        else:
            step = _WAVE * SparkEngine(self.spark).parallelism
            yield from (missing[i : i + step] for i in range(0, len(missing), step))

    def _written(
        self, at: Snapshot, wide: Widened, data: pa.Schema, wave: Sequence[Fragment]
    ) -> Iterator[tuple[Fragment, DataFile | None]]:
        work = WriteColumns(
            file=column_file(at, wide.added, casts=True),
            files=at.files,
            manifest_at=at.manifest_at,
            fragments={int(f.id): f for f in wave},
            schema=data,
        )
        rows = self._in_order(self._selected(at, [f.id for f in wave]))
        description = f"add columns {', '.join(self.columns)} to {at.location.uri}"
        found = on_partitions(rows, work, description=description)
        files = {_number(entry): written_file(entry) for part in found for entry in part}
        yield from ((fragment, files.get(int(fragment.id))) for fragment in wave)

    def _in_order(self, rows: DataFrame) -> DataFrame:
        """Restore the row order of each fragment if an expression moved rows."""
        if not is_classic(self.spark):
            return rows
        plan = rows._jdf.queryExecution().executedPlan().toString()
        if "Exchange" not in plan:
            return rows
        numbered = rows.withColumn(_FRAGMENT, rows[ADDRESS].bitwiseAND(-1 << OFFSET_BITS))
        return numbered.repartition(_FRAGMENT).sortWithinPartitions(ADDRESS).drop(_FRAGMENT)

    def _recall(self, at: Snapshot, wide: Widened, fragments: Sequence[Fragment]) -> None:
        """Reuse the files of an earlier run, if they still exist."""
        if self.checkpoint is None:
            return
        for fragment in fragments:
            result = self.checkpoint.fragment(_source(at, wide, fragment))
            file = None if result is None else written_file(result)
            if file is not None:
                place = at.files.data_file(file)
                if open_store(place.root).exists(place.path):
                    self.done[_key(fragment, wide)] = file

    def _keep(self, at: Snapshot, wide: Widened, fragment: Fragment, file: DataFile | None) -> None:
        self.done[_key(fragment, wide)] = file
        if self.checkpoint is not None:
            source = _source(at, wide, fragment)
            self.checkpoint.keep_fragment(source, written(fragment, file))


def _number(entry: bytes) -> int:
    (fragment,) = from_bytes(entry)
    return int(fragment.id)


def _source(at: Snapshot, wide: Widened, fragment: Fragment) -> str:
    deleted = bytes(load_deletions(at.files, fragment).serialize())
    return source_key(fragment, deleted, wide.added, 0)


def _key(fragment: Fragment, wide: Widened) -> object:
    """Return a key of rows that have the same values; deleted rows do not count."""
    return fragment.id, fragment.files, wide.added.fields
