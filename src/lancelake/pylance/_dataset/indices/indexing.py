"""Dataset methods that build, list and drop indices."""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Iterable
from typing import Any, Self, Unpack

from lancelake.clock import Ids, SystemIds
from lancelake.commit.snapshot import Snapshot
from lancelake.errors import InvalidRequestError, UnsupportedError
from lancelake.pylance._dataset.indices.index_arguments import (
    PARTED_KINDS,
    TEXT_KIND,
    Callback,
    ensure_scalar,
    index_request,
    of_fragments,
    one_column,
    progress_events,
    text_options,
)
from lancelake.pylance._dataset.indices.index_values import (
    INDEX_HEADER,
    SEGMENT_HEADER,
    IndexConfig,
    IndexDescription,
    IndexInformation,
    describe,
    index_cells,
    inform,
    segment_cells,
    to_uuid,
)
from lancelake.pylance._dataset.indices.vector_arguments import is_vector_type, vector_parameters
from lancelake.pylance._dataset.state.guarded import GuardedDataset
from lancelake.pylance._dataset.state.notebook import NotebookList
from lancelake.pylance.query import DocumentGranularity
from lancelake.table.index.build import IndexRun, create_index
from lancelake.table.index.drop import drop_index
from lancelake.table.index.parameters import (
    IndexParameters,
    Metric,
    ScalarKind,
    ScalarParameters,
    VectorKind,
)
from lancelake.table.index.parts import build_part
from lancelake.table.index.prewarm import prewarm
from lancelake.table.index.statistics import current_coverage

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
        options = text_options(index_type, format_version, document_granularity)
        request = index_request(
            column, index_type, name, {**kwargs, **options}, replace=replace, train=train
        )
        run = IndexRun(choices=self._choices, progress=progress_events(progress_callback))
        unique = None if index_uuid is None else to_uuid(index_uuid)
        if fragment_ids is None and unique is None:
            self._snapshot = create_index(self._snapshot, request, run)
            return
        if unique is None and request.kind.upper() == TEXT_KIND:
            unique = _IDS.uuid4()
        if fragment_ids is None or unique is None or request.kind.upper() not in PARTED_KINDS:
            raise InvalidRequestError(
                f"{request.kind.upper()} is built for single fragments by "
                "create_index_uncommitted(..., fragment_ids=...)"
            )
        part = of_fragments(request, fragment_ids)
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
        tune official Lance.

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
            skip_transpose: Store PQ and RQ codes row by row.
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
            args = one_column(column), index_type, name, parameters
            request = index_request(*args, replace=replace, train=train)
            if fragment_ids is not None or index_uuid is not None:
                raise InvalidRequestError("use create_index_uncommitted(..., fragment_ids=...)")
            run = IndexRun(choices=self._choices, progress=progress_events(progress_callback))
            self._snapshot = create_index(self._snapshot, request, run)
            return self
        ensure_scalar(index_type, locals())
        given: dict[str, Any] = {**kwargs}
        self.create_scalar_index(
            one_column(column),
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
        problem = "list_indices is deprecated; use describe_indices"
        warnings.warn(problem, DeprecationWarning, stacklevel=2)
        coverage = current_coverage(self._snapshot)
        found = inform(self._snapshot.indices, self._snapshot.manifest, coverage=coverage)
        return NotebookList(found, SEGMENT_HEADER, segment_cells)

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
        found = describe(self._snapshot.indices, self._snapshot.manifest, coverage=coverage)
        return NotebookList(found, INDEX_HEADER, index_cells)

    @property
    def has_index(self) -> bool:
        """Whether the table has an index.

        Examples:
            >>> ds.has_index
            False
        """
        return bool(self._snapshot.indices)
