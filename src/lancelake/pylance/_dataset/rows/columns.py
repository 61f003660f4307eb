"""Dataset and fragment methods that add, drop and change columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias, TypedDict

import pyarrow as pa

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import InvalidRequestError
from lancelake.format.fragment import Fragment
from lancelake.pylance._dataset.arguments.os_errors import names_dataset, os_errors
from lancelake.pylance._dataset.state.guarded import GuardedDataset
from lancelake.pylance._values.fragment_metadata import FragmentMetadata, from_fragment
from lancelake.pylance.schema import LanceSchema
from lancelake.pylance.types import ReaderLike
from lancelake.pylance.udf import BatchUDF, to_function
from lancelake.suggest import suggestion
from lancelake.table import ingest
from lancelake.table.columns import add, alter, drop, join, one_fragment
from lancelake.table.columns.alter import ColumnChange
from lancelake.table.columns.join import JoinKey

Transforms: TypeAlias = Any
"""SQL expressions by name, a function on batches, any `ReaderLike`, or fields of null columns."""

_ALTERABLE = ("path", "name", "nullable", "data_type")


class AlterColumn(TypedDict, total=False):
    """Changes of one column."""

    path: str
    name: str | None
    nullable: bool | None
    data_type: pa.DataType | None


class DatasetColumns(GuardedDataset):
    """Methods that change the columns of a table."""

    _snapshot: Snapshot

    @names_dataset
    @os_errors()
    def add_columns(
        self,
        transforms: Transforms,
        read_columns: list[str] | None = None,
        reader_schema: pa.Schema | None = None,
        batch_size: int | None = None,
    ) -> None:
        """Add columns: computed by SQL or by a function, from other rows, or null.

        Args:
            transforms: SQL expressions by name; a function on batches (see `batch_udf`); rows, as
                many as the table has and in table order; or Arrow fields or a schema of null
                columns.
            read_columns: Columns that a function receives; by default all.
            reader_schema: Schema of rows that have no types of their own.
            batch_size: Rows per batch that a function receives, by default 1024.

        Raises:
            FunctionError: The function failed; nothing was committed.
            InvalidRequestError: A column exists already, or the number of rows differs.

        Examples:
            >>> ds.add_columns({"double": "score * 2"})
            >>> ds.add_columns(pa.field("note", pa.string()))
            >>> ds.head(1, columns=["double", "note"]).to_pylist()
            [{'double': 3.0, 'note': None}]
        """
        base = self._snapshot
        schema = _null_columns(transforms)
        if schema is not None:
            self._snapshot = add.add_null_columns(base, schema, choices=self._choices)
        elif isinstance(transforms, dict):
            expressions = _expressions(transforms)
            self._snapshot = add.add_computed_columns(
                base, expressions, batch_rows=batch_size, choices=self._choices
            )
        elif callable(transforms):
            source: Any = self
            function = to_function(transforms, source, read_columns, batch_size)
            self._snapshot = add.add_mapped_columns(base, function, choices=self._choices)
        else:
            reader = _reader(transforms, reader_schema)
            self._snapshot = add.add_streamed_columns(base, reader, choices=self._choices)

    def drop_columns(self, columns: list[str]) -> None:
        """Drop columns, or struct fields by path; their data remains in the files.

        Args:
            columns: Names of columns, or paths such as `address.street`.

        Raises:
            ColumnNotFoundError: The table has no such column.

        Examples:
            >>> ds.drop_columns(["score"])
            >>> ds.schema.names
            ['id', 'name']
        """
        self._snapshot = drop.drop_columns(self._snapshot, columns, choices=self._choices)

    @names_dataset
    def alter_columns(self, *alterations: AlterColumn) -> None:
        """Rename columns, or change their type or nullability.

        Indices on a column whose type changes are dropped.

        Args:
            *alterations: One dict per column: its `path`, and `name`, `nullable` or `data_type`.

        Raises:
            InvalidRequestError: A key is unknown, or nothing is to be changed.
            ColumnNotFoundError: The table has no such column.

        Examples:
            >>> ds.alter_columns({"path": "score", "name": "points", "data_type": pa.float32()})
            >>> ds.schema.field("points").type
            DataType(float)
        """
        changes = [_change(each) for each in alterations]
        with os_errors():
            self._snapshot = alter.alter_columns(self._snapshot, changes, choices=self._choices)

    def reorder_columns(self, names: list[str]) -> None:
        """Move columns to the front, in this order; the others keep theirs.

        Args:
            names: The columns to move.

        Raises:
            ColumnNotFoundError: The table has no such column.

        Examples:
            >>> ds.reorder_columns(["score"])
            >>> ds.schema.names
            ['score', 'id', 'name']
        """
        self._snapshot = drop.reorder_columns(self._snapshot, names, choices=self._choices)

    @names_dataset
    @os_errors()
    def merge(
        self,
        data_obj: ReaderLike,
        left_on: str,
        right_on: str | None = None,
        schema: pa.Schema | None = None,
    ) -> None:
        """Add the columns of other data by joining on a key; null without a match.

        Args:
            data_obj: The other rows, as in `write_dataset`.
            left_on: Key column of the table.
            right_on: Key column of the other rows; by default of the same name.
            schema: Schema of data that has no types of its own.

        Raises:
            ColumnNotFoundError: A key column does not exist.

        Examples:
            >>> ds.merge({"id": [2], "city": ["Oslo"]}, "id")
            >>> ds.to_table(columns=["city"]).to_pydict()
            {'city': [None, 'Oslo', None]}
        """
        reader = ingest.to_reader(data_obj, schema)
        key = JoinKey(left=left_on, right=right_on or left_on)
        self._snapshot = join.merge_columns(self._snapshot, reader, key, choices=self._choices)


class FragmentColumns(ABC):
    """Methods that add or change columns of one fragment without committing them."""

    @property
    @abstractmethod
    def _fragment(self) -> Fragment: ...

    _ds: Any  # the classes refer to each other, as in pylance

    def merge_columns(
        self,
        value_func: dict[str, str] | BatchUDF | ReaderLike | Callable[[pa.RecordBatch], Any],
        columns: list[str] | None = None,
        batch_size: int | None = None,
        reader_schema: pa.Schema | None = None,
    ) -> tuple[FragmentMetadata, LanceSchema]:
        """Add columns as `LanceDataset.add_columns` does, for a later `LanceOperation.Merge`.

        Args:
            value_func: SQL expressions by name, a function on batches, or rows.
            columns: Columns that a function receives; by default all.
            batch_size: Rows per batch that a function receives.
            reader_schema: Schema of rows that have no types of their own.

        Returns:
            The new fragment, and the new schema of the table.

        Examples:
            >>> fragment, schema = ds.get_fragment(0).merge_columns({"double": "score * 2"})
            >>> merge = lance.LanceOperation.Merge([fragment], schema)
            >>> lance.LanceDataset.commit(ds, merge, read_version=1).schema.names
            ['id', 'name', 'score', 'double']
        """
        base: Snapshot = self._ds._snapshot
        if isinstance(value_func, dict):
            expressions = _expressions(value_func)
            made = one_fragment.compute_columns(
                base, self._fragment, expressions, batch_rows=batch_size
            )
        elif callable(value_func):
            source: Any = self
            function = to_function(value_func, source, columns, batch_size)
            if function.checkpoint is not None:
                msg = "A checkpoint file cannot be used for a single fragment"
                raise InvalidRequestError(msg, action="Store the results yourself.")
            made = one_fragment.map_columns(base, self._fragment, function)
        else:
            reader = _reader(value_func, reader_schema)
            made = one_fragment.stream_columns(base, self._fragment, reader)
        return from_fragment(made.fragment), LanceSchema(made.schema)

    def merge(
        self,
        data_obj: ReaderLike,
        left_on: str,
        right_on: str | None = None,
        schema: pa.Schema | None = None,
    ) -> tuple[FragmentMetadata, LanceSchema]:
        """Add columns as `LanceDataset.merge` does, for a later `LanceOperation.Merge`.

        Args:
            data_obj: The other rows, as in `write_dataset`.
            left_on: Key column of the table.
            right_on: Key column of the other rows; by default of the same name.
            schema: Schema of data that has no types of its own.

        Returns:
            The new fragment, and the new schema of the table.

        Examples:
            >>> fragment, schema = ds.get_fragment(0).merge({"id": [2], "city": ["Oslo"]}, "id")
            >>> merge = lance.LanceOperation.Merge([fragment], schema)
            >>> lance.LanceDataset.commit(ds, merge, read_version=1).schema.names
            ['id', 'name', 'score', 'city']
        """
        reader = ingest.to_reader(data_obj, schema)
        key = JoinKey(left=left_on, right=right_on or left_on)
        made = one_fragment.join_columns(self._ds._snapshot, self._fragment, reader, key)
        return from_fragment(made.fragment), LanceSchema(made.schema)

    def update_columns(
        self,
        data_obj: ReaderLike,
        left_on: str = "_rowid",
        right_on: str | None = None,
        schema: pa.Schema | None = None,
        *,
        with_offsets: bool = False,
    ) -> tuple[FragmentMetadata, list[int]] | tuple[FragmentMetadata, list[int], bytes]:
        """Update columns with the values of other data with the same key.

        Args:
            data_obj: The new values, with the key column.
            left_on: Key column of the table.
            right_on: Key column of the other rows; by default of the same name.
            schema: Schema of data that has no types of its own.
            with_offsets: Return the changed rows as well.

        Returns:
            The fragment and the ids of the changed fields for a later `LanceOperation.Update`, and
            on request the changed rows as a portable bitmap.

        Examples:
            >>> values = {"id": [1], "score": [9.0]}
            >>> fragment, fields = ds.get_fragment(0).update_columns(values, "id")
            >>> update = lance.LanceOperation.Update(
            ...     updated_fragments=[fragment], fields_modified=fields
            ... )
            >>> lance.LanceDataset.commit(ds, update, read_version=1).take([0])["score"].to_pylist()
            [9.0]
        """
        reader = ingest.to_reader(data_obj, schema)
        key = JoinKey(left=left_on, right=right_on or left_on)
        made = one_fragment.update_columns(self._ds._snapshot, self._fragment, reader, key)
        shown, fields = from_fragment(made.fragment), [int(i) for i in made.fields]
        if with_offsets:
            return shown, fields, bytes(made.rows.serialize())
        return shown, fields


def _null_columns(transforms: Transforms) -> pa.Schema | None:
    if isinstance(transforms, pa.Schema):
        return transforms
    if isinstance(transforms, pa.Field):
        return pa.schema([transforms])
    if isinstance(transforms, list) and transforms and isinstance(transforms[0], pa.Field):
        return pa.schema(transforms)
    return None


def _expressions(transforms: Mapping[Any, Any]) -> dict[str, str]:
    for name, expression in transforms.items():
        if not isinstance(name, str):
            msg = f"Column names must be a string. Got {type(name)}"
            raise TypeError(msg)
        if not isinstance(expression, str):
            msg = f"Column expressions must be a string. Got {type(expression)}"
            raise TypeError(msg)
    return dict(transforms)


def _reader(transforms: Any, schema: pa.Schema | None) -> pa.RecordBatchReader:
    try:
        return ingest.to_reader(transforms, schema)
    except InvalidRequestError as error:
        if isinstance(transforms, Iterable):
            raise
        msg = (
            "transforms must be a BatchUDF, dict, map function, or ReaderLike value. Received "
            f"{type(transforms)}. Could not coerce to a reader: {error}"
        )
        raise TypeError(msg) from error


def _change(alteration: Mapping[str, Any]) -> ColumnChange:
    if "path" not in alteration:
        raise InvalidRequestError("path is required")
    unknown = [key for key in alteration if key not in _ALTERABLE]
    if unknown:
        advice = suggestion(unknown[0], _ALTERABLE, "keys")
        raise InvalidRequestError(f"Unknown key: {unknown[0]}", action=advice)
    if all(alteration.get(key) is None for key in _ALTERABLE[1:]):
        raise InvalidRequestError("At least one of name, nullable, or data_type must be specified")
    return ColumnChange(**alteration)
