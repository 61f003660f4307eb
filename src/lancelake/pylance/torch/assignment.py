"""Partitions and PQ codes of vectors, computed with PyTorch, as in pylance."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelake.core.values.indices import PARTITION, ProductCodes, indexed_vectors
from lancelake.core.values.reads import VectorType, metric_named
from lancelake.errors import InvalidRequestError
from lancelake.pylance._values.vector_models import vector_lists
from lancelake.pylance.dataset import LanceDataset, write_dataset
from lancelake.pylance.torch.dist import torch
from lancelake.pylance.torch.kmeans import KMeans

BATCH_ROWS = 1024 * 10 * 4
"""Rows that are assigned at once."""
_CODES = 256
CODE_SAMPLE_ROWS = _CODES * 256
"""Rows on which a PQ codebook is trained."""
_ROUNDS = 50
_ROW_ID, _NUMBER = "row_id", "partition"

Uri = str | Path


def allow_tf32(is_allowed: bool) -> None:
    """Let a GPU multiply matrices with fewer digits, or not."""
    torch().backends.cuda.matmul.allow_tf32 = is_allowed


def fixed_clusters(centers: npt.NDArray[np.float32], metric: str, device: Any = None) -> KMeans:
    """Return a trained model of clusters with these centers."""
    model = KMeans(len(centers), metric=metric, device=device)
    model.centroids = torch().from_numpy(np.array(centers)).to(model.device)
    return model


def compute_partitions(
    dataset: LanceDataset,
    column: str,
    kmeans: KMeans,
    batch_size: int = BATCH_ROWS,
    dst_dataset_uri: Uri | None = None,
    allow_cuda_tf32: bool = True,
    num_sub_vectors: int | None = None,
    filter_nan: bool = True,  # vectors that are not finite are left out
    sample_size: int | None = None,
) -> str:
    """Assign each vector to the nearest cluster, and write the assignments to a table.

    Args:
        dataset: The table of the vectors.
        column: The column of the vectors.
        kmeans: A trained model.
        batch_size: Rows that are assigned at once.
        dst_dataset_uri: The table to write; by default one in a new temporary folder.
        allow_cuda_tf32: Let a GPU multiply with fewer digits.
        num_sub_vectors: Also write the difference of each vector from the center of its cluster,
            in so many columns `__residual_subvec_1`, `__residual_subvec_2`, ...
        filter_nan: Without effect: vectors that are null or not finite are never assigned.
        sample_size: Assign so many random rows only; they are numbered from 0.

    Returns:
        The URI of the table: `row_id`, `partition`, and the columns of differences.

    Raises:
        InvalidRequestError: The vectors cannot be divided into so many parts.
        MissingPackageError: PyTorch is not installed.
    """
    allow_tf32(allow_cuda_tf32)
    names = _residual_names(num_sub_vectors or 0)
    width = _width(int(kmeans.centroids.shape[1]), len(names)) if names else 0
    fields = [pa.field(_ROW_ID, pa.uint64()), pa.field(_NUMBER, pa.uint32())]
    schema = pa.schema([*fields, *(pa.field(n, pa.list_(pa.float32(), width)) for n in names)])

    def assign() -> Iterator[pa.RecordBatch]:
        for ids, vectors in _vectors(dataset, column, kmeans.metric, batch_size, sample_size):
            numbers, residuals = _residuals(kmeans, vectors)
            parts = residuals.reshape(len(ids), len(names), width) if names else residuals
            lists = [vector_lists(parts[:, place]) for place in range(len(names))]
            columns = [pa.array(ids, pa.uint64()), pa.array(numbers, pa.uint32()), *lists]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    return _write(schema, assign, dst_dataset_uri).uri


def train_pq_codebook_on_accelerator(
    dataset: LanceDataset | Uri,
    metric_type: str,
    accelerator: Any,
    num_sub_vectors: int,
    batch_size: int = BATCH_ROWS,  # tunes official Lance
    dtype: Any = np.float32,
) -> tuple[npt.NDArray[Any], list[KMeans]]:
    """Train the codes of the columns of differences that `compute_partitions` writes.

    Args:
        dataset: The table of `compute_partitions`.
        metric_type: The metric of the index. Codes of any metric are the nearest sub-vectors.
        accelerator: A device of PyTorch.
        num_sub_vectors: The number of columns.
        batch_size: Without effect.
        dtype: The type of the codebook.

    Returns:
        The codebook, 256 sub-vectors for each column, and the model of each column.

    Raises:
        InvalidRequestError: The metric is unknown, or there are fewer than 256 rows.
        MissingPackageError: PyTorch is not installed.
    """
    source = _open(dataset)
    rows = min(CODE_SAMPLE_ROWS, source.count_rows())
    KMeans(_CODES, metric=metric_type, device=accelerator)  # refuses unknown metrics
    models: list[KMeans] = []
    for name in _residual_names(num_sub_vectors):
        model = KMeans(_CODES, max_iters=_ROUNDS, device=accelerator)
        model.fit(source.sample(rows, [name])[name].combine_chunks())
        models.append(model)
    books = [model.centroids.cpu().numpy() for model in models]
    return np.stack(books).astype(dtype), models


def compute_pq_codes(
    dataset: LanceDataset | Uri,
    kmeans_list: Sequence[KMeans],
    batch_size: int = BATCH_ROWS,
    dst_dataset_uri: Uri | None = None,
    allow_cuda_tf32: bool = True,
) -> tuple[str, list[str]]:
    """Encode the columns of differences that `compute_partitions` writes.

    Args:
        dataset: The table of `compute_partitions`.
        kmeans_list: The model of each column.
        batch_size: Rows that are encoded at once.
        dst_dataset_uri: The table to write; by default one in a new temporary folder.
        allow_cuda_tf32: Let a GPU multiply with fewer digits.

    Returns:
        The URI of a table of `row_id`, `__ivf_part_id` and `__pq_code`, and its data files.

    Raises:
        MissingPackageError: PyTorch is not installed.
    """
    allow_tf32(allow_cuda_tf32)
    source, names = _open(dataset), _residual_names(len(kmeans_list))

    def encode() -> Iterator[pa.RecordBatch]:
        for batch in source.to_batches([_ROW_ID, _NUMBER, *names], batch_size=batch_size):
            parts = [batch.column(name) for name in names]
            yield _encode(batch.column(_ROW_ID), batch.column(_NUMBER), kmeans_list, parts)

    return _write_codes(len(kmeans_list), encode, dst_dataset_uri)


def assign_codes(
    dataset: LanceDataset,
    column: str,
    clusters: KMeans,
    kmeans_list: Sequence[KMeans],
    batch_size: int,
    dst_dataset_uri: Uri | None,
) -> tuple[str, list[str]]:
    """Assign and encode vectors in one pass; return the table, as `compute_pq_codes` does."""
    count = len(kmeans_list)
    width = _width(int(clusters.centroids.shape[1]), count)

    def encode() -> Iterator[pa.RecordBatch]:
        for ids, vectors in _vectors(dataset, column, clusters.metric, batch_size, None):
            numbers, residuals = _residuals(clusters, vectors)
            parts = np.ascontiguousarray(residuals.reshape(len(ids), count, width).swapaxes(0, 1))
            rows = pa.array(ids, pa.uint64()), pa.array(numbers, pa.uint32())
            yield _encode(*rows, kmeans_list, list(parts))

    return _write_codes(count, encode, dst_dataset_uri)


def _vectors(
    source: LanceDataset, column: str, metric: str, batch_size: int, sample_size: int | None
) -> Iterator[tuple[npt.NDArray[np.uint64], npt.NDArray[np.float32]]]:
    """Yield finite vectors with their row ids; those of a sample are numbered from 0."""
    dtype = VectorType.of(source.schema.field(column).type)
    if dtype is None:
        raise InvalidRequestError(f"column {column!r} has no vectors")
    seen = 0
    for batch in _batches(source, column, batch_size, sample_size):
        values = batch.column(column)
        if isinstance(values, pa.ExtensionArray):
            values = values.storage
        usable = indexed_vectors(values, dtype, metric_named(metric))
        if sample_size is None:
            ids = batch.column("_rowid").to_numpy()[usable.rows]
        else:
            ids = np.arange(seen, seen + len(usable.rows), dtype=np.uint64)
        seen += len(ids)
        if len(ids):
            yield ids, usable.matrix


def _batches(
    source: LanceDataset, column: str, batch_size: int, sample_size: int | None
) -> Iterable[pa.RecordBatch]:
    if sample_size is None:
        return source.to_batches([column], batch_size=batch_size, with_row_id=True)
    rows = source.sample(min(sample_size, source.count_rows()), [column])
    batches: list[pa.RecordBatch] = rows.to_batches(max_chunksize=batch_size)
    return batches


def _residuals(
    clusters: KMeans, vectors: npt.NDArray[np.float32]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """Return the cluster of each vector, and the difference from its center."""
    numbers = clusters.transform(vectors)
    centers = clusters.centroids.to(numbers.device).float()[numbers]
    return numbers.cpu().numpy(), vectors - centers.cpu().numpy()


def _encode(
    ids: pa.Array, numbers: pa.Array, models: Sequence[KMeans], parts: Sequence[Any]
) -> pa.RecordBatch:
    codes = [model.transform(part).cpu() for model, part in zip(models, parts, strict=True)]
    matrix = torch().stack(codes, dim=1).to(torch().uint8).numpy()
    lists = pa.FixedSizeListArray.from_arrays(pa.array(matrix.reshape(-1)), len(models))
    return pa.RecordBatch.from_arrays([ids, numbers, lists], schema=_code_schema(len(models)))


def _code_schema(parts: int) -> pa.Schema:
    return pa.schema(
        {
            _ROW_ID: pa.uint64(),
            PARTITION: pa.uint32(),
            ProductCodes.column: pa.list_(pa.uint8(), parts),
        }
    )


def _write_codes(
    parts: int, batches: Callable[[], Iterator[pa.RecordBatch]], uri: Uri | None
) -> tuple[str, list[str]]:
    table = _write(_code_schema(parts), batches, uri)
    files = [file.path for each in table.get_fragments() for file in each.data_files()]
    return table.uri, files


def _write(
    schema: pa.Schema, batches: Callable[[], Iterator[pa.RecordBatch]], uri: Uri | None
) -> LanceDataset:
    target = tempfile.mkdtemp(prefix="lancelake-") if uri is None else str(uri)
    with torch().no_grad():
        reader = pa.RecordBatchReader.from_batches(schema, batches())
        return write_dataset(reader, target, schema=schema)


def _open(table: LanceDataset | Uri) -> LanceDataset:
    return LanceDataset(str(table)) if isinstance(table, str | Path) else table


def _residual_names(count: int) -> list[str]:
    return [f"__residual_subvec_{number + 1}" for number in range(count)]


def _width(dimension: int, parts: int) -> int:
    if dimension % parts:
        problem = f"dimension ({dimension}) must be divisible by num_sub_vectors ({parts})"
        raise InvalidRequestError(problem)
    return dimension // parts
