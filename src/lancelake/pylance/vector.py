"""Tables of vectors, as in pylance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelake.errors import InvalidRequestError
from lancelake.pylance._dataset.indices_builder import IndicesBuilder
from lancelake.pylance._dataset.vector_arguments import floats
from lancelake.pylance._values.vector_models import vector_lists

_PAIR = 2


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
    found = ["vector"] if names is None else [names] if isinstance(names, str) else list(names)
    if len(found) > 1:
        raise InvalidRequestError(f"names cannot be more than 1 got {len(found)}")
    return pa.Table.from_arrays([_vectors(data, ndim, check_ndim=check_ndim)], names=found)


def train_ivf_centroids_on_accelerator(
    dataset: Any,
    column: str,
    k: int,
    metric_type: str,
    accelerator: Any,
    batch_size: int = 1024 * 10 * 4,  # tunes official Lance
    *,
    sample_rate: int = 256,
    max_iters: int = 50,
    filter_nan: bool = True,  # vectors that are not finite are left out
) -> tuple[npt.NDArray[np.float32], None]:
    """Cluster a sample of vectors on a GPU; return the centers, and no further object."""
    model = IndicesBuilder(dataset, column).train_ivf(
        k,
        distance_type=metric_type,
        accelerator=accelerator,
        sample_rate=sample_rate,
        max_iters=max_iters,
    )
    return floats(model.centroids), None


def _vectors(values: Iterable[Any], ndim: int | None, *, check_ndim: bool) -> pa.Array:
    rows = list(values)
    size = len(rows[0]) if ndim is None else ndim
    wrong = next((row for row in rows if len(row) != size), None) if check_ndim else None
    if wrong is not None:
        problem = f"Expected {size} dimensions but got {len(wrong)} for {wrong}"
        raise InvalidRequestError(problem)
    return vector_lists(np.array(rows, dtype=np.float32).reshape(-1, size))
