"""Methods of indices."""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Iterable, Mapping
from functools import cache
from inspect import signature
from typing import Any, Self, Unpack

import pyarrow as pa

from lancelake.core.values import indices as core_indices
from lancelake.errors import IndexNotFoundError, InvalidRequestError, UnsupportedError
from lancelake.pylance._dataset import index_arguments
from lancelake.pylance._dataset.index_values import (
    INDEX_HEADER,
    SEGMENT_HEADER,
    Index,
    IndexConfig,
    IndexDescription,
    IndexInformation,
    describe,
    from_index,
    index_cells,
    inform,
    segment_cells,
    to_index,
    to_uuid,
)
from lancelake.pylance._dataset.notebook import NotebookList
from lancelake.pylance._dataset.state import DatasetState
from lancelake.pylance._values.opened import call_text, describes_as
from lancelake.pylance._values.vector_models import IvfModel, vector_lists
from lancelake.pylance.query import DocumentGranularity


class DatasetIndices(DatasetState):
    """Methods that build, list and drop indices, and return the models of vector indices."""

    def create_scalar_index(
        self,
        column: str,
        index_type: core_indices.ScalarKind | str | IndexConfig,
        name: str | None = None,
        *,
        replace: bool = True,
        train: bool = True,
        fragment_ids: list[int] | None = None,
        index_uuid: str | None = None,
        progress_callback: index_arguments.Callback | None = None,
        format_version: int | str | None = None,
        document_granularity: DocumentGranularity = DocumentGranularity.ROW,
        **kwargs: Unpack[core_indices.ScalarParameters],
    ) -> None:
        """Build an index of a column and move to the version that has it.

        Args:
            column: The column, or the path of a struct field.
            index_type: BTREE, BITMAP, LABEL_LIST, ZONEMAP, BLOOMFILTER, NGRAM, INVERTED (or FTS),
                or an `IndexConfig` with parameters.
            name: Name of the index; by default the column's, with `_idx`.
            replace: Replace an index of the same name; otherwise it is an error.
            train: False creates an index that covers no row yet.
            fragment_ids: Write a part of a BTREE or INVERTED over these fragments, to be merged
                by `merge_index_metadata`; nothing is committed.
            index_uuid: The uuid that the parts share.
            progress_callback: Called while the index is built.
            format_version: Version of the files of a text index.
            document_granularity: Whether a document of a text index is a row or an element of a
                list.
            **kwargs: Parameters of the kind.

        Raises:
            ColumnNotFoundError: The table has no such column.
            ColumnTypeError: The kind does not support the type of the column.
            AlreadyExistsError: There is an index of this name, and `replace` is False.

        Examples:
            >>> ds.create_scalar_index("id", "BTREE")
            >>> "ScalarIndexQuery" in ds.scanner(filter="id = 2").explain_plan()
            True
        """
        options = index_arguments.text_options(index_type, format_version, document_granularity)
        request = index_arguments.index_request(
            column, index_type, name, {**kwargs, **options}, replace=replace, train=train
        )
        run = core_indices.IndexRun(
            choices=self._choices, progress=index_arguments.progress_events(progress_callback)
        )
        unique = None if index_uuid is None else to_uuid(index_uuid)
        if fragment_ids is None and unique is None:
            self._snapshot = self._table.indices.create(request, run)
            return
        if unique is None and request.kind.upper() == index_arguments.TEXT_KIND:
            unique = self._snapshot.location.session.ids.uuid4()
        if (
            fragment_ids is None
            or unique is None
            or request.kind.upper() not in index_arguments.PARTED_KINDS
        ):
            raise InvalidRequestError(
                f"{request.kind.upper()} is built for single fragments by "
                "create_index_uncommitted(..., fragment_ids=...)"
            )
        part = index_arguments.of_fragments(request, fragment_ids)
        self._table.indices.build_part(part, unique, run)

    @describes_as(create_scalar_index)
    def create_index(
        self,
        column: str | list[str],
        index_type: core_indices.VectorKind | core_indices.ScalarKind | str,
        name: str | None = None,
        metric: core_indices.Metric | str = "L2",
        replace: bool = False,
        num_partitions: int | None = None,
        ivf_centroids: Any = None,
        pq_codebook: Any = None,
        num_sub_vectors: int | None = None,
        accelerator: Any = None,
        index_cache_size: int | None = None,
        shuffle_partition_batches: int | None = None,
        shuffle_partition_concurrency: int | None = None,
        ivf_centroids_file: str | None = None,
        precomputed_partition_dataset: str | None = None,
        storage_options: dict[str, str] | None = None,
        filter_nan: bool = True,
        train: bool = True,
        fragment_ids: list[int] | None = None,
        index_uuid: str | None = None,
        *,
        target_partition_size: int | None = None,
        streaming_sample_rate: int | None = None,
        streaming_coreset_rate: int | None = None,
        streaming_refine_passes: int | None = None,
        skip_transpose: bool = False,
        progress_callback: index_arguments.Callback | None = None,
        **kwargs: Unpack[core_indices.IndexParameters],
    ) -> Self:
        """Build an index of vectors, or of a scalar kind as `create_scalar_index` does.

        Vectors that are not finite are left out. Arguments about caches, shuffles and streaming
        tune official Lance.

        Args:
            column: The column.
            index_type: IVF_FLAT, IVF_SQ, IVF_PQ, one of these with HNSW such as IVF_HNSW_SQ, or a
                scalar kind.
            metric: Distance: L2, cosine, dot or hamming.
            num_partitions: Partitions of the vectors; by default chosen by the number of rows.
            ivf_centroids: Centers of the partitions, instead of training them.
            pq_codebook: Codebook of PQ, together with `ivf_centroids`.
            num_sub_vectors: Parts of a vector that PQ encodes, each in one code.
            accelerator: Device that trains the partitions, such as `cuda`.
            ivf_centroids_file: URI of a NumPy file with the centers.
            precomputed_partition_dataset: Not supported.
            storage_options: Not supported.
            filter_nan: Accepted: vectors that are not finite are always left out.
            fragment_ids: Not supported: use `create_index_uncommitted`.
            index_uuid: Not supported: use `create_index_uncommitted`.
            target_partition_size: Rows per partition to aim at, if `num_partitions` is not given.
            skip_transpose: Store PQ and RQ codes row by row.
            **kwargs: Parameters: `num_bits`, `sample_rate`, `max_iters`, `m`, `ef_construction` and
                `max_level` of vectors, or those of a scalar kind.

        Returns:
            This dataset at the version that has the index.

        Raises:
            ColumnTypeError: The column does not hold vectors.
            AlreadyExistsError: There is an index of this name, and `replace` is False.

        Examples:
            >>> docs.create_index("vector", "IVF_FLAT", num_partitions=1, metric="cosine").has_index
            True
        """
        if index_arguments.is_vector_type(index_type):
            parameters = index_arguments.vector_parameters(index_type, locals(), kwargs)
            args = index_arguments.one_column(column), index_type, name, parameters
            request = index_arguments.index_request(*args, replace=replace, train=train)
            if fragment_ids is not None or index_uuid is not None:
                raise InvalidRequestError("use create_index_uncommitted(..., fragment_ids=...)")
            run = core_indices.IndexRun(
                choices=self._choices, progress=index_arguments.progress_events(progress_callback)
            )
            self._snapshot = self._table.indices.create(request, run)
            return self
        index_arguments.ensure_known_kind(index_type)
        index_arguments.ensure_scalar(index_type, locals(), _only_vector())
        options: dict[str, Any] = {**kwargs}
        self.create_scalar_index(
            index_arguments.one_column(column),
            index_type,
            name,
            replace=replace,
            train=train,
            fragment_ids=fragment_ids,
            index_uuid=index_uuid,
            progress_callback=progress_callback,
            **options,
        )
        return self

    def drop_index(self, name: str) -> None:
        """Drop an index by its name.

        Args:
            name: The name of the index.

        Raises:
            IndexNotFoundError: The table has no such index.

        Examples:
            >>> ds.create_scalar_index("id", "BTREE")
            >>> ds.drop_index("id_idx")
            >>> ds.has_index
            False
        """
        self._snapshot = self._table.indices.drop(name, choices=self._choices)

    def prewarm_index(
        self,
        name: str,
        *,
        with_position: bool = False,
        index_segments: Iterable[str | uuid.UUID] | None = None,
    ) -> None:
        """Load an index, or some of its segments, into the cache of index files.

        Args:
            name: The name of the index.
            with_position: Not supported.
            index_segments: Uuids of the segments; by default all.

        Raises:
            IndexNotFoundError: The table has no such index.

        Examples:
            >>> ds.create_scalar_index("id", "BTREE")
            >>> ds.prewarm_index("id_idx")
        """
        if with_position:
            raise UnsupportedError("positions of text indices are read by phrase queries only")
        uuids = None if index_segments is None else [to_uuid(str(i)) for i in index_segments]
        self._table.indices.prewarm(name, uuids)

    def list_indices(self) -> list[IndexInformation]:
        """Return the index entries.

        Returns:
            One entry per segment: name, kind, columns, covered fragments and version.

        Examples:
            >>> ds.create_scalar_index("id", "BTREE")
            >>> [(index["name"], index["type"], index["fields"]) for index in ds.list_indices()]
            [('id_idx', 'BTree', ['id'])]
        """
        problem = "list_indices is deprecated; use describe_indices"
        warnings.warn(problem, DeprecationWarning, stacklevel=2)
        coverage = self._table.indices.current_coverage()
        segments = inform(self._snapshot.indices, self._snapshot.manifest, coverage=coverage)
        return NotebookList(segments, SEGMENT_HEADER, segment_cells)

    def describe_indices(self) -> list[IndexDescription]:
        """Describe each index.

        Returns:
            One description per index, with its segments.

        Examples:
            >>> ds.create_scalar_index("id", "BTREE")
            >>> [(index.name, index.num_rows_indexed) for index in ds.describe_indices()]
            [('id_idx', 3)]
        """
        coverage = self._table.indices.current_coverage()
        indices = describe(self._snapshot.indices, self._snapshot.manifest, coverage=coverage)
        return NotebookList(indices, INDEX_HEADER, index_cells)

    @property
    def has_index(self) -> bool:
        """Whether the table has an index.

        Examples:
            >>> ds.has_index
            False
        """
        return bool(self._snapshot.indices)

    @describes_as(create_index)
    def create_index_uncommitted(
        self,
        column: str | list[str],
        index_type: core_indices.VectorKind | core_indices.ScalarKind | str | IndexConfig,
        name: str | None = None,
        metric: core_indices.Metric | str = "L2",
        replace: bool = False,
        num_partitions: int | None = None,
        ivf_centroids: Any = None,
        pq_codebook: Any = None,
        num_sub_vectors: int | None = None,
        accelerator: Any = None,
        index_cache_size: int | None = None,
        shuffle_partition_batches: int | None = None,
        shuffle_partition_concurrency: int | None = None,
        ivf_centroids_file: str | None = None,
        precomputed_partition_dataset: str | None = None,
        storage_options: dict[str, str] | None = None,
        filter_nan: bool = True,
        train: bool = True,
        fragment_ids: list[int] | None = None,
        index_uuid: str | None = None,
        *,
        target_partition_size: int | None = None,
        streaming_sample_rate: int | None = None,
        streaming_coreset_rate: int | None = None,
        streaming_refine_passes: int | None = None,
        skip_transpose: bool = False,
        rabitq_model: str | None = None,
        **kwargs: Unpack[core_indices.IndexParameters],
    ) -> Index:
        """Build a segment of an index over some fragments and return its entry, uncommitted.

        Segments of disjoint fragments can be merged by `merge_existing_index_segments`, and are
        committed together by `commit_existing_index_segments`.

        Args:
            column: The column.
            index_type: A kind of vector or scalar index, as in `create_index`, which describes the
                arguments that are not listed here.
            name: Name of the index.
            replace: Ignored: nothing is committed.
            ivf_centroids: Centers of the partitions; segments to be merged must share them.
            train: False builds a segment that covers no row.
            fragment_ids: The fragments to cover, which are required.
            index_uuid: Refused: a segment gets a new one.
            rabitq_model: Result of `build_rq_model`, for RQ indices.
            **kwargs: Parameters of the kind.

        Raises:
            InvalidRequestError: `fragment_ids` is not given.

        Examples:
            >>> segment = ds.create_index_uncommitted("id", "BTREE", "by_id", fragment_ids=[0])
            >>> ds.commit_existing_index_segments("by_id", "id", [segment]).has_index
            True
        """
        parameters: Mapping[str, Any] = kwargs
        if index_arguments.is_vector_type(index_type):
            parameters = index_arguments.vector_parameters(str(index_type), locals(), kwargs)
        else:
            index_arguments.ensure_scalar(index_type, locals(), _only_vector())
        if fragment_ids is None:
            raise InvalidRequestError("create_index_uncommitted requires fragment_ids")
        request = index_arguments.index_request(
            index_arguments.one_column(column), index_type, name, parameters, train=train
        )
        if index_uuid is not None:
            raise InvalidRequestError("index_uuid is no longer accepted: a segment gets a new one")
        run = core_indices.IndexRun(choices=self._choices)
        part = index_arguments.of_fragments(request, fragment_ids)
        return from_index(self._table.indices.build_segment(part, run))

    def merge_existing_index_segments(self, segments: list[Index]) -> Index:
        """Merge uncommitted segments of one index into a new one and return its entry.

        Args:
            segments: Results of `create_index_uncommitted`, of disjoint fragments.

        Returns:
            The entry of the merged segment, which is not committed either.

        Examples:
            >>> ds.insert(ds.head(1))
            >>> parts = [
            ...     ds.create_index_uncommitted("id", "BTREE", "by_id", fragment_ids=[number])
            ...     for number in (0, 1)
            ... ]
            >>> merged = ds.merge_existing_index_segments(parts)
            >>> sorted(merged.fragment_ids)
            [0, 1]
        """
        run = core_indices.IndexRun(choices=self._choices)
        return from_index(self._table.indices.merge_segments(list(map(to_index, segments)), run))

    def commit_existing_index_segments(
        self, index_name: str, column: str, segments: list[Index]
    ) -> Self:
        """Commit built segments as one index.

        Args:
            index_name: Name of the index.
            column: The column.
            segments: Results of `create_index_uncommitted` or `merge_existing_index_segments`.

        Returns:
            This dataset at the version that has the index.

        Examples:
            >>> segment = ds.create_index_uncommitted("id", "BTREE", "by_id", fragment_ids=[0])
            >>> ds = ds.commit_existing_index_segments("by_id", "id", [segment])
            >>> [index["name"] for index in ds.list_indices()]
            ['by_id']
        """
        run = core_indices.IndexRun(choices=self._choices)
        entries = list(map(to_index, segments))
        self._snapshot = self._table.indices.commit_segments(index_name, column, entries, run)
        return self

    def merge_index_metadata(
        self,
        index_uuid: str,
        index_type: str,
        batch_readhead: int | None = None,  # tunes official Lance
        progress_callback: index_arguments.Callback | None = None,
    ) -> None:
        """Merge the parts of a BTREE or INVERTED built under one uuid; nothing is committed.

        Args:
            index_uuid: The uuid of the parts.
            index_type: BTREE or INVERTED.
            batch_readhead: Ignored.
            progress_callback: Called while parts of an INVERTED are merged.

        Raises:
            UnsupportedError: The kind is not built in parts.

        Examples:
            >>> unique = "7f3c1a52-9d1e-4f7b-8a66-0c5d2b9e1f34"
            >>> ds.create_scalar_index("id", "BTREE", fragment_ids=[0], index_uuid=unique)
            >>> ds.merge_index_metadata(unique, "BTREE")
        """
        unique = to_uuid(index_uuid)
        kind = index_arguments.kind_name(index_type)
        if kind not in index_arguments.PARTED_KINDS:
            raise UnsupportedError(
                f"parts of {kind} are not merged by merge_index_metadata",
                action="Use merge_existing_index_segments.",
            )
        self._table.indices.merge_parts(
            unique,
            core_indices.kind_named(kind),
            index_arguments.progress_events(progress_callback),
        )

    def get_ivf_model(self, index_name: str) -> IvfModel:
        """Return the partitions of a vector index.

        Args:
            index_name: The name of the index.

        Returns:
            The centers of the partitions and the metric.

        Raises:
            IndexNotFoundError: The table has no such index.

        Examples:
            >>> built = docs.create_index("vector", "IVF_FLAT", num_partitions=1)
            >>> docs.get_ivf_model("vector_idx").num_partitions
            1
        """
        for segment in core_indices.StoredIndices(self._snapshot).segments(index_name):
            opened = segment.open()
            if isinstance(opened, core_indices.VectorSegment):
                lists = vector_lists(opened.model.partitions.centers)
                return IvfModel(lists, opened.model.metric.value)
        problem = f"there is no vector index {index_name!r}"
        raise IndexNotFoundError(problem, table=self._snapshot.location.uri)

    def centroids(
        self, *, index_name: str | None = None, column: str | None = None
    ) -> pa.FixedSizeListArray:
        """Return the centers of the partitions of an index, or of the first one of a column.

        Args:
            index_name: The name of the index.
            column: The column, instead of the name.

        Returns:
            One vector per partition.

        Raises:
            IndexNotFoundError: There is no such index.

        Examples:
            >>> built = docs.create_index("vector", "IVF_FLAT", num_partitions=1)
            >>> len(docs.centroids(column="vector"))
            1
        """
        if index_name is None:
            if column is None:
                raise InvalidRequestError("Must provide 'index_name' or 'column'.")
            index_name = self._first_vector_index(column)
        return self.get_ivf_model(index_name).centroids

    def _first_vector_index(self, column: str) -> str:
        stored = core_indices.StoredIndices(self._snapshot)
        field = self._snapshot.manifest.schema.find(column)
        for entry in self._snapshot.indices:
            if field is None or entry.fields != (field[-1].id,):
                continue
            segment = stored.segment(entry)
            if segment is not None and isinstance(segment.open(), core_indices.VectorSegment):
                return entry.name
        problem = f"No IVF index for column '{column}'"
        raise IndexNotFoundError(problem, table=self._snapshot.location.uri)


@cache
def _only_vector() -> dict[str, object]:
    """Return the arguments of a build that scalar indices do not take, with their defaults."""
    whole = signature(DatasetIndices.create_index_uncommitted).parameters
    of_scalar = signature(DatasetIndices.create_scalar_index).parameters
    return {name: whole[name].default for name in whole if name not in of_scalar}


class VectorIndexReader:
    """Reads the partitions of a vector index."""

    def __init__(self, dataset: Any, index_name: str) -> None:
        self.dataset = dataset
        self.index_name = index_name
        self.stats = dataset.stats.index_stats(index_name)
        stored = core_indices.StoredIndices(dataset._snapshot).segments(index_name)
        opened = [segment.open() for segment in stored]
        self._segments = [
            segment for segment in opened if isinstance(segment, core_indices.VectorSegment)
        ]
        if not self._segments:
            raise ValueError(f"Index {index_name} is not vector index")

    def __repr__(self) -> str:
        return call_text(self, self.dataset, self.index_name)

    def num_partitions(self) -> int:
        """Return the number of partitions."""
        return len(self._segments[0].model.partitions)

    def read_partition(self, partition_id: int, *, with_vector: bool = False) -> pa.Table:
        """Return the row ids of a partition, with the codes of the vectors if asked for."""
        count = self.num_partitions()
        if not 0 <= partition_id < count:
            expected = f"expected 0 <= partition_id < {count}"
            raise IndexError(f"Partition id {partition_id} is out of range, {expected}")
        parts = [
            s.files.partition_rows(partition_id, with_codes=with_vector) for s in self._segments
        ]
        return pa.concat_tables(parts)
