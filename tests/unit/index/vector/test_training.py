"""Models that are given are not trained, and need no rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lancelake.index.vector.build import train
from lancelake.index.vector.settings import BuildSettings
from lancelake.index.vector.vectors import VectorType

DIMENSION = 8
CENTERS = np.eye(3, DIMENSION, dtype=np.float32)
DTYPE = pa.list_(pa.float32(), DIMENSION)
GIVEN: dict[str, dict[str, Any]] = {
    "IVF_FLAT": {},
    "IVF_SQ": {"sq_bounds": (-1.0, 1.0)},
    "IVF_PQ": {"pq_codebook": np.zeros((2, 256, 4), np.float32), "num_sub_vectors": 2},
}


class ReadError(Exception):
    """Rows were read."""


def unread() -> Iterator[pa.RecordBatch]:
    raise ReadError
    yield


def trained(kind: str, parameters: dict[str, Any]) -> np.ndarray:
    dtype = VectorType.of(DTYPE)
    assert dtype is not None
    settings = BuildSettings.of(parameters, kind, dtype)
    return train(unread(), 1000, settings, dtype).partitions.centers


@pytest.mark.parametrize("kind", GIVEN)
def test_given_models_are_used_without_reading(kind: str) -> None:
    found = trained(kind, {"ivf_centroids": CENTERS, **GIVEN[kind]})
    np.testing.assert_array_equal(found, CENTERS)


@pytest.mark.parametrize("kind", ["IVF_SQ", "IVF_PQ"])
def test_rows_are_read_for_what_is_missing(kind: str) -> None:
    with pytest.raises(ReadError):
        trained(kind, {"ivf_centroids": CENTERS})
