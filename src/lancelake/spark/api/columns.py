"""Columns of `LanceTable`, added on executors."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import types as t

from lancelake.core.table import Table
from lancelake.core.values.metadata import (
    OFFSET_BITS,
    DataFile,
    FileAt,
    Fragment,
    FragmentId,
    Snapshot,
    TableFiles,
    Widened,
    fragment_of,
    from_bytes,
    offset_of,
)
from lancelake.core.values.reads import MetaColumn
from lancelake.core.values.tasks import (
    PATIENCE,
    ColumnFile,
    LiveRows,
    Syncing,
    column_file,
    load_deletions,
    physical_rows,
    written,
    written_file,
)
from lancelake.core.values.writes import (
    DEFAULT_CHOICES,
    BatchFunction,
    Checkpoint,
    ColumnChange,
    CommitChoices,
    retry_on_newest,
    source_key,
)
from lancelake.errors import InvalidRequestError, SchemaMismatchError
from lancelake.spark.jobs.engine import SparkEngine, on_partitions
from lancelake.spark.jobs.target_frame import fragments_frame
from lancelake.spark.jvm.gateway import is_classic
from lancelake.spark.sql.alter_table import drop_columns
from lancelake.spark.sql.procedures import TableAccess
from lancelake.spark.tasks.columns import empty_frame, needed_columns
from lancelake.spark.values.options import as_column
from lancelake.spark.values.spark_types import (
    arrow_schema,
    arrow_type,
    nullable_schema,
    spark_schema,
)

ADDRESS = MetaColumn.ROW_ADDRESS.value


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteColumns:
    """Writes the columns of whole fragments; every row has its address."""

    file: ColumnFile
    files: TableFiles
    manifest_at: FileAt
    fragments: Mapping[int, Fragment]
    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> list[bytes]:
        """Write the fragments of a partition and return the entries of their files."""
        runs = itertools.groupby(_pieces(batches), key=lambda piece: piece[0])
        return [self._fragment(number, (batch for _, batch in run)) for number, run in runs]

    def _fragment(self, number: int, rows: Iterator[pa.RecordBatch]) -> bytes:
        fragment = self.fragments[number]
        deleted = load_deletions(self.files, fragment)
        live = LiveRows(deleted)
        entry = self.file.write(
            self._values(rows, live, number),
            self.schema,
            deleted=deleted,
            physical_rows=physical_rows(self.files, self.manifest_at, fragment),
        )
        return written(fragment, entry)

    def _values(
        self, rows: Iterable[pa.RecordBatch], live: LiveRows, number: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield the new columns, after checking that rows are complete and in order."""
        rank = 0
        for batch in rows:
            offsets = offset_of(_addresses(batch))
            ranks = np.arange(rank, rank + batch.num_rows, dtype=np.uint64)
            if not np.array_equal(offsets, live.offsets_of(ranks)):
                raise SchemaMismatchError(
                    f"the rows of fragment {number} are incomplete or out of order",
                    fragment=number,
                    action="Use expressions that return one value for each row.",
                )
            rank += batch.num_rows
            yield pa.RecordBatch.from_arrays(
                [batch.column(name) for name in self.schema.names], schema=self.schema
            )


def _addresses(batch: pa.RecordBatch) -> npt.NDArray[np.uint64]:
    addresses: npt.NDArray[np.int64] = batch.column(ADDRESS).to_numpy(zero_copy_only=False)
    return addresses.astype(np.uint64)


def _pieces(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Split batches at fragment boundaries."""
    for batch in batches:
        if not batch.num_rows:
            continue
        numbers = fragment_of(_addresses(batch))
        cuts = np.flatnonzero(numbers[1:] != numbers[:-1]) + 1
        edges = [0, *cuts.tolist(), batch.num_rows]
        for start, stop in itertools.pairwise(edges):
            yield int(numbers[start]), batch.slice(start, stop - start)


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
    progress = None if checkpoint is None else Checkpoint(path=checkpoint)
    addition = _Addition(spark, columns, types or {}, progress, choices)
    after = retry_on_newest(base, addition.attempt, PATIENCE)
    if progress is not None:
        progress.remove()
    return after


def add_function_columns(
    spark: SparkSession,
    base: Snapshot,
    function: Callable[[pa.RecordBatch], Any],
    schema: pa.Schema,
) -> Snapshot:
    """Add the columns that a function on Arrow batches returns, called on executors."""
    portable = _Portable(function)
    mapped = BatchFunction(function=portable, output_schema=schema)
    return Table(base).columns.add_mapped(mapped, engine=SparkEngine(spark))


class _Portable:
    """A function that can be pickled wherever it was defined."""

    def __init__(self, function: Callable[[pa.RecordBatch], Any]) -> None:
        self._function = function

    def __call__(self, batch: pa.RecordBatch) -> Any:
        return self._function(batch)

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpack, (cloudpickle.dumps(self._function),)  # type: ignore[no-untyped-call]


def _unpack(data: bytes) -> _Portable:
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
        wide = Table(at).columns.plan_added(pa.schema(wanted))
        column_file(at, wide.added, casts=True).ensure_possible(data)
        fragments = list(at.manifest.fragments)
        self._recall(at, wide, fragments)
        missing = [f for f in fragments if _key(f, wide) not in self.done]
        with Syncing(at.location) as syncing:
            for wave in self._waves(missing):
                for fragment, file in self._write(at, wide, data, wave):
                    self._keep(at, wide, fragment, file)
                    syncing.add(file)
        files = {f.id: self.done.get(_key(f, wide)) for f in fragments}
        return Table(at).columns.publish(wide.schema, files, self.choices)

    def _schema(self, at: Snapshot) -> pa.Schema:
        return arrow_schema(nullable_schema(self._select(at, ()).drop(ADDRESS).schema))

    def _select(self, at: Snapshot, ids: Sequence[FragmentId]) -> DataFrame:
        values = [column.alias(name) for name, column in self.columns.items()]
        frame = fragments_frame(self.spark, at, ids, self._needed_columns(at, values))
        return frame.select(*values, frame[ADDRESS])

    def _needed_columns(self, at: Snapshot, values: Sequence[Column]) -> Sequence[str]:
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

    def _write(
        self, at: Snapshot, wide: Widened, data: pa.Schema, wave: Sequence[Fragment]
    ) -> Iterator[tuple[Fragment, DataFile | None]]:
        work = WriteColumns(
            file=column_file(at, wide.added, casts=True),
            files=at.files,
            manifest_at=at.manifest_at,
            fragments={int(f.id): f for f in wave},
            schema=data,
        )
        rows = self._in_order(self._select(at, [f.id for f in wave]))
        description = f"add columns {', '.join(self.columns)} to {at.location.uri}"
        parts = on_partitions(rows, work, description=description)
        files = {_number(entry): written_file(entry) for part in parts for entry in part}
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
                if place.store.exists(place.path):
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


NewColumns = Mapping[str, str | Column] | t.StructType | str | Callable[[pa.RecordBatch], Any]


class TableColumns(TableAccess):
    """Methods that add, drop and change the columns of a table."""

    def addColumns(
        self,
        columns: NewColumns,
        *,
        types: Mapping[str, pa.DataType] | None = None,
        checkpoint: str | None = None,
        outputSchema: pa.Schema | None = None,
    ) -> None:
        """Add columns computed on the executors, or null columns from a schema.

        No row is rewritten.

        Args:
            columns: Spark expressions by name, as columns or SQL text, including pandas and Arrow
                UDFs; a function that receives Arrow batches of the table; or a schema of null
                columns.
            types: Arrow types to store expressions as, such as fixed-size lists.
            checkpoint: Path of a file that lets a later run skip fragments that this one has
                written.
            outputSchema: Arrow schema of what a function returns.

        Raises:
            InvalidRequestError: No column is named, or `outputSchema` is missing.
            FunctionError: A function failed; nothing was committed.

        Examples:
            >>> table.addColumns({"double": "score * 2"})
            >>> table.toDF().where("id = 1").first().double
            3.0
        """
        spark, base = self._table.spark, self.snapshot()
        if isinstance(columns, str | t.StructType):
            schema = _parse_columns(columns) if isinstance(columns, str) else columns
            Table(base).columns.add_null_members(arrow_schema(schema), engine=self._table.engine)
        elif not isinstance(columns, Mapping):
            if outputSchema is None:
                raise InvalidRequestError("outputSchema is required for a function")
            add_function_columns(spark, base, columns, outputSchema)
        elif not columns:
            raise InvalidRequestError(
                "no columns were specified", action="Name at least one column."
            )
        else:
            file = None if checkpoint is None else Path(checkpoint)
            values = {name: as_column(value) for name, value in columns.items()}
            add_spark_columns(spark, base, values, types=types, checkpoint=file)

    def dropColumns(self, *columns: str) -> None:
        """Drop columns.

        Args:
            *columns: Names, or paths of struct fields.

        Raises:
            ColumnNotFoundError: The table has no such column.

        Examples:
            >>> table.dropColumns("score")
            >>> table.toDF().columns
            ['id', 'name']
        """
        drop_columns(self.snapshot(), columns)

    def renameColumn(self, existing: str, new: str) -> None:
        """Rename a column.

        Args:
            existing: The column, or the path of a struct field.
            new: The new name.

        Raises:
            ColumnNotFoundError: The table has no such column.

        Examples:
            >>> table.renameColumn("score", "points")
            >>> table.toDF().columns
            ['id', 'name', 'points']
        """
        self._alter(ColumnChange(path=existing, name=new))

    def alterColumn(
        self,
        column: str,
        *,
        dataType: t.DataType | str | None = None,
        nullable: bool | None = None,
    ) -> None:
        """Change the type or the nullability of a column.

        Args:
            column: The column, or the path of a struct field.
            dataType: The new type, as a Spark type or text.
            nullable: Whether the column may have nulls.

        Raises:
            ColumnNotFoundError: The table has no such column.

        Examples:
            >>> table.alterColumn("score", dataType="float")
            >>> dict(table.toDF().dtypes)["score"]
            'float'
        """
        named = (
            _parse_columns(f"x {dataType}")["x"].dataType if isinstance(dataType, str) else dataType
        )
        wanted: pa.DataType | None = None if named is None else arrow_type(named)
        self._alter(ColumnChange(path=column, nullable=nullable, data_type=wanted))

    def _alter(self, change: ColumnChange) -> None:
        self._table.open().columns.alter([change], engine=self._table.engine)


def _parse_columns(columns: str) -> t.StructType:
    schema = t.StructType.fromDDL(columns)
    if not isinstance(schema, t.StructType):
        raise InvalidRequestError(f"{columns!r} is not a list of columns with types")
    return schema
