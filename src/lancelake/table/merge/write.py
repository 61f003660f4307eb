"""Rows of a merge: built from both sides, and written with the keys of new ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import cast

import pyarrow as pa

from lancelake.data.arrays.batches import read_ahead
from lancelake.data.column_file import WriteTask, write_fragments
from lancelake.engine import port
from lancelake.engine.port import Engine, Job, Progress
from lancelake.errors import InvalidRequestError, SchemaMismatchError, suggestion
from lancelake.format.arrow_schema import public_field
from lancelake.format.fragment import Fragment, from_bytes, to_bytes
from lancelake.format.ids import FieldId
from lancelake.format.logical_types import has_blobs
from lancelake.format.schema import Field, Schema
from lancelake.table.merge.clauses import SOURCE, TARGET, Scope, ScopedValue, Sides
from lancelake.table.merge.match import Addresses, TargetRows, split_row_ids
from lancelake.table.merge.source import Comparer, RowNumbers, SourceRows, take_rows
from lancelake.table.operation_record import RowCounts
from lancelake.table.row_steps import AddedRows, with_row_ids
from lancelake.txn.key_bloom import InsertedKeys, collected, united


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedColumn:
    """The value of a column on one side."""

    side: str
    column: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Null:
    """A null value."""


ColumnValue = CopiedColumn | Null | ScopedValue


@dataclass(frozen=True, slots=True, kw_only=True)
class RowBuilder:
    """The source of the value of each column of the table."""

    schema: pa.Schema
    values: tuple[ColumnValue, ...]

    def needs(self, side: str) -> tuple[str, ...]:
        """Return the columns of a side that a row needs."""
        names: dict[str, None] = {}
        for value in self.values:
            if isinstance(value, ScopedValue):
                names.update(dict.fromkeys(value.needs.get(side, ())))
            elif isinstance(value, CopiedColumn) and value.side == side:
                names[value.column] = None
        return tuple(names)

    def build(self, sides: Sides) -> pa.RecordBatch:
        """Build the rows."""
        rows = next(iter(sides.values())).num_rows
        arrays = [
            cast_to_field(_array(value, sides, rows), column)
            for value, column in zip(self.values, self.schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def copy_columns(
    schema: Schema, source: Sequence[str], *, otherwise: ColumnValue | None
) -> RowBuilder:
    """Copy the columns that the source has; `otherwise` is used for the rest, None for target."""
    names = frozenset(source)
    values = tuple(
        CopiedColumn(side=SOURCE, column=column.name)
        if column.name in names
        else otherwise or CopiedColumn(side=TARGET, column=column.name)
        for column in schema.fields
    )
    return RowBuilder(schema=_output_schema(schema), values=values)


def compute_columns(
    schema: Schema, texts: Mapping[str, str], scope: Scope, *, otherwise: ColumnValue | None
) -> RowBuilder:
    """Compute some columns; `otherwise` is used for the rest, None for the target's value."""
    unknown = [name for name in texts if name not in schema.names]
    if unknown:
        problem = f"Column {unknown[0]!r} does not exist in the table"
        advice = suggestion(unknown[0], schema.names, "columns")
        raise InvalidRequestError(problem, column=unknown[0], action=advice)
    if not texts:
        raise InvalidRequestError("No updates provided", action="Set at least one column.")
    values = tuple(
        _computed(scope, texts[column.name], column)
        if column.name in texts
        else otherwise or CopiedColumn(side=TARGET, column=column.name)
        for column in schema.fields
    )
    return RowBuilder(schema=_output_schema(schema), values=values)


def _computed(scope: Scope, text: str, column: Field) -> ColumnValue:
    target = _cast_target(column)
    # Expressions see the descriptor of a blob, not its value.
    copied = None if has_blobs(column) else scope.column(text, target)
    if copied is None:
        return scope.value(text, target)
    side, name = copied
    return CopiedColumn(side=side, column=name)


def _output_schema(schema: Schema) -> pa.Schema:
    """Return the schema of rows passed to the writer, which checks for nulls."""
    return pa.schema([public_field(column).with_nullable(True) for column in schema.fields])


def _cast_target(column: Field) -> pa.DataType | None:
    """Return the type to which a computed value is cast; None if the writer converts it."""
    public = public_field(column).type
    if isinstance(public, pa.BaseExtensionType) or column.is_json:
        return None
    return public.value_type if pa.types.is_dictionary(public) else public


def cast_to_field(array: pa.Array, column: pa.Field) -> pa.Array:
    """Cast an array to the type of a column."""
    target = column.type
    if array.type.equals(target):
        return array
    try:
        if isinstance(target, pa.BaseExtensionType):
            storage = array.storage if isinstance(array, pa.ExtensionArray) else array
            if not storage.type.equals(target.storage_type):
                storage = storage.cast(target.storage_type)
            return pa.ExtensionArray.from_storage(target, storage)
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        if pa.types.is_dictionary(array.type) and not pa.types.is_dictionary(target):
            array = array.dictionary_decode()
        if pa.types.is_dictionary(target) and not pa.types.is_dictionary(array.type):
            array = array.cast(target.value_type).dictionary_encode()
        return array.cast(target)
    except (pa.ArrowException, NotImplementedError) as error:
        problem = f"Can't cast values of column {column.name} to type {target}: {error}"
        raise SchemaMismatchError(
            problem, path=column.name, expected=str(target), found=str(array.type)
        ) from error


def _array(value: ColumnValue, sides: Sides, rows: int) -> pa.Array:
    if isinstance(value, CopiedColumn):
        return sides[value.side].column(value.column)
    if isinstance(value, Null):
        return pa.nulls(rows)
    return value.of(sides)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyColumns:
    """The key columns of new rows, in the storage types of the table."""

    names: tuple[str, ...]
    ids: tuple[FieldId, ...]
    types: tuple[pa.DataType, ...]

    @staticmethod
    def of(fields: Sequence[Field]) -> KeyColumns:
        """Create the key from columns of a table."""
        return KeyColumns(
            names=tuple(column.name for column in fields),
            ids=tuple(column.id for column in fields),
            types=tuple(Comparer.of(column).plain for column in fields),
        )

    def values(self, rows: pa.RecordBatch) -> list[pa.Array]:
        """Return the keys of rows as recorded by all writers of the table."""
        pairs = zip(self.names, self.types, strict=True)
        return [rows.column(name).cast(dtype) for name, dtype in pairs]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowBatch:
    """New rows, or new values of rows of the table, with the row ids that they keep."""

    rows: pa.RecordBatch
    is_new: bool
    row_ids: pa.Array | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenRows:
    """What one task has written: fragments, numbers of rows, and the keys of new ones."""

    fragments: bytes
    inserted: int
    updated: int
    keys: InsertedKeys | None


@dataclass(slots=True)
class _Tally:
    """Counts rows on their way to the files, and collects their row ids and keys."""

    key: KeyColumns | None
    inserted: int = 0
    updated: int = 0
    row_ids: list[pa.Array] = field(default_factory=list)
    keys: list[InsertedKeys] = field(default_factory=list)

    def count(self, batches: Iterable[RowBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.is_new:
                self.inserted += batch.rows.num_rows
                if self.key is not None:
                    self.keys.append(collected(self.key.ids, [self.key.values(batch.rows)]))
            else:
                self.updated += batch.rows.num_rows
            if batch.row_ids is not None:
                self.row_ids.append(batch.row_ids)
            if batch.rows.num_rows:
                yield batch.rows


def write_rows(
    task: WriteTask,
    batches: Iterable[RowBatch],
    key: KeyColumns | None,
    *,
    expected: int = 0,
) -> WrittenRows:
    """Write rows to new files; rows that keep their row ids come first.

    If many are expected, rows are built while others are written.
    """
    tally = _Tally(key)
    rows = tally.count(batches)
    first = next(rows, None)
    fragments: tuple[Fragment, ...] = ()
    if first is not None:
        with closing(read_ahead(chain([first], rows), rows=expected)) as ready:
            reader = pa.RecordBatchReader.from_batches(first.schema, ready)
            fragments = write_fragments(task, reader)
    return WrittenRows(
        fragments=to_bytes(with_row_ids(fragments, tally.row_ids) if tally.row_ids else fragments),
        inserted=tally.inserted,
        updated=tally.updated,
        keys=_unite(tally.keys),
    )


def _unite(keys: Sequence[InsertedKeys]) -> InsertedKeys | None:
    return united(keys) if len(keys) > 1 else next(iter(keys), None)


def added_rows(parts: Sequence[WrittenRows], key: KeyColumns | None, *, deleted: int) -> AddedRows:
    """Return what all tasks have written; with a key, its filter is recorded, even if empty."""
    keys = _unite([part.keys for part in parts if part.keys is not None])
    if keys is None and key is not None:
        keys = collected(key.ids, [])
    return AddedRows(
        fragments=tuple(f for part in parts for f in from_bytes(part.fragments)),
        keys=keys,
        counts=RowCounts(
            inserted=sum(part.inserted for part in parts),
            updated=sum(part.updated for part in parts),
            deleted=deleted,
        ),
    )


TASK_BYTES = 256 << 20
"""Estimated memory of a task that writes rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdatedRows:
    """Updated rows of the table; `numbers` is None without source rows."""

    builder: RowBuilder
    target: TargetRows | None
    addresses: Addresses
    numbers: RowNumbers | None
    source: SourceRows
    keeps_row_ids: bool

    def __len__(self) -> int:
        return len(self.addresses)

    def part(self, start: int, stop: int) -> UpdatedRows:
        """Return a range of the rows."""
        numbers = None if self.numbers is None else self.numbers[start:stop]
        return replace(self, addresses=self.addresses[start:stop], numbers=numbers)

    def batches(self) -> Iterator[RowBatch]:
        """Build the rows."""
        theirs = None if self.numbers is None else self.source.columns(self.builder.needs(SOURCE))
        step = self.source.batch_rows
        if self.target is not None:
            step = min(step, self.target.batch_rows)
        for start in range(0, len(self), step):
            sides: dict[str, pa.RecordBatch] = {}
            ids = None
            if self.target is not None:
                mine = self.target.at(self.addresses[start : start + step])
                if self.keeps_row_ids:
                    mine, ids = split_row_ids(mine)
                sides[TARGET] = mine
            if theirs is not None and self.numbers is not None:
                sides[SOURCE] = take_rows(theirs, self.numbers[start : start + step])
            yield RowBatch(rows=self.builder.build(sides), is_new=False, row_ids=ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRows:
    """Rows of the source that are inserted."""

    builder: RowBuilder
    numbers: RowNumbers
    source: SourceRows

    def __len__(self) -> int:
        return len(self.numbers)

    def part(self, start: int, stop: int) -> NewRows:
        """Return a range of the rows."""
        return replace(self, numbers=self.numbers[start:stop])

    def batches(self) -> Iterator[RowBatch]:
        """Build the rows."""
        for batch in self.source.batches(self.numbers, self.builder.needs(SOURCE)):
            yield RowBatch(rows=self.builder.build({SOURCE: batch}), is_new=True)


Portion = UpdatedRows | NewRows


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePortions:
    """Writes portions to new files, updated rows before new ones."""

    portions: tuple[Portion, ...]
    write: WriteTask
    key: KeyColumns | None

    @property
    def memory_bytes(self) -> int:
        """Estimated memory of a run."""
        return TASK_BYTES

    def run(self) -> bytes:
        """Return `WrittenRows` as a message."""
        batches = (batch for portion in self.portions for batch in portion.batches())
        rows = sum(map(len, self.portions))
        return port.dumps(write_rows(self.write, batches, self.key, expected=rows))


def write_portions(
    portions: Sequence[Portion],
    write: WriteTask,
    key: KeyColumns | None,
    engine: Engine,
    *,
    progress: Progress | None = None,
) -> list[WrittenRows]:
    """Write portions, in files as full as allowed."""
    tasks = [
        WritePortions(portions=group, write=write, key=key)
        for group in _divide(portions, write.max_rows_per_file)
    ]
    job = Job(description=f"write rows of {write.root.uri}", tasks=tasks, progress=progress)
    return [cast("WrittenRows", port.loads(result)) for result in engine.run(job)]


def _divide(portions: Sequence[Portion], most: int) -> Iterator[tuple[Portion, ...]]:
    """Split portions into groups of one file each, in order."""
    group: list[Portion] = []
    room = most
    for portion in portions:
        start = 0
        while start < len(portion):
            stop = min(start + room, len(portion))
            group.append(portion.part(start, stop))
            room -= stop - start
            start = stop
            if room == 0:
                yield tuple(group)
                group, room = [], most
    if group:
        yield tuple(group)
