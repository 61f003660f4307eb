"""The part of a dataset that builds and drops indices."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self, Unpack

from lancelake.clock import Ids, SystemIds
from lancelake.commit.snapshot import Snapshot
from lancelake.engine.port import JobProgress, Progress
from lancelake.errors import InvalidRequestError, UnsupportedError
from lancelake.index.registry import kind_named
from lancelake.pylance._dataset.guarded import GuardedDataset
from lancelake.pylance._dataset.index_values import (
    Index,
    IndexConfig,
    IndexDescription,
    IndexInformation,
    describe,
    from_index,
    inform,
    to_index,
    to_uuid,
)
from lancelake.pylance._dataset.vector_arguments import is_vector_type, vector_parameters
from lancelake.pylance.progress import IndexProgress
from lancelake.pylance.query import DocumentGranularity
from lancelake.table.index.build import IndexRun, build_segment, create_index
from lancelake.table.index.drop import drop_index
from lancelake.table.index.parameters import (
    IndexParameters,
    Metric,
    ScalarKind,
    ScalarParameters,
    VectorKind,
)
from lancelake.table.index.parts import build_part, merge_parts
from lancelake.table.index.prewarm import prewarm
from lancelake.table.index.request import IndexRequest
from lancelake.table.index.segments import commit_segments, merge_segments
from lancelake.table.index.statistics import current_coverage

Callback = Callable[[IndexProgress], None]

_TEXT, _TEXT_ALIAS = "INVERTED", "FTS"
_PARTED = ("BTREE", _TEXT)

_IDS: Ids = SystemIds()


class DatasetIndices(GuardedDataset):
    """Methods that build, list and drop indices."""

    _snapshot: Snapshot

    def create_scalar_index(
        self,
        column: str,
        index_type: ScalarKind | str | IndexConfig,
        name: str | None = None,
        *,
        replace: bool = True,
        train: bool = True,
        fragment_ids: list[int] | None = None,
        index_uuid: str | None = None,
        progress_callback: Callback | None = None,
        format_version: int | str | None = None,
        document_granularity: DocumentGranularity = DocumentGranularity.ROW,
        **kwargs: Unpack[ScalarParameters],
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
        options = _text_options(index_type, format_version, document_granularity)
        request = _request(
            column, index_type, name, {**kwargs, **options}, replace=replace, train=train
        )
        run = IndexRun(choices=self._choices, progress=_progress(progress_callback))
        unique = None if index_uuid is None else to_uuid(index_uuid)
        if fragment_ids is None and unique is None:
            self._snapshot = create_index(self._snapshot, request, run)
            return
        if unique is None and request.kind.upper() == _TEXT:
            unique = _IDS.uuid4()
        if fragment_ids is None or unique is None or request.kind.upper() not in _PARTED:
            raise InvalidRequestError(
                f"{request.kind.upper()} is built of single fragments by "
                "create_index_uncommitted(..., fragment_ids=...)"
            )
        part = _of_fragments(request, fragment_ids)
        build_part(self._snapshot, part, unique, run)

    def create_index(
        self,
        column: str | list[str],
        index_type: VectorKind | ScalarKind | str,
        name: str | None = None,
        metric: Metric | str = "L2",
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
        progress_callback: Callback | None = None,
        **kwargs: Unpack[IndexParameters],
    ) -> Self:
        """Build an index of vectors, or of a scalar kind as `create_scalar_index` does.

        Vectors that are not finite are left out. Arguments about caches, shuffles and streaming
        tune
        official Lance.

        Args:
            column: The column.
            index_type: IVF_FLAT, IVF_SQ, IVF_PQ, one of these with HNSW such as IVF_HNSW_SQ, or a
                scalar kind.
            name: Name of the index; by default the column's, with `_idx`.
            metric: Distance: L2, cosine, dot or hamming.
            replace: Replace an index of the same name; otherwise it is an error.
            num_partitions: Partitions of the vectors; by default chosen by the number of rows.
            ivf_centroids: Centers of the partitions, instead of training them.
            pq_codebook: Codebook of PQ, together with `ivf_centroids`.
            num_sub_vectors: Parts of a vector that PQ encodes, each in one code.
            accelerator: Device that trains the partitions, such as `cuda`.
            ivf_centroids_file: URI of a NumPy file with the centers.
            precomputed_partition_dataset: Not supported.
            storage_options: Not supported.
            filter_nan: Accepted: vectors that are not finite are always left out.
            train: False creates an index that covers no row yet.
            fragment_ids: Not supported: use `create_index_uncommitted`.
            index_uuid: Not supported: use `create_index_uncommitted`.
            target_partition_size: Rows per partition to aim at, if `num_partitions` is not given.
            skip_transpose: Not supported.
            progress_callback: Called while the index is built.
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
        if is_vector_type(index_type):
            parameters = vector_parameters(index_type, locals(), kwargs)
            args = _one_column(column), index_type, name, parameters
            request = _request(*args, replace=replace, train=train)
            if fragment_ids is not None or index_uuid is not None:
                raise InvalidRequestError("use create_index_uncommitted(..., fragment_ids=...)")
            run = IndexRun(choices=self._choices, progress=_progress(progress_callback))
            self._snapshot = create_index(self._snapshot, request, run)
            return self
        _ensure_scalar(index_type, locals())
        given: dict[str, Any] = {**kwargs}
        self.create_scalar_index(
            _one_column(column),
            index_type,
            name,
            replace=replace,
            train=train,
            fragment_ids=fragment_ids,
            index_uuid=index_uuid,
            progress_callback=progress_callback,
            **given,
        )
        return self

    def create_index_uncommitted(
        self,
        column: str | list[str],
        index_type: VectorKind | ScalarKind | str | IndexConfig,
        name: str | None = None,
        metric: Metric | str = "L2",
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
        **kwargs: Unpack[IndexParameters],
    ) -> Index:
        """Build a segment of an index over some fragments and return its entry, uncommitted.

        Segments of disjoint fragments can be merged by `merge_existing_index_segments`, and are
        committed together by `commit_existing_index_segments`.

        Args:
            column: The column.
            index_type: A kind of vector or scalar index, as in `create_index`.
            name: Name of the index.
            metric: Distance of a vector index.
            replace: Ignored: nothing is committed.
            num_partitions: Partitions of the vectors.
            ivf_centroids: Centers of the partitions; segments to be merged must share them.
            pq_codebook: Codebook of PQ, together with `ivf_centroids`.
            num_sub_vectors: Parts of a vector that PQ encodes.
            accelerator: Device that trains the partitions.
            ivf_centroids_file: URI of a NumPy file with the centers.
            train: False builds a segment that covers no row.
            fragment_ids: The fragments to cover, which are required.
            index_uuid: The uuid of the segment.
            target_partition_size: Rows per partition to aim at.
            rabitq_model: Not supported.
            **kwargs: Parameters of the kind.

        Returns:
            The entry of the segment.

        Raises:
            InvalidRequestError: `fragment_ids` is not given.

        Examples:
            >>> segment = ds.create_index_uncommitted("id", "BTREE", "by_id", fragment_ids=[0])
            >>> ds.commit_existing_index_segments("by_id", "id", [segment]).has_index
            True
        """
        parameters: Mapping[str, Any] = kwargs
        if is_vector_type(index_type):
            parameters = vector_parameters(str(index_type), locals(), kwargs)
        else:
            _ensure_scalar(index_type, locals())
        if fragment_ids is None:
            raise InvalidRequestError("create_index_uncommitted requires fragment_ids")
        request = _request(_one_column(column), index_type, name, parameters, train=train)
        unique = None if index_uuid is None else to_uuid(index_uuid)
        run = IndexRun(choices=self._choices)
        part = _of_fragments(request, fragment_ids)
        return from_index(build_segment(self._snapshot, part, run, unique=unique))

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
        run = IndexRun(choices=self._choices)
        return from_index(merge_segments(self._snapshot, list(map(to_index, segments)), run))

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
        run = IndexRun(choices=self._choices)
        entries = list(map(to_index, segments))
        self._snapshot = commit_segments(self._snapshot, index_name, column, entries, run)
        return self

    def merge_index_metadata(
        self,
        index_uuid: str,
        index_type: str,
        batch_readhead: int | None = None,  # tunes official Lance
        progress_callback: Callback | None = None,  # merging reports no rows
    ) -> None:
        """Merge the parts of a BTREE or INVERTED built under one uuid; nothing is committed.

        Args:
            index_uuid: The uuid of the parts.
            index_type: BTREE or INVERTED.
            batch_readhead: Ignored.
            progress_callback: Ignored.

        Raises:
            UnsupportedError: The kind is not built in parts.

        Examples:
            >>> unique = "7f3c1a52-9d1e-4f7b-8a66-0c5d2b9e1f34"
            >>> ds.create_scalar_index("id", "BTREE", fragment_ids=[0], index_uuid=unique)
            >>> ds.merge_index_metadata(unique, "BTREE")
        """
        unique = to_uuid(index_uuid)
        kind = _kind_named(index_type)
        if kind not in _PARTED:
            raise UnsupportedError(
                f"parts of {kind} are not merged by merge_index_metadata",
                action="Use merge_existing_index_segments.",
            )
        merge_parts(self._snapshot, unique, kind_named(kind))

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
        self._snapshot = drop_index(self._snapshot, name, choices=self._choices)

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
        chosen = None if index_segments is None else [to_uuid(str(i)) for i in index_segments]
        prewarm(self._snapshot, name, chosen)

    def list_indices(self) -> list[IndexInformation]:
        """Return the index entries.

        Returns:
            One entry per segment: name, kind, columns, covered fragments and version.

        Examples:
            >>> ds.create_scalar_index("id", "BTREE")
            >>> [(index["name"], index["type"], index["fields"]) for index in ds.list_indices()]
            [('id_idx', 'BTree', ['id'])]
        """
        coverage = current_coverage(self._snapshot)
        return inform(self._snapshot.indices, self._snapshot.manifest, coverage=coverage)

    def describe_indices(self) -> list[IndexDescription]:
        """Describe each index.

        Returns:
            One description per index, with its segments.

        Examples:
            >>> ds.create_scalar_index("id", "BTREE")
            >>> [(index.name, index.num_rows_indexed) for index in ds.describe_indices()]
            [('id_idx', 3)]
        """
        coverage = current_coverage(self._snapshot)
        return describe(self._snapshot.indices, self._snapshot.manifest, coverage=coverage)

    @property
    def has_index(self) -> bool:
        """Whether the table has an index.

        Examples:
            >>> ds.has_index
            False
        """
        return bool(self._snapshot.indices)


_VECTOR_DEFAULTS: Mapping[str, object] = {
    "metric": "L2",
    "num_partitions": None,
    "ivf_centroids": None,
    "pq_codebook": None,
    "num_sub_vectors": None,
    "accelerator": None,
    "index_cache_size": None,
    "shuffle_partition_batches": None,
    "shuffle_partition_concurrency": None,
    "ivf_centroids_file": None,
    "precomputed_partition_dataset": None,
    "storage_options": None,
    "filter_nan": True,
    "target_partition_size": None,
    "streaming_sample_rate": None,
    "streaming_coreset_rate": None,
    "streaming_refine_passes": None,
    "skip_transpose": False,
    "rabitq_model": None,
}


def _ensure_scalar(index_type: str | IndexConfig, given: Mapping[str, object]) -> None:
    """Refuse what only vector indices use."""
    kind = index_type if isinstance(index_type, str) else index_type.index_type
    for name, default in _VECTOR_DEFAULTS.items():
        if name in given and given[name] is not default and given[name] != default:
            raise InvalidRequestError(f"{kind.upper()} does not take {name}")


def _text_options(
    index_type: str | IndexConfig, version: object, granularity: object
) -> dict[str, object]:
    """Return the options that only text indices have; refuse them for other kinds."""
    if not isinstance(granularity, DocumentGranularity):
        msg = "document_granularity must be a DocumentGranularity"
        raise TypeError(msg)
    given: dict[str, object] = {} if version is None else {"format_version": version}
    if granularity is not DocumentGranularity.ROW:
        given["document_granularity"] = granularity.value
    kind = index_type if isinstance(index_type, str) else index_type.index_type
    if given and _kind_named(kind) != _TEXT:
        raise InvalidRequestError(
            "format_version and document_granularity are of full-text indices"
        )
    return given


def _kind_named(kind: str) -> str:
    """Return the name of a kind for which there may be another one."""
    return _TEXT if kind.upper() == _TEXT_ALIAS else kind.upper()


def _one_column(column: str | list[str]) -> str:
    columns = [column] if isinstance(column, str) else list(column)
    if len(columns) != 1:
        raise UnsupportedError("an index is of one column")
    return columns[0]


def _request(
    column: str,
    index_type: str | IndexConfig,
    name: str | None,
    parameters: Mapping[str, Any],
    *,
    replace: bool = True,
    train: bool = True,
) -> IndexRequest:
    if isinstance(index_type, IndexConfig):
        kind, parameters = index_type.index_type, {**index_type.parameters, **parameters}
    else:
        kind = index_type
    kind = _kind_named(kind)
    return IndexRequest(
        column=column, kind=kind, name=name, replace=replace, train=train, parameters=parameters
    )


def _of_fragments(request: IndexRequest, fragment_ids: list[int]) -> IndexRequest:
    return dataclasses.replace(request, fragment_ids=tuple(fragment_ids))


def _progress(callback: Callback | None) -> Progress | None:
    """Return what turns the progress of a build into pylance's events."""
    if callback is None:
        return None

    def report(found: JobProgress) -> None:
        stage, total = "build", found.total
        if not found.done:
            callback(IndexProgress("start", stage, 0, total, "rows"))
        elif found.done < total:
            callback(IndexProgress("progress", stage, found.done, total, "rows"))
        else:
            callback(IndexProgress("complete", stage, found.done, total, "rows"))

    return report
