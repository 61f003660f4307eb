"""Arguments of a vector search, as in pylance."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelake.errors import InvalidRequestError
from lancelake.index.vector.metric import metric_named
from lancelake.index.vector.top_rows import DistanceRange
from lancelake.scan.nearest import DEFAULT_K, Nearest

_APPROX_MODES = ("fast", "normal", "accurate")
_MATRIX = 2
_ALL_CPUS = -1


def nearest_request(column: str, q: Any, **options: Any) -> Nearest:
    """Return the search that the arguments of `ScannerBuilder.nearest` ask for."""
    queries, has_several = query_vectors(q)
    nprobes, effort = options["nprobes"], options["search_effort"]
    if nprobes is not None and effort is None and operator.index(nprobes) <= 0:
        raise InvalidRequestError(f"Nprobes must be > 0 but got {nprobes}")
    if options["approx_mode"] not in _APPROX_MODES:
        expected = ", ".join(_APPROX_MODES)
        raise InvalidRequestError(f"approx_mode must be one of: {expected}")
    threads = options["query_parallelism"]
    if threads is not None and operator.index(threads) < _ALL_CPUS:
        raise InvalidRequestError(f"query_parallelism must be -1 or more, got {threads}")
    if effort is not None and not 0 <= float(effort) <= 1:
        raise InvalidRequestError(f"search_effort must be between 0 and 1, got {effort}")
    low, high = options["minimum_nprobes"], options["maximum_nprobes"]
    if nprobes is not None and effort is None:
        low = nprobes if low is None else low
        high = nprobes if high is None else high
    k, metric = options["k"], options["metric"]
    return Nearest(
        column=column,
        queries=queries,
        has_several=has_several,
        k=DEFAULT_K if k is None else operator.index(k),
        metric=None if metric is None else metric_named(metric),
        minimum_nprobes=_count(low),
        maximum_nprobes=_count(high),
        refine_factor=_count(options["refine_factor"]),
        use_index=bool(options["use_index"]),
        ef=_count(options["ef"]),
        within=_range(options["distance_range"]),
        effort=None if effort is None else float(effort),
    )


def query_vectors(query: Any) -> tuple[npt.NDArray[np.float32], bool]:
    """Return query vectors, one per row, and whether several were given."""
    if isinstance(query, np.ndarray) and query.ndim == _MATRIX:
        return _floats(query), True
    if _is_list_of_vectors(query):
        sizes = {len(each) for each in query}
        if len(sizes) > 1:
            shown = " and ".join(map(str, sorted(sizes)))
            problem = f"All query vectors must have the same length, but got {shown}"
            raise InvalidRequestError(problem)
        return np.concatenate([query_vectors(each)[0] for each in query]), True
    if isinstance(query, pa.ExtensionScalar):
        query = query.value
    if isinstance(query, pa.Scalar) and pa.types.is_fixed_size_list(query.type):
        query = query.values
    if isinstance(query, pa.Array | pa.ChunkedArray):
        if not (pa.types.is_floating(query.type) or pa.types.is_integer(query.type)):
            found = query.type
            raise TypeError(
                f"query vector must be list-like or pa.FloatingPointArray but received {found}"
            )
        query = query.to_numpy(zero_copy_only=False)
    return _floats(query).reshape(1, -1), False


def _is_list_of_vectors(query: Any) -> bool:
    if isinstance(query, pa.FixedSizeListArray | pa.ListArray):
        return True
    is_list = isinstance(query, Sequence | np.ndarray) and not isinstance(query, str) and len(query)
    return bool(is_list) and isinstance(query[0], list | tuple | np.ndarray | pa.Array)


def _floats(values: Any) -> npt.NDArray[np.float32]:
    try:
        return np.asarray(values, dtype=np.float64).astype(np.float32)
    except (TypeError, ValueError) as error:
        found = type(values)
        raise TypeError(
            f"Query vectors should be an array of floats, got {found} which we cannot coerce to a "
            "float array"
        ) from error


def _count(value: Any) -> int | None:
    return None if value is None else operator.index(value)


def _range(given: tuple[float | None, float | None] | None) -> DistanceRange:
    if given is None:
        return DistanceRange()
    try:
        lower, upper = given
    except (TypeError, ValueError) as error:
        problem = "distance_range must be a tuple of (lower_bound, upper_bound)"
        raise InvalidRequestError(problem) from error
    return DistanceRange(
        None if lower is None else float(lower), None if upper is None else float(upper)
    )
