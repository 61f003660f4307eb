"""Methods that read rows without a scan: takes, blobs, searches."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyroaring import BitMap

from lancelake.core.table_place import TablePlace
from lancelake.core.values import reads
from lancelake.core.values.indices import DROPPED, RowMoves, with_inline_moves
from lancelake.core.values.metadata import FRAGMENT_REUSE
from lancelake.errors import InvalidRequestError, UnsupportedError
from lancelake.pylance._dataset import arguments
from lancelake.pylance._dataset.index_values import index_statistics
from lancelake.pylance._dataset.scan_methods import DatasetScans
from lancelake.pylance._dataset.searching import SqlQueryBuilder, nearest_of
from lancelake.pylance._values.opened import describes_as
from lancelake.pylance.blob import DEFAULT_BLOB_BUFFER_SIZE, BlobFile, check_buffer_size
from lancelake.pylance.query import FullTextQuery, text_query


class InnerDataset:
    """Members of a dataset, and those that pylance has on the inner object alone or otherwise."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    def version(self) -> int:
        """Return the version of the dataset."""
        return int(self._dataset.version)

    def latest_version(self) -> int:
        """Return the latest version of the table."""
        return int(self._dataset.latest_version)

    def take_scan(
        self,
        row_slices: Iterable[tuple[int, int]],
        columns: Sequence[str] | None = None,
        batch_readahead: int = 10,
    ) -> pa.RecordBatchReader:
        """Read ranges of positions, each from its start up to its stop, as one batch each.

        Args:
            row_slices: The ranges, which are asked for as batches are read.
            columns: Names of columns; by default all.
            batch_readahead: Number of batches to prefetch, which has no effect here.

        Returns:
            The batches, in the order of the ranges.
        """
        names = None if columns is None else list(columns)
        schema = self._dataset.scanner(names).projected_schema

        def batches() -> Iterator[pa.RecordBatch]:
            for start, stop in row_slices:
                rows = self._dataset.take(range(start, stop), names).combine_chunks()
                yield from rows.to_batches() or [pa.RecordBatch.from_pylist([], schema)]

        return pa.RecordBatchReader.from_batches(schema, batches())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._dataset, name)


class DatasetReads(DatasetScans):
    """Methods that read single rows and blobs, and search."""

    @property
    def initial_storage_options(self) -> dict[str, str] | None:
        """Storage options that the table was opened with.

        Examples:
            >>> ds.initial_storage_options is None
            True
        """
        return self._snapshot.location.storage_options or None

    @property
    def _storage_options(self) -> dict[str, str] | None:
        """Storage options, by the name that programs for pylance use."""
        return self.initial_storage_options

    def latest_storage_options(self) -> dict[str, str] | None:
        """Current storage options, which are those the table was opened with.

        Returns:
            The options, None without any.

        Examples:
            >>> ds.latest_storage_options() is None
            True
        """
        return self.initial_storage_options

    @property
    def _ds(self) -> InnerDataset:
        """The object that has pylance's inner methods."""
        return InnerDataset(self)

    def version_refs(self) -> list[dict[str, int]]:
        """Return the numbers of all versions, oldest first, without reading them.

        Examples:
            >>> [each["version"] for each in ds.version_refs()]
            [1]
        """
        names = TablePlace(self._snapshot.location).versions()
        return [{"version": number} for number in sorted(name.version for name in names)]

    def fragment_ids(self) -> BitMap:
        """Return the ids of all fragments.

        Examples:
            >>> list(ds.fragment_ids())
            [0]
        """
        return BitMap(fragment.id for fragment in self._snapshot.manifest.fragments)

    def index_statistics(self, index_name: str) -> dict[str, Any]:
        """Return the coverage of an index.

        Args:
            index_name: The name of the index.

        Returns:
            The kind, the segments, and the numbers of indexed and unindexed rows and fragments.

        Raises:
            IndexNotFoundError: The table has no such index.

        Examples:
            >>> ds.create_scalar_index("id", "BTREE")
            >>> statistics = ds.index_statistics("id_idx")
            >>> statistics["num_indexed_rows"], statistics["num_unindexed_rows"]
            (3, 0)
        """
        return index_statistics(self._snapshot, index_name)

    def take(
        self, indices: Iterable[int] | pa.Array, columns: arguments.Columns = None
    ) -> pa.Table:
        """Return rows by position, in the order requested.

        Args:
            indices: Positions among the rows of the table, starting at 0.
            columns: Names, or SQL expressions by name; by default all columns.

        Returns:
            One row per position.

        Raises:
            OutOfRangeError: A position is past the last row.

        Examples:
            >>> ds.take([2, 0], columns=["name"]).to_pydict()
            {'name': ['cy', 'ada']}
        """
        request = reads.ScanRequest(columns=arguments.request_columns(columns))
        return self._table.take(arguments.row_numbers(indices), request)

    def slice(self, start: int, end: int, columns: arguments.Columns = None) -> pa.Table:
        """Return the rows from one position up to, not including, another.

        Args:
            start: The first position.
            end: The position after the last one.
            columns: Names, or SQL expressions by name; by default all columns.

        Examples:
            >>> ds.slice(1, 3, columns=["id"]).to_pydict()
            {'id': [2, 3]}
        """
        if start < 0:
            raise InvalidRequestError(f"start must be non-negative, got {start}")
        if end < start:
            raise InvalidRequestError(f"end ({end}) must be >= start ({start})")
        return self.scanner(columns=columns, offset=start, limit=end - start).to_table()

    @arguments.os_errors()
    def _take_rows(
        self,
        row_ids: Iterable[int] | pa.Array,
        columns: arguments.Columns = None,
        *,
        ignore_deletions: bool = False,
    ) -> pa.Table:
        """Return rows by id, in the order requested, without missing ones."""
        if ignore_deletions:
            raise UnsupportedError("deleted rows cannot be taken (ignore_deletions)")
        addresses = self._table.addresses_of(arguments.row_numbers(row_ids))
        request = reads.ScanRequest(columns=arguments.request_columns(columns))
        return self._table.take_at(addresses[addresses != reads.MISSING], request)

    def remap_row_addrs(self, addrs: pa.Array) -> pa.Array | None:
        """Return where rows are after the compactions that the table has recorded.

        Compactions are recorded if they defer the remapping of indices.

        Args:
            addrs: Row addresses of an older version.

        Returns:
            The current addresses, null for dropped rows; None if no compaction is recorded.

        Examples:
            >>> ds.remap_row_addrs(pa.array([0], pa.uint64())) is None
            True
        """
        entries = with_inline_moves(self._snapshot)
        moves = RowMoves.of(entries)
        if not any(entry.name == FRAGMENT_REUSE for entry in entries):
            return None
        addresses = addrs.cast(pa.uint64()).fill_null(DROPPED).to_numpy(zero_copy_only=False)
        gone = addresses == DROPPED
        current = moves.row_map(addresses)
        return pa.array(current, mask=gone | (current == DROPPED))

    def sql(self, sql: str) -> SqlQueryBuilder:
        """Create a read-only query of this version, in which the table is named `dataset`.

        Args:
            sql: The query.

        Returns:
            A builder; `build` returns the query.

        Raises:
            InvalidExpressionError: When the query runs and is not valid.

        Examples:
            >>> query = ds.sql("SELECT max(score) AS best FROM dataset").build()
            >>> pa.Table.from_batches(query.to_batch_records()).to_pydict()
            {'best': [3.5]}
        """
        return SqlQueryBuilder(self._snapshot, sql)

    def take_blobs(
        self,
        blob_column: str,
        ids: Iterable[int] | pa.Array | None = None,
        addresses: Iterable[int] | pa.Array | None = None,
        indices: Iterable[int] | pa.Array | None = None,
        *,
        buffer_size: int = DEFAULT_BLOB_BUFFER_SIZE,
    ) -> list[BlobFile | None]:
        """Return the blobs of rows as files; no data is read yet.

        Exactly one of `ids`, `addresses` and `indices` selects the rows.

        Args:
            blob_column: The column.
            ids: Row ids.
            addresses: Row addresses.
            indices: Positions among the rows of the table.
            buffer_size: Bytes to read ahead.

        Returns:
            One file per row, None for a null.

        Raises:
            ColumnTypeError: The column does not hold blobs.

        Examples:
            >>> columns = [lance.blob_array([b"abcdef"])]
            >>> rows = pa.Table.from_arrays(columns, schema=pa.schema([lance.blob_field("clip")]))
            >>> clips = lance.write_dataset(rows, "clips.lance", data_storage_version="2.2")
            >>> clips.take_blobs("clip", indices=[0])[0].read_range(2, 3)
            b'cde'
        """
        check_buffer_size(buffer_size)
        rows = self._blobs(blob_column, ids, addresses, indices)
        return [None if row.blob is None else BlobFile(row.blob, buffer_size) for row in rows]

    @describes_as(take_blobs)
    def read_blobs(
        self,
        blob_column: str,
        ids: Iterable[int] | pa.Array | None = None,
        addresses: Iterable[int] | pa.Array | None = None,
        indices: Iterable[int] | pa.Array | None = None,
        *,
        io_buffer_size: int | None = None,  # tunes official Lance
        preserve_order: bool | None = None,  # the order is always kept
    ) -> list[tuple[int, bytes | None]]:
        """Read the blobs of rows.

        Exactly one of `ids`, `addresses` and `indices` selects the rows.

        Args:
            io_buffer_size: Ignored.
            preserve_order: Ignored: the order is always that of the request.

        Returns:
            The address and the bytes of each row, in the order requested; None for a null.

        Raises:
            ColumnTypeError: The column does not hold blobs.

        Examples:
            >>> columns = [lance.blob_array([b"abcdef", None])]
            >>> rows = pa.Table.from_arrays(columns, schema=pa.schema([lance.blob_field("clip")]))
            >>> clips = lance.write_dataset(rows, "clips.lance", data_storage_version="2.2")
            >>> clips.read_blobs("clip", indices=[0])
            [(0, b'abcdef')]
        """
        _ensure_buffer(io_buffer_size)
        rows = self._blobs(blob_column, ids, addresses, indices)
        values = reads.read_all([row.blob for row in rows])
        return [(row.address, value) for row, value in zip(rows, values, strict=True)]

    def read_blob_ranges(
        self,
        blob_column: str,
        requests: Sequence[tuple[int, int, int]],
        *,
        selector: str,
        io_buffer_size: int | None = None,  # tunes official Lance
        preserve_order: bool | None = None,  # the order is always kept
    ) -> list[tuple[int, int, bytes | None]]:
        """Read ranges of blobs.

        Args:
            blob_column: The column.
            requests: The row, the offset and the length of each range.
            selector: How rows are given: `ids`, `addresses` or `indices`.
            io_buffer_size: Ignored.
            preserve_order: Ignored: the order is always that of the request.

        Returns:
            The number of the request, the address of the row, and the bytes.

        Raises:
            ColumnTypeError: The column does not hold blobs.

        Examples:
            >>> columns = [lance.blob_array([b"abcdef"])]
            >>> rows = pa.Table.from_arrays(columns, schema=pa.schema([lance.blob_field("clip")]))
            >>> clips = lance.write_dataset(rows, "clips.lance", data_storage_version="2.2")
            >>> clips.read_blob_ranges("clip", [(0, 1, 2)], selector="indices")
            [(0, 0, b'bc')]
        """
        _ensure_buffer(io_buffer_size)
        if selector not in [by.value for by in reads.RowsBy]:
            msg = f"selector must be one of 'ids', 'addresses', or 'indices', got {selector!r}"
            raise InvalidRequestError(msg)
        rows = arguments.row_numbers([row for row, _, _ in requests])
        blobs = self._table.find_blobs(blob_column, rows, reads.RowsBy(selector))
        parts = [
            None if row.blob is None else row.blob.part(start, length)
            for row, (_, start, length) in zip(blobs, requests, strict=True)
        ]
        values = reads.read_all(parts)
        return [(i, row.address, values[i]) for i, row in enumerate(blobs)]

    def _blobs(
        self,
        column: str,
        ids: Iterable[int] | pa.Array | None,
        addresses: Iterable[int] | pa.Array | None,
        indices: Iterable[int] | pa.Array | None,
    ) -> list[reads.RowBlob]:
        asked = {
            reads.RowsBy.IDS: ids,
            reads.RowsBy.ADDRESSES: addresses,
            reads.RowsBy.INDICES: indices,
        }
        given = {by: rows for by, rows in asked.items() if rows is not None}
        if len(given) != 1:
            raise InvalidRequestError("Exactly one of ids, indices, or addresses must be specified")
        ((by, rows),) = given.items()
        return self._table.find_blobs(column, arguments.row_numbers(rows), by)

    def search(
        self,
        full_text_query: str | FullTextQuery | Mapping[str, Any] | None = None,
        nearest: Mapping[str, Any] | None = None,
        *,
        k: int = reads.DEFAULT_K,
        columns: arguments.Columns = None,
        filter: arguments.Filter = None,
        prefilter: bool = True,
        vector_weight: float | None = None,
        rank_constant: int | None = None,
        candidates: int | None = None,
        with_row_id: bool = False,
        fast_search: bool = False,
    ) -> pa.Table:
        """Return the `k` best rows of a full text query, of a query vector, or of both.

        With both, the rows that the two searches find are fused and returned with `_distance`,
        `_score`
        and `_relevance_score`.

        Args:
            full_text_query: Text, or a query of `lancelake.pylance.query`.
            nearest: Vector search as in `scanner`; `column` is not needed if there is one vector
                column.
            k: Rows to return, at most.
            columns: Names, or SQL expressions by name; by default all columns.
            filter: SQL, or an expression of `pyarrow.compute`.
            prefilter: Apply the filter before the search instead of after it.
            vector_weight: Fuse by the weighted sum of similarity and text score; between 0 and 1.
            rank_constant: Fuse by the sum of `1 / (rank_constant + rank)`, which is the default,
                with a constant of 60.
            candidates: Rows that each of the two searches contributes, at most.
            with_row_id: Add the column `_rowid`.
            fast_search: Skip fragments that the searched indices do not cover.

        Raises:
            InvalidRequestError: No query is given, or an option does not apply to the queries.

        Examples:
            >>> docs.create_scalar_index("text", "INVERTED")
            >>> docs.search("panda", columns=["text"])["text"].to_pylist()
            ['red panda']
            >>> docs.search(nearest={"q": [0, 1]}, k=1, columns=["id"]).to_pylist()
            [{'id': 2, '_distance': 0.0}]
            >>> docs.search("panda", {"q": [1, 1]}, k=1, columns=["text"])["text"].to_pylist()
            ['red panda']
        """
        text = None if full_text_query is None else text_query(full_text_query)
        request = reads.SearchRequest(
            nearest=None if nearest is None else nearest_of(self._snapshot, nearest),
            text=text,
            k=operator.index(k),
            filter=filter,
            prefilter=prefilter,
            columns=arguments.request_columns(columns),
            with_row_id=with_row_id,
            fast_search=fast_search,
            candidates=candidates,
            fusion=reads.fusion_of(vector_weight, rank_constant),
        )
        return self._table.search(request)


def _ensure_buffer(size_bytes: int | None) -> None:
    """Refuse a buffer without bytes, although its size only tunes official Lance."""
    if size_bytes is not None and size_bytes < 1:
        raise InvalidRequestError("io_buffer_size must be greater than 0", found=size_bytes)
