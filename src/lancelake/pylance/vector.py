"""Tables of vectors, training on a GPU and duplicates, as in pylance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelake.core.values.metadata import default_session
from lancelake.core.values.reads import cluster_hashes
from lancelake.errors import ColumnTypeError, InvalidRequestError, UnknownDataError
from lancelake.pylance._values.opened import describes_as
from lancelake.pylance._values.vector_models import vector_lists
from lancelake.pylance.indices.accelerated import (
    one_pass_assign_ivf_pq_on_accelerator,
    one_pass_train_ivf_pq_on_accelerator,
    train_ivf_centroids_on_accelerator,
)
from lancelake.pylance.torch.assignment import (
    compute_partitions,
    compute_pq_codes,
    train_pq_codebook_on_accelerator,
)

if TYPE_CHECKING:
    from lancelake.pylance.dataset import LanceDataset

__all__ = [
    "compute_partitions",
    "compute_pq_codes",
    "find_duplicate_pairs",
    "find_duplicate_pairs_in_partition",
    "get_ivf_partition_info",
    "hamming_clustering_for_ivf_partition",
    "hamming_clustering_for_range",
    "hamming_clustering_for_sample",
    "one_pass_assign_ivf_pq_on_accelerator",
    "one_pass_train_ivf_pq_on_accelerator",
    "train_ivf_centroids_on_accelerator",
    "train_pq_codebook_on_accelerator",
    "vec_to_table",
]

_PAIR = 2
_HASH_BYTES = 8


def vec_to_table(
    data: Mapping[Any, Any] | list[Any] | npt.NDArray[Any],
    names: str | Sequence[str] | None = None,
    ndim: int | None = None,
    check_ndim: bool = True,
) -> pa.Table:
    """Return a table of vectors of 32-bit floats.

    The keys of a mapping become the column `id`, its values the column `vector`; a list or a
    matrix becomes the column `vector`. `names` are other names of the columns.
    """
    if isinstance(data, Mapping):
        if names is None:
            names = ("id", "vector")
        if isinstance(names, str) or len(names) != _PAIR:
            problem = "If data is a dict, names must be a list or tuple of 2 strings"
            raise InvalidRequestError(problem)
        values = _vectors(list(data.values()), ndim, check_ndim=check_ndim)
        return pa.Table.from_arrays([pa.array(list(data)), values], names=list(names))
    if not isinstance(data, list | np.ndarray):
        raise NotImplementedError(f"data must be dict, list, or ndarray, got {type(data)} instead")
    columns = ["vector"] if names is None else [names] if isinstance(names, str) else list(names)
    if len(columns) > 1:
        raise InvalidRequestError(f"names cannot be more than 1 got {len(columns)}")
    return pa.Table.from_arrays([_vectors(data, ndim, check_ndim=check_ndim)], names=columns)


def find_duplicate_pairs(
    dataset: LanceDataset,
    column: str,
    distance_threshold: float,
    *,
    memory_limit: int | None = None,  # tunes official Lance
    max_concurrency: int | None = None,
) -> pa.RecordBatchReader:
    """Stream pairs of rows with nearly the same vectors, by a vector index.

    Rows are compared within each partition of each segment, by the vectors that the codes of the
    index stand for and by its metric. Deleted rows are left out.

    Args:
        dataset: The dataset.
        column: Vector column; it must have one vector index, which covers all fragments.
        distance_threshold: Largest distance of a pair.
        memory_limit: Accepted as in pylance; one partition at a time is in memory.
        max_concurrency: Accepted as in pylance.

    Returns:
        The columns `row_id_a`, `row_id_b` and `distance`. Each pair is returned once, in the order
        of the rows in the index.

    Raises:
        InvalidRequestError: The column has no vector index, or one that does not cover all rows.

    Examples:
        >>> from lancelake.pylance import vector
        >>> docs = docs.create_index("vector", "IVF_FLAT", num_partitions=1)
        >>> vector.find_duplicate_pairs(docs, "vector", 1.0).read_all().to_pydict()
        {'row_id_a': [0, 1], 'row_id_b': [2, 2], 'distance': [1.0, 1.0]}
    """
    _ensure_positive(max_concurrency)
    return dataset._table.duplicate_pairs(column, float(distance_threshold))


@describes_as(find_duplicate_pairs)
def find_duplicate_pairs_in_partition(
    dataset: LanceDataset,
    column: str,
    segment_id: str | UUID,
    partition_id: int,
    distance_threshold: float,
    *,
    memory_limit: int | None = None,  # tunes official Lance
    max_concurrency: int | None = None,
) -> pa.RecordBatchReader:
    """Stream the pairs of `find_duplicate_pairs` of one partition.

    Args:
        column: Vector column with one vector index.
        segment_id: Uuid of a segment of the index.
        partition_id: Number of a partition of the segment.
        memory_limit: Accepted as in pylance.

    Returns:
        The columns `row_id_a`, `row_id_b` and `distance`.

    Raises:
        InvalidRequestError: The index has no such segment or partition.

    Examples:
        >>> from lancelake.pylance import vector
        >>> docs = docs.create_index("vector", "IVF_FLAT", num_partitions=1)
        >>> segment = docs.describe_indices()[0].segments[0].uuid
        >>> pairs = vector.find_duplicate_pairs_in_partition(docs, "vector", segment, 0, 1.0)
        >>> pairs.read_all().num_rows
        2
    """
    _ensure_positive(max_concurrency)
    return dataset._table.duplicate_pairs(
        column,
        float(distance_threshold),
        segment=str(segment_id),
        partition=partition_id,
    )


def get_ivf_partition_info(
    dataset: LanceDataset, index_name: str, *, index_segments: Iterable[str | UUID] | None = None
) -> list[dict[str, int]]:
    """Return the number of rows of each partition of a vector index.

    Args:
        dataset: The dataset.
        index_name: Name of the index.
        index_segments: Uuids of the segments whose rows are counted; by default all.

    Returns:
        A dictionary with `partition_id` and `size` for each partition.

    Raises:
        IndexNotFoundError: There is no such vector index.

    Examples:
        >>> from lancelake.pylance import vector
        >>> docs = docs.create_index("vector", "IVF_FLAT", num_partitions=1)
        >>> vector.get_ivf_partition_info(docs, "vector_idx")
        [{'partition_id': 0, 'size': 3}]
    """
    sizes = dataset._table.partition_sizes(index_name, _segment_ids(index_segments))
    return [{"partition_id": number, "size": size} for number, size in enumerate(sizes)]


def hamming_clustering_for_ivf_partition(
    dataset: LanceDataset,
    index_name: str,
    partition_id: int,
    hamming_threshold: int,
    *,
    index_segments: Iterable[str | UUID] | None = None,
) -> pa.RecordBatchReader:
    """Cluster the rows of a partition of an IVF_FLAT index of hashes.

    Rows whose hashes differ in up to `hamming_threshold` bits are in the same cluster, directly or
    through others.

    Args:
        dataset: The dataset.
        index_name: Name of an index with the metric `hamming`.
        partition_id: Number of the partition; rows of all segments take part.
        hamming_threshold: Largest number of different bits.
        index_segments: Uuids of the segments whose rows take part; by default all.

    Returns:
        The columns `representative`, the smallest row id of each cluster of several rows, and
        `duplicates`, the ids of the others.

    Raises:
        InvalidRequestError: The index has another metric, or no such partition.

    Examples:
        >>> from lancelake.pylance import vector
        >>> hashes = pa.array([[7] * 8, [255] * 8, [7] * 8], pa.list_(pa.uint8(), 8))
        >>> ds = lance.write_dataset(pa.table({"h": hashes}), "hashes.lance")
        >>> ds = ds.create_index("h", "IVF_FLAT", metric="hamming", num_partitions=1)
        >>> vector.hamming_clustering_for_ivf_partition(ds, "h_idx", 0, 2).read_all().to_pylist()
        [{'representative': 0, 'duplicates': [2]}]
    """
    segments = _segment_ids(index_segments)
    args = index_name, partition_id, hamming_threshold, segments
    return dataset._table.partition_clusters(*args)


def hamming_clustering_for_sample(
    dataset: LanceDataset,
    column: str,
    sample_size: int | None = None,
    hamming_threshold: int = 10,
) -> pa.RecordBatchReader:
    """Cluster a sample of the rows by their hashes.

    Args:
        dataset: The dataset.
        column: Column of hashes: fixed-size lists of bytes, whose length is a multiple of 8.
        sample_size: Number of rows; all of them if there are no more, or by default.
        hamming_threshold: Largest number of different bits.

    Returns:
        The columns of `hamming_clustering_for_ivf_partition`.

    Raises:
        ColumnTypeError: The column has no such lists.

    Examples:
        >>> from lancelake.pylance import vector
        >>> hashes = pa.array([[7] * 8, [255] * 8, [7] * 8], pa.list_(pa.uint8(), 8))
        >>> ds = lance.write_dataset(pa.table({"h": hashes}), "hashes.lance")
        >>> vector.hamming_clustering_for_sample(ds, "h").read_all().to_pylist()
        [{'representative': 0, 'duplicates': [2]}]
    """
    _ensure_hashes(dataset, column)
    rows = dataset.to_table([column], with_row_id=True)
    if sample_size is not None and sample_size < len(rows):
        rows = rows.take(sorted(default_session().ids.sample(len(rows), sample_size)))
    return _clusters(rows, hamming_threshold)


@describes_as(hamming_clustering_for_sample)
def hamming_clustering_for_range(
    dataset: LanceDataset,
    column: str,
    fragment_id: int,
    start_row: int,
    num_rows: int,
    hamming_threshold: int = 10,
) -> pa.RecordBatchReader:
    """Cluster consecutive rows of a fragment by their hashes.

    Args:
        fragment_id: Number of the fragment.
        start_row: The first row.
        num_rows: Number of rows.

    Returns:
        The columns of `hamming_clustering_for_ivf_partition`.

    Raises:
        ColumnTypeError: The column has no such lists.
        InvalidRequestError: There is no such fragment.

    Examples:
        >>> from lancelake.pylance import vector
        >>> hashes = pa.array([[7] * 8, [255] * 8, [7] * 8], pa.list_(pa.uint8(), 8))
        >>> ds = lance.write_dataset(pa.table({"h": hashes}), "hashes.lance")
        >>> vector.hamming_clustering_for_range(ds, "h", 0, 1, 2).read_all().num_rows
        0
    """
    _ensure_hashes(dataset, column)
    fragment = dataset.get_fragment(fragment_id)
    if fragment is None:
        raise InvalidRequestError(f"there is no fragment {fragment_id}")
    rows = fragment.to_table([column], with_row_id=True, offset=start_row, limit=num_rows)
    return _clusters(rows, hamming_threshold)


def _ensure_hashes(dataset: LanceDataset, column: str) -> None:
    dtype = dataset.schema.field(column).type
    is_bytes = pa.types.is_fixed_size_list(dtype) and dtype.value_type == pa.uint8()
    if not is_bytes or not dtype.list_size or dtype.list_size % _HASH_BYTES:
        problem = f"column {column!r} must have fixed-size lists of uint8, whose length is a "
        raise ColumnTypeError(f"{problem}multiple of {_HASH_BYTES}, not {dtype}", column=column)


def _clusters(rows: pa.Table, threshold: int) -> pa.RecordBatchReader:
    rows = rows.filter(rows.column(0).is_valid())
    size = rows.schema.field(0).type.list_size
    flat = pa.concat_arrays([pa.array([], pa.uint8()), *(c.flatten() for c in rows[0].chunks)])
    return cluster_hashes(rows.column(1).to_numpy(), flat.to_numpy().reshape(-1, size), threshold)


def _ensure_positive(concurrency: int | None) -> None:
    if concurrency is not None and concurrency <= 0:
        raise InvalidRequestError(f"max_concurrency must be positive, got {concurrency}")


def _segment_ids(segments: Iterable[str | UUID] | None) -> list[str] | None:
    if segments is None:
        return None
    if isinstance(segments, str | UUID):
        problem = "index_segments must be an iterable of str or uuid.UUID, not a single one"
        raise UnknownDataError(problem)
    return [str(segment) for segment in segments]


def _vectors(values: Iterable[Any], ndim: int | None, *, check_ndim: bool) -> pa.Array:
    rows = list(values)
    if not rows and ndim is None:
        raise InvalidRequestError("there are no vectors, whose length could be known: set ndim")
    size = len(rows[0]) if ndim is None else ndim
    wrong = next((row for row in rows if len(row) != size), None) if check_ndim else None
    if wrong is not None:
        raise InvalidRequestError(f"Expected {size} dimensions but got {len(wrong)} for {wrong}")
    return vector_lists(np.array(rows, dtype=np.float32).reshape(-1, size))
