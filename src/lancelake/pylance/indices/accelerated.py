"""Training and assignment of IVF_PQ indices on a GPU, as in pylance."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from lancelake.pylance._dataset.index_arguments import floats
from lancelake.pylance._values.opened import describes_as
from lancelake.pylance.indices.builder import IndicesBuilder
from lancelake.pylance.torch import assignment

if TYPE_CHECKING:
    from lancelake.pylance.dataset import LanceDataset
    from lancelake.pylance.torch.kmeans import KMeans


def train_ivf_centroids_on_accelerator(
    dataset: LanceDataset,
    column: str,
    k: int,
    metric_type: str,
    accelerator: Any,
    batch_size: int = assignment.BATCH_ROWS,  # tunes official Lance
    *,
    sample_rate: int = 256,
    max_iters: int = 50,
    filter_nan: bool = True,  # vectors that are not finite are left out
) -> tuple[npt.NDArray[np.float32], KMeans]:
    """Cluster a sample of vectors on a GPU.

    Args:
        dataset: The table of the vectors.
        column: The column of the vectors.
        k: The number of clusters.
        metric_type: `l2`, `cosine` or `dot`.
        accelerator: `cuda`, `cuda:1`, ... or `mps`.
        batch_size: Without effect.
        sample_rate: Vectors in the sample for each cluster.
        max_iters: Rounds of training, at most.
        filter_nan: Without effect: vectors that are null or not finite are left out.

    Returns:
        The centers, and a model of them that assigns vectors.

    Raises:
        UnsupportedError: PyTorch finds no such device.
        MissingPackageError: PyTorch is not installed.
    """
    model = IndicesBuilder(dataset, column).train_ivf(
        k,
        distance_type=metric_type,
        accelerator=accelerator,
        sample_rate=sample_rate,
        max_iters=max_iters,
    )
    centers = floats(model.centroids)
    return centers, assignment.fixed_clusters(centers, metric_type, accelerator)


@describes_as(train_ivf_centroids_on_accelerator)
def one_pass_train_ivf_pq_on_accelerator(
    dataset: LanceDataset,
    column: str,
    k: int,
    metric_type: str,
    accelerator: Any,
    num_sub_vectors: int,
    batch_size: int = assignment.BATCH_ROWS,
    *,
    sample_rate: int = 256,
    max_iters: int = 50,
    filter_nan: bool = True,
) -> tuple[npt.NDArray[np.float32], KMeans, npt.NDArray[Any], list[KMeans]]:
    """Train partitions and a PQ codebook on a GPU.

    Args:
        k: The number of partitions.
        num_sub_vectors: The number of parts into which vectors are divided.
        batch_size: Rows that are assigned at once.
        sample_rate: Vectors in the sample for each partition.

    Returns:
        The centers of the partitions and their model, the codebook and the models of its parts.

    Raises:
        UnsupportedError: PyTorch finds no such device.
        MissingPackageError: PyTorch is not installed.
    """
    centers, clusters = train_ivf_centroids_on_accelerator(
        dataset,
        column,
        k,
        metric_type,
        accelerator,
        sample_rate=sample_rate,
        max_iters=max_iters,
    )
    with tempfile.TemporaryDirectory(prefix="lancelake-") as folder:
        sample = assignment.compute_partitions(
            dataset,
            column,
            clusters,
            batch_size,
            dst_dataset_uri=folder,
            num_sub_vectors=num_sub_vectors,
            sample_size=assignment.CODE_SAMPLE_ROWS,
        )
        book, models = assignment.train_pq_codebook_on_accelerator(
            sample, metric_type, accelerator, num_sub_vectors
        )
    return centers, clusters, book, models


@describes_as(train_ivf_centroids_on_accelerator)
def one_pass_assign_ivf_pq_on_accelerator(
    dataset: LanceDataset,
    column: str,
    metric_type: str,  # that of the partitions is used
    accelerator: Any,  # that of the models is used
    ivf_kmeans: KMeans,
    pq_kmeans_list: list[KMeans],
    dst_dataset_uri: str | Path | None = None,
    batch_size: int = assignment.BATCH_ROWS,
    *,
    filter_nan: bool = True,  # vectors that are not finite are left out
    allow_cuda_tf32: bool = True,
) -> tuple[str, list[str]]:
    """Assign vectors to partitions and encode them in one pass.

    Args:
        metric_type: Without effect: the partitions have a metric.
        accelerator: Without effect: the models have a device.
        ivf_kmeans: The model of the partitions.
        pq_kmeans_list: The models of the parts of vectors.
        dst_dataset_uri: The table to write; by default one in a new temporary folder.
        batch_size: Rows that are assigned at once.
        allow_cuda_tf32: Let a GPU multiply with fewer digits.

    Returns:
        The URI of a table of `row_id`, `__ivf_part_id` and `__pq_code`, and its data files.

    Raises:
        InvalidRequestError: The vectors cannot be divided into so many parts.
        MissingPackageError: PyTorch is not installed.
    """
    assignment.allow_tf32(allow_cuda_tf32)
    return assignment.assign_codes(
        dataset, column, ivf_kmeans, pq_kmeans_list, batch_size, dst_dataset_uri
    )
