"""Query vectors and search options as Spark users give them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as t

from lancelake.errors import InvalidRequestError
from lancelake.index.vector.metric import metric_named
from lancelake.index.vector.top_rows import DistanceRange
from lancelake.scan.nearest import Nearest

Matrix = npt.NDArray[np.float32]


class VectorOptions(TypedDict, total=False):
    """Options of a vector search."""

    metric: str | None
    nprobes: int | None
    refineFactor: int | None
    ef: int | None
    useIndex: bool
    distanceRange: tuple[float | None, float | None]


def nearest_of(
    column: str,
    queries: Matrix,
    k: int,
    *,
    metric: str | None = None,
    nprobes: int | None = None,
    refineFactor: int | None = None,
    ef: int | None = None,
    useIndex: bool = True,
    distanceRange: tuple[float | None, float | None] = (None, None),
) -> Nearest:
    """Return a vector search; the options are those of `VectorOptions`."""
    if nprobes is not None and nprobes <= 0:
        raise InvalidRequestError(f"nprobes must be > 0 but got {nprobes}")
    return Nearest(
        column=column,
        queries=queries,
        k=k,
        metric=None if metric is None else metric_named(metric),
        minimum_nprobes=nprobes,
        maximum_nprobes=nprobes,
        refine_factor=refineFactor,
        ef=ef,
        use_index=useIndex,
        within=DistanceRange(*distanceRange),
    )


def one_vector(values: Sequence[float]) -> Matrix:
    """Return a single query vector."""
    try:
        found = np.asarray(list(values), dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise InvalidRequestError("a query vector is a list of numbers") from error
    if found.ndim != 1 or not found.size:
        raise InvalidRequestError("a query vector is a list of numbers")
    return found.reshape(1, -1)


def array_column(frame: DataFrame, name: str | None) -> str:
    """Return the column of query vectors: the only array column of a frame if none is named."""
    if name is not None:
        if name not in frame.columns:
            raise InvalidRequestError(f"the queries have no column {name!r}")
        return name
    arrays = [f.name for f in frame.schema.fields if isinstance(f.dataType, t.ArrayType)]
    if len(arrays) == 1:
        return arrays[0]
    problem = "the queries have no array column"
    if arrays:
        problem = f"the queries have several array columns; name one of: {', '.join(arrays)}"
    raise InvalidRequestError(problem)


def query_matrix(values: pa.Array | pa.ChunkedArray) -> Matrix:
    """Return query vectors, one per row; refuse nulls and vectors of different lengths."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if values.null_count:
        raise InvalidRequestError("query vectors must not be null")
    if not len(values):
        return np.zeros((0, 0), dtype=np.float32)
    lengths = np.unique(values.value_lengths().to_numpy(zero_copy_only=False))
    if len(lengths) > 1:
        shown = " and ".join(map(str, lengths.tolist()))
        raise InvalidRequestError(f"query vectors must have the same length, but got {shown}")
    flat = values.flatten()
    if flat.null_count:
        raise InvalidRequestError("query vectors must not contain nulls")
    try:
        numbers: Matrix = flat.to_numpy(zero_copy_only=False).astype(np.float32)
    except (TypeError, ValueError) as error:
        problem = f"query vectors must be arrays of numbers, not of {flat.type}"
        raise InvalidRequestError(problem) from error
    return numbers.reshape(len(values), int(lengths[0]))
