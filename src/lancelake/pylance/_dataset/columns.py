"""Dataset and fragment methods that change columns, metadata and config."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias, TypedDict

import pyarrow as pa

from lancelake.core.table import Table
from lancelake.core.values.metadata import Fragment
from lancelake.core.values.writes import ColumnChange, JoinKey, objects
from lancelake.errors import InvalidRequestError, naming, suggestion
from lancelake.pylance._dataset.arguments import os_errors
from lancelake.pylance._dataset.state import DatasetState
from lancelake.pylance._values.fragment_metadata import FragmentMetadata, from_fragment
from lancelake.pylance._values.opened import describes_as
from lancelake.pylance.schema import LanceSchema
from lancelake.pylance.types import ReaderLike
from lancelake.pylance.udf import BatchUDF, to_function

Transforms: TypeAlias = Any
"""SQL expressions by name, a function on batches, any `ReaderLike`, or fields of null columns."""

_ALTERABLE = ("path", "name", "nullable", "data_type")


class AlterColumn(TypedDict, total=False):
    """Changes of one column."""

    path: str
    name: str | None
    nullable: bool | None
    data_type: pa.DataType | None


class DatasetColumns(DatasetState):
    """Methods that change the columns, the metadata and the config of a table."""

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
        columns = self._table.columns
        schema = _null_columns(transforms)
        if schema is not None:
            self._snapshot = columns.add_null(schema, choices=self._choices)
        elif isinstance(transforms, dict):
            expressions = _expressions(transforms)
            self._snapshot = columns.add_computed(
                expressions, batch_rows=batch_size, choices=self._choices
            )
        elif callable(transforms):
            source: Any = self
            function = to_function(transforms, source, read_columns, batch_size)
            self._snapshot = columns.add_mapped(function, choices=self._choices)
        else:
            reader = _reader(transforms, reader_schema)
            self._snapshot = columns.add_streamed(reader, choices=self._choices)

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
        self._snapshot = self._table.columns.drop(columns, choices=self._choices)

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
        with naming(self._snapshot.location.uri, self._snapshot.version):
            changes = [_change(each) for each in alterations]
        with os_errors():
            self._snapshot = self._table.columns.alter(changes, choices=self._choices)

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
        self._snapshot = self._table.columns.reorder(names, choices=self._choices)

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
        reader = objects.to_reader(data_obj, schema)
        key = JoinKey(left=left_on, right=right_on or left_on)
        self._snapshot = self._table.columns.join(reader, key, choices=self._choices)

    def update_config(
        self, values: dict[str, str | None], *, replace: bool = False
    ) -> dict[str, str]:
        """Set keys of the config.

        Args:
            values: Values by key; None removes a key.
            replace: Remove all other keys.

        Returns:
            The new config.

        Examples:
            >>> ds.update_config({"team": "search"})["team"]
            'search'
        """
        self._snapshot = self._table.update_config(values, replace=replace, choices=self._choices)
        return dict(self._snapshot.manifest.config)

    def delete_config_keys(self, keys: list[str]) -> None:
        """Remove keys of the config.

        Args:
            keys: The keys; unknown ones are ignored.

        Examples:
            >>> config = ds.update_config({"team": "search"})
            >>> ds.delete_config_keys(["team"])
            >>> "team" in ds.config()
            False
        """
        self._snapshot = self._table.update_config(dict.fromkeys(keys), choices=self._choices)

    def update_metadata(
        self, values: dict[str, str | None], *, replace: bool = False
    ) -> dict[str, str]:
        """Set keys of the table's metadata.

        Args:
            values: Values by key; None removes a key.
            replace: Remove all other keys.

        Returns:
            The new metadata.

        Examples:
            >>> ds.update_metadata({"owner": "ada"})
            {'owner': 'ada'}
        """
        self._snapshot = self._table.update_metadata(values, replace=replace, choices=self._choices)
        return dict(self._snapshot.manifest.table_metadata)

    def update_schema_metadata(
        self, values: dict[str, str | None], *, replace: bool = False
    ) -> dict[str, str]:
        """Set keys of the schema's metadata.

        Args:
            values: Values by key; None removes a key.
            replace: Remove all other keys.

        Returns:
            The new metadata of the schema.

        Examples:
            >>> ds.update_schema_metadata({"source": "crm"})
            {'source': 'crm'}
        """
        self._snapshot = self._table.update_schema_metadata(
            values, replace=replace, choices=self._choices
        )
        metadata = self._snapshot.manifest.schema.metadata
        return {key: value.decode() for key, value in metadata.items()}

    def replace_schema_metadata(self, new_metadata: dict[str, str]) -> None:
        """Replace the schema's metadata.

        Args:
            new_metadata: The new keys and values.

        Examples:
            >>> ds.replace_schema_metadata({"source": "crm"})
            >>> ds.schema.metadata
            {b'source': b'crm'}
        """
        self.update_schema_metadata(dict(new_metadata), replace=True)

    @os_errors()
    def update_field_metadata(
        self, field_updates: dict[str, dict[str, str | None]], *, replace: bool = False
    ) -> None:
        """Set keys of fields' metadata.

        Args:
            field_updates: Values by key, by column; None removes a key.
            replace: Remove all other keys of these fields.

        Raises:
            InvalidRequestError: The table has no such column.

        Examples:
            >>> ds.update_field_metadata({"score": {"unit": "points"}})
            >>> ds.schema.field("score").metadata
            {b'unit': b'points'}
        """
        self._snapshot = self._table.update_field_metadata(
            field_updates, replace=replace, choices=self._choices
        )

    def replace_field_metadata(self, field_name: str, new_metadata: dict[str, str]) -> None:
        """Replace a field's metadata.

        Args:
            field_name: The column.
            new_metadata: The new keys and values.

        Examples:
            >>> ds.replace_field_metadata("score", {"unit": "points"})
            >>> ds.schema.field("score").metadata
            {b'unit': b'points'}
        """
        self.update_field_metadata({field_name: dict(new_metadata)}, replace=True)


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
        table: Table = self._ds._table
        if isinstance(value_func, dict):
            expressions = _expressions(value_func)
            change = table.columns.compute_in(self._fragment, expressions, batch_rows=batch_size)
        elif callable(value_func):
            source: Any = self
            function = to_function(value_func, source, columns, batch_size)
            if function.checkpoint is not None:
                msg = "A checkpoint file cannot be used for a single fragment"
                raise InvalidRequestError(msg, action="Store the results yourself.")
            change = table.columns.map_in(self._fragment, function)
        else:
            reader = _reader(value_func, reader_schema)
            change = table.columns.stream_in(self._fragment, reader)
        return from_fragment(change.fragment), LanceSchema(change.schema)

    @describes_as(DatasetColumns.merge)
    def merge(
        self,
        data_obj: ReaderLike,
        left_on: str,
        right_on: str | None = None,
        schema: pa.Schema | None = None,
    ) -> tuple[FragmentMetadata, LanceSchema]:
        """Add columns as `LanceDataset.merge` does, for a later `LanceOperation.Merge`.

        Returns:
            The new fragment, and the new schema of the table.

        Examples:
            >>> fragment, schema = ds.get_fragment(0).merge({"id": [2], "city": ["Oslo"]}, "id")
            >>> merge = lance.LanceOperation.Merge([fragment], schema)
            >>> lance.LanceDataset.commit(ds, merge, read_version=1).schema.names
            ['id', 'name', 'score', 'city']
        """
        reader = objects.to_reader(data_obj, schema)
        key = JoinKey(left=left_on, right=right_on or left_on)
        table: Table = self._ds._table
        change = table.columns.join_in(self._fragment, reader, key)
        return from_fragment(change.fragment), LanceSchema(change.schema)

    @describes_as(DatasetColumns.merge)
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
        reader = objects.to_reader(data_obj, schema)
        key = JoinKey(left=left_on, right=right_on or left_on)
        table: Table = self._ds._table
        change = table.columns.update_in(self._fragment, reader, key)
        shown, fields = from_fragment(change.fragment), [int(i) for i in change.fields]
        if with_offsets:
            return shown, fields, bytes(change.rows.serialize())
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
            raise TypeError(f"Column names must be a string. Got {type(name)}")
        if not isinstance(expression, str):
            raise TypeError(f"Column expressions must be a string. Got {type(expression)}")
    return dict(transforms)


def _reader(transforms: Any, schema: pa.Schema | None) -> pa.RecordBatchReader:
    try:
        return objects.to_reader(transforms, schema)
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
