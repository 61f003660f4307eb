"""Arguments of vector index builds, as in pylance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import fs

from lancelake.errors import InvalidRequestError, UnsupportedError
from lancelake.pylance.log import LOGGER

_FILE_VERSION = "V3"
_MATRIX = 2


def is_vector_type(index_type: object) -> bool:
    """Whether a type of index is one of vectors."""
    return isinstance(index_type, str) and index_type.upper().startswith("IVF")


def vector_parameters(
    index_type: str, given: Mapping[str, Any], options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the parameters of a build from the arguments of `create_index` and its options."""
    name = index_type.upper()
    _refuse_unsupported(name, given, options)
    centers, codebook = given["ivf_centroids"], given["pq_codebook"]
    count = given["num_partitions"]
    if given["ivf_centroids_file"] is not None:
        if centers is not None:
            problem = "ivf_centroids and ivf_centroids_file cannot be provided at the same time"
            raise InvalidRequestError(problem)
        centers = _loaded(given["ivf_centroids_file"])
    if centers is None and codebook is not None:
        problem = "ivf_centroids must be specified when pq_codebook is provided"
        raise InvalidRequestError(problem)
    if "PQ" in name and given["num_sub_vectors"] is None:
        raise InvalidRequestError("num_partitions and num_sub_vectors are required for IVF_PQ")
    found = {key: value for key, value in options.items() if key != "index_file_version"}
    found["metric_type"] = _metric(given["metric"])
    found["num_partitions"] = None if count is None else _whole(count)
    found["accelerator"] = _accelerator(name, given["accelerator"])
    found["target_partition_size"] = given["target_partition_size"]
    found["skip_transpose"] = True if given["skip_transpose"] else None
    found["rabitq_model"] = given.get("rabitq_model")
    if "PQ" in name:
        found["num_sub_vectors"] = given["num_sub_vectors"]
        found["pq_codebook"] = None if codebook is None else floats(codebook)
    if centers is not None:
        found["ivf_centroids"] = _centers(floats(centers), found["num_partitions"])
    return {key: value for key, value in found.items() if value is not None}


def floats(values: Any) -> npt.NDArray[np.float32]:
    """Return a matrix or tensor of numbers, given as numpy or Arrow array."""
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    if isinstance(values, pa.FixedSizeListArray):
        flat = values.flatten().to_numpy(zero_copy_only=False)
        return np.asarray(flat, dtype=np.float32).reshape(len(values), -1)
    found = np.asarray(values)
    if not np.issubdtype(found.dtype, np.floating):
        raise TypeError(f"IVF centroids and PQ codebooks must be floats, got {found.dtype}")
    return found.astype(np.float32)


def _refuse_unsupported(name: str, given: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    for argument in ("precomputed_partition_dataset", "storage_options"):
        if given[argument] is not None:
            raise UnsupportedError(f"{argument} of a vector index build is not supported")
    if given.get("rabitq_model") is not None and "RQ" not in name:
        raise InvalidRequestError(f"{name} does not take rabitq_model")
    has_codes = "PQ" in name or "RQ" in name
    if given["skip_transpose"] and not has_codes:
        raise UnsupportedError(f"skip_transpose of {name} is not supported")
    version = options.get("index_file_version", _FILE_VERSION)
    if str(version).upper() != _FILE_VERSION:
        problem = f"vector indices are written with file version {_FILE_VERSION}, not {version}"
        raise UnsupportedError(problem)


def _accelerator(name: str, accelerator: object) -> str | None:
    """Return the device of a build; graphs are built without one."""
    if accelerator is None:
        return None
    if "HNSW" in name:
        LOGGER.warning("%s does not support GPU acceleration; falling back to CPU", name)
        return None
    return str(accelerator)


def _metric(metric: object) -> str:
    known = ("l2", "cosine", "euclidean", "dot", "hamming")
    if not isinstance(metric, str) or metric.lower() not in known:
        raise InvalidRequestError(f"Metric {metric} not supported.")
    return metric.lower()


def _whole(count: Any) -> int:
    if isinstance(count, bool) or not isinstance(count, int | float):
        raise TypeError(f"num_partitions must be int, got {type(count)}")
    return int(count)


def _centers(centers: npt.NDArray[np.float32], count: int | None) -> npt.NDArray[np.float32]:
    if centers.ndim == _MATRIX and not len(centers):
        raise InvalidRequestError("Ivf centroids must have at least one cluster")
    if centers.ndim != _MATRIX:
        problem = f"Ivf centroids must be 2D array: (clusters, dim), got {centers.shape}"
        raise InvalidRequestError(problem)
    if count is not None and len(centers) != count:
        problem = f"Ivf centroids has {len(centers)} clusters, but num_partitions={count}"
        raise InvalidRequestError(problem)
    return centers


def _loaded(uri: str) -> npt.NDArray[Any]:
    system, path = fs.FileSystem.from_uri(uri)
    with system.open_input_file(path) as file:
        found: npt.NDArray[Any] = np.load(file, allow_pickle=False)
    return found
