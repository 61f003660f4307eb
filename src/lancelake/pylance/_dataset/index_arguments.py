"""Arguments of index builds as values of the core."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import fs

from lancelake.core.values import indices
from lancelake.errors import InvalidRequestError, UnsupportedError
from lancelake.pylance._dataset.index_values import (
    IndexConfig,
)
from lancelake.pylance.log import LOGGER
from lancelake.pylance.progress import IndexProgress
from lancelake.pylance.query import DocumentGranularity

Callback = Callable[[IndexProgress], None]

TEXT_KIND, _TEXT_ALIAS = "INVERTED", "FTS"
PARTED_KINDS = ("BTREE", TEXT_KIND)
"""Kinds that are built in parts, which share a uuid and are merged before they are committed."""


def ensure_known_kind(index_type: str | IndexConfig) -> None:
    """Raise the error of official releases for a kind that does not exist."""
    kind = index_type if isinstance(index_type, str) else index_type.index_type
    try:
        indices.kind_named(kind_name(kind))
    except InvalidRequestError as error:
        raise UnsupportedError(error.problem, action=error.next_step, found=kind) from error


def ensure_scalar(
    index_type: str | IndexConfig, given: Mapping[str, object], only_vector: Mapping[str, object]
) -> None:
    """Raise an error for arguments that only vector indices use, given with their defaults."""
    kind = index_type if isinstance(index_type, str) else index_type.index_type
    for name, default in only_vector.items():
        if name in given and given[name] is not default and given[name] != default:
            raise InvalidRequestError(f"{kind.upper()} does not take {name}")


def text_options(
    index_type: str | IndexConfig, version: object, granularity: object
) -> dict[str, object]:
    """Return the options that only text indices have; refuse them for other kinds."""
    if not isinstance(granularity, DocumentGranularity):
        raise TypeError("document_granularity must be a DocumentGranularity")
    options: dict[str, object] = {} if version is None else {"format_version": version}
    if granularity is not DocumentGranularity.ROW:
        options["document_granularity"] = granularity.value
    kind = index_type if isinstance(index_type, str) else index_type.index_type
    if options and kind_name(kind) != TEXT_KIND:
        raise InvalidRequestError(
            "format_version and document_granularity are parameters of full-text indices"
        )
    return options


def kind_name(kind: str) -> str:
    """Return the name of a kind, which users may write in another case or as an alias."""
    return TEXT_KIND if kind.upper() == _TEXT_ALIAS else kind.upper()


def one_column(column: str | list[str]) -> str:
    """Return the column of an index; several are refused."""
    columns = [column] if isinstance(column, str) else list(column)
    if len(columns) != 1:
        raise UnsupportedError("an index has one column")
    return columns[0]


def index_request(
    column: str,
    index_type: str | IndexConfig,
    name: str | None,
    parameters: Mapping[str, Any],
    *,
    replace: bool = True,
    train: bool = True,
) -> indices.IndexRequest:
    """Return the request of a build; parameters extend those of an `IndexConfig`."""
    if isinstance(index_type, IndexConfig):
        kind, parameters = index_type.index_type, {**index_type.parameters, **parameters}
    else:
        kind = index_type
    ensure_known_kind(kind)
    kind = kind_name(kind)
    return indices.IndexRequest(
        column=column, kind=kind, name=name, replace=replace, train=train, parameters=parameters
    )


def of_fragments(request: indices.IndexRequest, fragment_ids: list[int]) -> indices.IndexRequest:
    """Return a request that covers only these fragments."""
    return dataclasses.replace(request, fragment_ids=tuple(fragment_ids))


def progress_events(callback: Callback | None) -> indices.Progress | None:
    """Return a function that reports the progress of a build as pylance's events."""
    if callback is None:
        return None

    def report(found: indices.JobProgress) -> None:
        amounts = found.stage, found.done, found.total, found.unit
        if not found.done:
            callback(IndexProgress("start", *amounts))
            return
        callback(IndexProgress("progress", *amounts))
        if found.done < found.total:
            return
        try:
            callback(IndexProgress("complete", *amounts))
        except Exception:  # noqa: BLE001  # logged
            # What a stage did stays done; a callback stops the build where a stage begins.
            LOGGER.warning(
                "the progress callback failed at the end of %s", found.stage, exc_info=True
            )

    return report


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
        centers = _load(given["ivf_centroids_file"])
    if centers is None and codebook is not None:
        raise InvalidRequestError("ivf_centroids must be specified when pq_codebook is provided")
    if "PQ" in name and given["num_sub_vectors"] is None:
        raise InvalidRequestError("num_partitions and num_sub_vectors are required for IVF_PQ")
    parameters = {key: value for key, value in options.items() if key != "index_file_version"}
    parameters["metric_type"] = _metric(given["metric"])
    parameters["num_partitions"] = None if count is None else _whole(count)
    parameters["accelerator"] = _accelerator(name, given["accelerator"])
    parameters["target_partition_size"] = given["target_partition_size"]
    parameters["skip_transpose"] = True if given["skip_transpose"] else None
    parameters["rabitq_model"] = given.get("rabitq_model")
    if "PQ" in name:
        parameters["num_sub_vectors"] = given["num_sub_vectors"]
        parameters["pq_codebook"] = None if codebook is None else floats(codebook)
    if centers is not None:
        parameters["ivf_centroids"] = _centers(floats(centers), parameters["num_partitions"])
    return {key: value for key, value in parameters.items() if value is not None}


def floats(values: Any) -> npt.NDArray[np.float32]:
    """Return a matrix or tensor of numbers, given as numpy or Arrow array."""
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    if isinstance(values, pa.FixedSizeListArray):
        flat = values.flatten().to_numpy(zero_copy_only=False)
        return np.asarray(flat, dtype=np.float32).reshape(len(values), -1)
    matrix = np.asarray(values)
    if not np.issubdtype(matrix.dtype, np.floating):
        raise TypeError(f"IVF centroids and PQ codebooks must be floats, got {matrix.dtype}")
    return matrix.astype(np.float32)


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
    metrics = ("l2", "cosine", "euclidean", "dot", "hamming")
    if not isinstance(metric, str) or metric.lower() not in metrics:
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


def _load(uri: str) -> npt.NDArray[Any]:
    system, path = fs.FileSystem.from_uri(uri)
    with system.open_input_file(path) as file:
        centers: npt.NDArray[Any] = np.load(file, allow_pickle=False)
    return centers
