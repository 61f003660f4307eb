"""Arguments of scans."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lancelake.pylance._dataset.arguments import request_columns, row_numbers


@pytest.mark.parametrize(
    "indices",
    [[1, 2], (1, 2), range(1, 3), pa.array([1, 2]), pa.chunked_array([[1], [2]]), np.array([1, 2])],
    ids=str,
)
def test_row_numbers_are_taken_from_anything_with_integers(indices: Any) -> None:
    assert row_numbers(indices).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("indices", "error"),
    [([-1], OverflowError), ([1.5], TypeError), (["1"], TypeError), ([None], TypeError)],
)
def test_anything_else_is_no_row_number(indices: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        row_numbers(indices)


@pytest.mark.parametrize("columns", ["key", ("key",), {"key"}, 5])
def test_columns_are_a_list_or_a_dict(columns: Any) -> None:
    with pytest.raises(TypeError, match="columns must be a list or dict"):
        request_columns(columns)
