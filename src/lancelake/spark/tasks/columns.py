"""Columns and values as Spark reads them.

For sessions of Spark Connect, which do not return resolved expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

from lancelake.core.values.metadata import Snapshot
from lancelake.core.values.reads import MetaColumn
from lancelake.core.values.tasks import struct_of
from lancelake.errors import InternalError, SchemaMismatchError

FRAGMENT_ID = "_fragid"
SCANNED = tuple(c.value for c in MetaColumn if c is not MetaColumn.ROW_OFFSET)
"""Metadata columns that a scan itself returns."""

_COMMENTS = {
    "_rowid": "identifies a row; stable across rewrites if the table has stable row ids",
    "_rowaddr": "fragment id in the upper 32 bits, offset in the lower",
    FRAGMENT_ID: "fragment that contains the row",
    "_row_created_at_version": "version in which the row was created",
    "_row_last_updated_at_version": "version in which the row was last updated",
}
NAMES = tuple(_COMMENTS)


def fields() -> list[t.StructField]:
    """Return the metadata columns in Spark types."""
    return [t.StructField(name, t.LongType(), nullable=False) for name in NAMES]


def fragment_type(snapshot: Snapshot) -> Callable[[tuple[str, ...]], pa.DataType | None]:
    """Return a type lookup for only the fragment id column."""
    is_own = FRAGMENT_ID in snapshot.manifest.schema.names
    return lambda path: pa.int64() if path == (FRAGMENT_ID,) and not is_own else None


def comment(name: str) -> str:
    """Return the comment of a metadata column."""
    return _COMMENTS[name]


def with_fragment_id(batch: pa.RecordBatch, wanted: pa.Schema, fragment_id: int) -> pa.RecordBatch:
    """Add the fragment id if it is requested and not a column of the table."""
    if FRAGMENT_ID not in wanted.names or FRAGMENT_ID in batch.schema.names:
        return batch
    ids = pa.repeat(pa.scalar(fragment_id, pa.int64()), batch.num_rows)
    if not batch.num_columns:
        return pa.RecordBatch.from_arrays([ids], names=[FRAGMENT_ID])
    return batch.append_column(FRAGMENT_ID, ids)


# Without a column of that name, Spark resolves such a word as a function.
_FUNCTIONS_WITHOUT_PARENTHESES = frozenset(
    {
        "current_catalog",
        "current_database",
        "current_date",
        "current_schema",
        "current_time",
        "current_timestamp",
        "current_user",
        "grouping__id",
        "localtimestamp",
        "session_user",
        "user",
    }
)
_LOGS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")

Build = Callable[[Sequence[str]], DataFrame]


def needed_columns(
    build: Build, columns: Sequence[str], always: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return a minimal set of columns with which a frame can be resolved.

    `build` creates the frame from the columns it is given. If all of them do not suffice, Spark's
    error is raised.
    """
    build(columns).schema  # noqa: B018  # Spark resolves the frame here
    functions = {c for c in columns if c.lower() in _FUNCTIONS_WITHOUT_PARENTHESES}
    required = [c for c in columns if c in functions or c in always]
    rest = [c for c in columns if c not in functions and c not in always]
    with _without_log():
        needed = {*required, *_fewest(build, rest, required)}
    return tuple(c for c in columns if c in needed)


def empty_frame(spark: SparkSession, fields: Sequence[t.StructField]) -> DataFrame:
    """Return a frame without rows."""
    return spark.createDataFrame([], t.StructType(list(fields)))


@contextmanager
def _without_log() -> Iterator[None]:
    """Suppress logging of failed attempts, since Spark logs every error with its stack trace."""
    loggers = [PySparkLogger.getLogger(name) for name in _LOGS]
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, was_disabled in zip(loggers, before, strict=True):
            logger.disabled = was_disabled


def _fewest(build: Build, candidates: Sequence[str], beside: Sequence[str]) -> list[str]:
    """Return the candidates that are needed in addition to other columns, by bisection."""
    if not candidates or _resolves(build, beside):
        return []
    if len(candidates) == 1:
        return list(candidates)
    middle = len(candidates) // 2
    first, second = candidates[:middle], candidates[middle:]
    of_second = _fewest(build, second, [*beside, *first])
    return [*_fewest(build, first, [*beside, *of_second]), *of_second]


def _resolves(build: Build, columns: Sequence[str]) -> bool:
    try:
        build(columns).schema  # noqa: B018  # Spark resolves the frame here
    except AnalysisException:
        return False
    return True


class SparkConformer:
    """Converts batches to a schema; columns are matched by name.

    Batches of older versions may lack columns and struct fields: with `fills`, these are null.
    """

    def __init__(self, target: pa.Schema, *, fills: bool = False) -> None:
        self._target, self._fills = target, fills
        self._required = [field.name for field in target if not field.nullable]

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the batch in the target schema."""
        conformed = self._convert(batch)
        for name in self._required:
            if conformed.column(name).null_count:
                # Spark reads a null of such a column as a number, without an error.
                raise SchemaMismatchError(
                    f"column {name} has nulls, but it is NOT NULL in the schema of this read",
                    column=name,
                    action="Read it with a schema in which the column is nullable.",
                )
        return conformed

    def _convert(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if batch.schema.equals(self._target, check_metadata=True):
            return batch
        if not len(self._target):
            return pa.RecordBatch.from_struct_array(
                pa.Array.from_buffers(pa.struct([]), batch.num_rows, [None])
            )
        columns = _by_name(
            dict(zip(batch.schema.names, batch.columns, strict=True)),
            self._target,
            batch.num_rows if self._fills else None,
        )
        return pa.RecordBatch.from_arrays(columns, schema=self._target)


def conform(array: pa.Array, target: pa.DataType, *, fills: bool = False) -> pa.Array:
    """Return values in the target type; struct fields are matched by name."""
    if isinstance(array, pa.ExtensionArray):
        return conform(array.storage, target, fills=fills)
    if array.type.equals(target, check_metadata=True):
        return array
    if pa.types.is_dictionary(array.type):
        return conform(array.dictionary_decode(), target, fills=fills)
    if pa.types.is_struct(target):
        members = {f.name: array.field(i) for i, f in enumerate(array.type)}
        arrays = _by_name(members, target, len(array) if fills else None)
        return struct_of(arrays, list(target), array)
    if pa.types.is_map(target):
        return _map(array, target, fills=fills)
    if pa.types.is_list(target):
        return _list(array, target, fills=fills)
    # Spark has microsecond precision; finer values are truncated.
    return array.cast(target, safe=not pa.types.is_temporal(target))


def _by_name(
    arrays: Mapping[str, pa.Array], target: Iterable[pa.Field], filled: int | None
) -> list[pa.Array]:
    """Return the values of fields; missing ones are nulls of that length, if there is one."""
    columns: list[pa.Array] = []
    for field in target:
        if field.name in arrays:
            columns.append(conform(arrays[field.name], field.type, fills=filled is not None))
        elif filled is not None:
            columns.append(pa.nulls(filled, field.type))
        else:
            raise InternalError(f"field {field.name} was not read")
    return columns


def _list(array: pa.Array, target: pa.ListType, *, fills: bool) -> pa.Array:
    if not pa.types.is_list(array.type):
        array = array.cast(pa.list_(array.type.value_field))
    values = conform(array.values, target.value_type, fills=fills)
    return pa.Array.from_buffers(
        target, len(array), array.buffers()[:2], array.null_count, array.offset, [values]
    )


def _map(array: pa.MapArray, target: pa.MapType, *, fills: bool) -> pa.Array:
    keys = conform(array.keys, target.key_type, fills=fills)
    items = conform(array.items, target.item_type, fills=fills)
    fields = [target.key_field, target.item_field]
    entries = pa.StructArray.from_arrays([keys, items], fields=fields)
    return pa.Array.from_buffers(
        target, len(array), array.buffers()[:2], array.null_count, array.offset, [entries]
    )
