"""Arguments of index builds, checked and converted to requests."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Mapping
from typing import Any

from lancelake.engine.port import JobProgress, Progress
from lancelake.errors import InvalidRequestError, UnsupportedError
from lancelake.pylance._dataset.indices.index_values import IndexConfig
from lancelake.pylance.progress import IndexProgress
from lancelake.pylance.query import DocumentGranularity
from lancelake.table.index.request import IndexRequest

_log = logging.getLogger(__name__)

Callback = Callable[[IndexProgress], None]

TEXT_KIND, _TEXT_ALIAS = "INVERTED", "FTS"
PARTED_KINDS = ("BTREE", TEXT_KIND)
"""Kinds that are built in parts, which share a uuid and are merged before they are committed."""

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


def ensure_scalar(index_type: str | IndexConfig, given: Mapping[str, object]) -> None:
    """Raise an error for arguments that only vector indices use."""
    kind = index_type if isinstance(index_type, str) else index_type.index_type
    for name, default in _VECTOR_DEFAULTS.items():
        if name in given and given[name] is not default and given[name] != default:
            raise InvalidRequestError(f"{kind.upper()} does not take {name}")


def text_options(
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
    if given and kind_name(kind) != TEXT_KIND:
        raise InvalidRequestError(
            "format_version and document_granularity are parameters of full-text indices"
        )
    return given


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
) -> IndexRequest:
    """Return the request of a build; parameters extend those of an `IndexConfig`."""
    if isinstance(index_type, IndexConfig):
        kind, parameters = index_type.index_type, {**index_type.parameters, **parameters}
    else:
        kind = index_type
    kind = kind_name(kind)
    return IndexRequest(
        column=column, kind=kind, name=name, replace=replace, train=train, parameters=parameters
    )


def of_fragments(request: IndexRequest, fragment_ids: list[int]) -> IndexRequest:
    """Return a request that covers only these fragments."""
    return dataclasses.replace(request, fragment_ids=tuple(fragment_ids))


def progress_events(callback: Callback | None) -> Progress | None:
    """Return a function that reports the progress of a build as pylance's events."""
    if callback is None:
        return None

    def report(found: JobProgress) -> None:
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
            _log.warning(
                "the progress callback failed at the end of %s", found.stage, exc_info=True
            )

    return report
