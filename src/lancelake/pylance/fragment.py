"""Fragments of a table."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import pyarrow as pa

from lancelake.core.values import metadata as core_metadata
from lancelake.core.values.reads import ScanRequest
from lancelake.core.values.writes import MAX_BYTES_PER_FILE, Progress
from lancelake.errors import InvalidRequestError, SchemaMismatchError
from lancelake.pylance._dataset import arguments
from lancelake.pylance._dataset.arrow_classes import ArrowFragment
from lancelake.pylance._dataset.columns import FragmentColumns
from lancelake.pylance._dataset.fragment_rows import FragmentDeletes
from lancelake.pylance._dataset.notebook import NotebookList, fragment_html
from lancelake.pylance._dataset.state import Session, locate
from lancelake.pylance._dataset.write import write_fragment, write_fragments, write_options
from lancelake.pylance._values.fragment_metadata import (
    DataFile,
    DeletionFile,
    FragmentMetadata,
    RowDatasetVersionMeta,
    RowIdMeta,
    RowIdSequence,
    from_data_file,
    from_fragment,
)
from lancelake.pylance._values.opened import OpenedDataset, call_text, chosen
from lancelake.pylance.progress import FragmentWriteProgress, NoopFragmentWriteProgress
from lancelake.pylance.udf import BatchUDF


class LanceFragment(FragmentDeletes, FragmentColumns, ArrowFragment):
    """A fragment of one version of a table: some of its rows, in files of their own.

    Examples:
        >>> fragment = ds.get_fragment(0)
        >>> fragment.count_rows("score > 2")
        2
    """

    def __init__(self, dataset: OpenedDataset, fragment_id: int) -> None:
        self._ds = dataset
        self._id = core_metadata.FragmentId(fragment_id)
        # Fragments of the open version; each is decoded on demand.
        self._entries = dataset._fragments()
        if self._id not in self._entries:
            raise InvalidRequestError(f"fragment {fragment_id} does not exist", table=dataset.uri)

    @property
    def _fragment(self) -> core_metadata.Fragment:
        return self._entries[self._id]

    def __repr__(self) -> str:
        paths = [file.path for file in self._fragment.files]
        deleted = self.deletion_file()
        rest = "" if deleted is None else f", deletion_file={deleted!r}"
        return f"LanceFileFragment(id={self.fragment_id}, data_files={paths}{rest})"

    def _repr_html_(self) -> str:
        return fragment_html(self._fragment)

    def __reduce__(self) -> tuple[Any, ...]:
        return (LanceFragment, (self._ds, self.fragment_id))

    @staticmethod
    def create(
        dataset_uri: str | Path,
        data: Any,
        fragment_id: int | None = None,
        schema: pa.Schema | None = None,
        max_rows_per_group: int | None = 1024,
        progress: FragmentWriteProgress | Progress | None = None,
        mode: arguments.WriteMode = "append",
        *,
        data_storage_version: str | None = None,
        use_legacy_format: bool | None = None,
        storage_options: dict[str, str] | None = None,
        namespace_client: Any = None,
        table_id: list[str] | None = None,
        session: Session | None = None,
        **rest: Unpack[arguments.FragmentOptions],
    ) -> FragmentMetadata:
        """Write all rows to one uncommitted data file.

        Args:
            dataset_uri: Path or URI of the table.
            data: Rows, as in `write_dataset`.
            fragment_id: Id of the fragment, by default 0; a commit assigns the final one.
            schema: Schema of data that has no types of its own.
            max_rows_per_group: Ignored.
            progress: Called for the fragment that is written.
            mode: `append` for rows of an existing table, `create` or `overwrite` for others.
            data_storage_version: Format version of the file of a new table.
            storage_options: Options and credentials of the object store.
            namespace_client: Namespace to find the table in, together with `table_id`.
            table_id: Name of the table in the namespace.
            session: Session whose `memory://` tables are visible.
            **rest: Further options of `write_dataset`.

        Returns:
            The metadata of the fragment, for a later `LanceOperation.Append` or `Overwrite`.

        Raises:
            SchemaMismatchError: Columns of the table are missing.
            InvalidRequestError: There are no rows.

        Examples:
            >>> fragment = lance.LanceFragment.create("people.lance", ds.head(2))
            >>> append = lance.LanceOperation.Append([fragment])
            >>> lance.LanceDataset.commit(ds, append, read_version=1).count_rows()
            5
        """
        options = write_options(
            mode,
            progress=progress,
            data_storage_version=data_storage_version,
            use_legacy_format=use_legacy_format,
            **rest,
        )
        if not isinstance(dataset_uri, str | Path):
            raise TypeError(f"dataset_uri must be str or Path, got {type(dataset_uri)}")
        place = arguments.find_table(
            None if table_id else dataset_uri, namespace_client, table_id, storage_options
        )
        location = locate(place.uri, place.storage_options, session=session)
        return from_fragment(
            write_fragment(data, location, schema, fragment_id=fragment_id, options=options)
        )

    @staticmethod
    def create_from_file(
        filename: str, dataset: OpenedDataset, fragment_id: int
    ) -> FragmentMetadata:
        """Describe an uncommitted data file of a table.

        Args:
            filename: Name of the file in the folder `data` of the table.
            dataset: The table.
            fragment_id: Id of the fragment.

        Raises:
            SchemaMismatchError: The file does not have every column of the table.

        Examples:
            >>> name = ds.get_fragment(0).data_files()[0].path
            >>> lance.LanceFragment.create_from_file(name, ds, 1).num_rows
            3
        """
        snapshot = dataset._snapshot
        table = snapshot.manifest.schema
        stored = core_metadata.found_file(snapshot.files, filename, table)
        if stored.schema.names != table.names:
            expected, names = ", ".join(table.names), ", ".join(stored.schema.names)
            problem = f"expected: [{expected}], actual: [{names}]"
            raise SchemaMismatchError(f"Append with different schema: {problem}", path=filename)
        return FragmentMetadata(fragment_id, [from_data_file(stored.entry)], stored.rows)

    @property
    def fragment_id(self) -> core_metadata.FragmentId:
        """The id of the fragment.

        Examples:
            >>> ds.get_fragment(0).fragment_id
            0
        """
        return self._id

    @property
    def metadata(self) -> FragmentMetadata:
        """The fragment's metadata in the manifest.

        Examples:
            >>> ds.get_fragment(0).metadata.num_rows
            3
        """
        return from_fragment(self._fragment)

    @property
    def schema(self) -> pa.Schema:
        """Schema of the table.

        Examples:
            >>> ds.get_fragment(0).schema.names
            ['id', 'name', 'score']
        """
        return self._ds.schema

    @property
    def physical_schema(self) -> pa.Schema:
        """Schema of the columns in the fragment's files.

        Examples:
            >>> ds.add_columns(pa.field("note", pa.string()))
            >>> ds.get_fragment(0).physical_schema.names
            ['id', 'name', 'score']
        """
        return core_metadata.public_schema(
            core_metadata.stored_schema(self._fragment, self._ds._snapshot.manifest.schema)
        )

    @property
    def partition_expression(self) -> Any:
        """Not supported, as in pylance."""
        raise NotImplementedError("partitioning not yet supported")

    @property
    def physical_rows(self) -> int:
        """Number of rows in the files, including deleted ones.

        Examples:
            >>> deleted = ds.delete("id = 1")
            >>> ds.get_fragment(0).physical_rows
            3
        """
        return self._ds._table.physical_rows(self._fragment)

    @property
    def num_deletions(self) -> int:
        """Number of deleted rows.

        Examples:
            >>> deleted = ds.delete("id = 1")
            >>> ds.get_fragment(0).num_deletions
            1
        """
        return self.physical_rows - self._ds._table.live_rows(self._fragment)

    def data_files(self) -> list[DataFile]:
        """Return the data files of the fragment.

        Returns:
            The path, the fields and the format version of each file.

        Examples:
            >>> [file.fields for file in ds.get_fragment(0).data_files()]
            [[0, 1, 2]]
        """
        return list(self.metadata.files)

    def deletion_file(self) -> str | None:
        """Return the path of the deletion file.

        Returns:
            The path; None if no row is deleted.

        Examples:
            >>> ds.get_fragment(0).deletion_file() is None
            True
        """
        entry = self._fragment.deletion_file
        if entry is None:
            return None
        return self._ds._snapshot.files.deletion_file(self._fragment.id, entry).path

    def take(
        self, indices: Iterable[int] | pa.Array, columns: arguments.Columns = None
    ) -> pa.Table:
        """Return rows by position among the live rows of the fragment.

        Args:
            indices: The positions.
            columns: Names, or SQL expressions by name; by default all columns.

        Returns:
            One row per position, in the order requested.

        Raises:
            OutOfRangeError: A position is past the last row.

        Examples:
            >>> ds.get_fragment(0).take([2, 0], ["id"]).to_pydict()
            {'id': [3, 1]}
        """
        request = ScanRequest(
            columns=arguments.request_columns(columns), fragment_ids=(self._fragment.id,)
        )
        return self._ds._table.take_in(self._fragment, arguments.row_numbers(indices), request)

    def open_session(
        self, columns: arguments.Columns = None, with_row_address: bool | None = None
    ) -> FragmentSession:
        """Return a reader for many calls of `take` with the same columns.

        Args:
            columns: Names, or SQL expressions by name; by default all columns.
            with_row_address: Add the column `_rowaddr`.

        Examples:
            >>> session = ds.get_fragment(0).open_session(["id"])
            >>> session.take([1]).to_pydict()
            {'id': [2]}
        """
        return FragmentSession(self, columns, with_row_address=bool(with_row_address))


def all_fragments(dataset: OpenedDataset) -> list[LanceFragment]:
    """Return the fragments of the open version, as a list that notebooks show as a table."""
    fragments = (LanceFragment(dataset, number) for number in dataset._fragments())
    return NotebookList(fragments, ("fragment", "rows", "deleted", "data files"), _cells)


def _cells(fragment: LanceFragment) -> tuple[object, ...]:
    counts = fragment.count_rows(), fragment.num_deletions, len(fragment.data_files())
    return (fragment.fragment_id, *(f"{count:,}" for count in counts))


class FragmentSession:
    """Takes rows of one fragment repeatedly, with the same columns."""

    def __init__(
        self, fragment: LanceFragment, columns: arguments.Columns, *, with_row_address: bool
    ) -> None:
        self._fragment = fragment
        self._request = ScanRequest(
            columns=arguments.request_columns(columns),
            with_row_address=with_row_address,
            fragment_ids=(fragment.fragment_id,),
        )

    def __repr__(self) -> str:
        return call_text(self, self._fragment, **chosen(self._request))

    def take(self, indices: Iterable[int] | pa.Array | np.ndarray) -> pa.Table:
        """Return rows by position among the live rows of the fragment."""
        table, numbers = self._fragment._ds._table, arguments.row_numbers(indices)
        return table.take_in(self._fragment._fragment, numbers, self._request)


DEFAULT_MAX_BYTES_PER_FILE = MAX_BYTES_PER_FILE

__all__ = [
    "DEFAULT_MAX_BYTES_PER_FILE",
    "BatchUDF",
    "DataFile",
    "DeletionFile",
    "FragmentMetadata",
    "FragmentSession",
    "FragmentWriteProgress",
    "LanceFragment",
    "NoopFragmentWriteProgress",
    "RowDatasetVersionMeta",
    "RowIdMeta",
    "RowIdSequence",
    "write_fragments",
]
