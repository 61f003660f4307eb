"""Dataset methods that build indices segment by segment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, Unpack

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import InvalidRequestError, UnsupportedError
from lancelake.index.registry import kind_named
from lancelake.pylance._dataset.indices.index_arguments import (
    PARTED_KINDS,
    Callback,
    ensure_scalar,
    index_request,
    kind_name,
    of_fragments,
    one_column,
    progress_events,
)
from lancelake.pylance._dataset.indices.index_values import (
    Index,
    IndexConfig,
    from_index,
    to_index,
    to_uuid,
)
from lancelake.pylance._dataset.indices.vector_arguments import is_vector_type, vector_parameters
from lancelake.pylance._dataset.state.guarded import GuardedDataset
from lancelake.table.index.build import IndexRun, build_segment
from lancelake.table.index.parameters import IndexParameters, Metric, ScalarKind, VectorKind
from lancelake.table.index.parts import merge_parts
from lancelake.table.index.segments import commit_segments, merge_segments


class DatasetIndexSegments(GuardedDataset):
    """Methods that build segments of indices, merge and commit them."""

    _snapshot: Snapshot

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
            index_uuid: Refused: a segment gets a new one.
            target_partition_size: Rows per partition to aim at.
            rabitq_model: Result of `build_rq_model`, for RQ indices.
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
            ensure_scalar(index_type, locals())
        if fragment_ids is None:
            raise InvalidRequestError("create_index_uncommitted requires fragment_ids")
        request = index_request(one_column(column), index_type, name, parameters, train=train)
        if index_uuid is not None:
            raise InvalidRequestError("index_uuid is no longer accepted: a segment gets a new one")
        run = IndexRun(choices=self._choices)
        part = of_fragments(request, fragment_ids)
        return from_index(build_segment(self._snapshot, part, run))

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
        progress_callback: Callback | None = None,
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
        kind = kind_name(index_type)
        if kind not in PARTED_KINDS:
            raise UnsupportedError(
                f"parts of {kind} are not merged by merge_index_metadata",
                action="Use merge_existing_index_segments.",
            )
        merge_parts(self._snapshot, unique, kind_named(kind), progress_events(progress_callback))
