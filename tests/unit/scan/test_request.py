"""Invalid scan requests are refused immediately."""

from __future__ import annotations

from typing import Any

import pytest

from lancelake.errors import InvalidRequestError
from lancelake.scan.request import ScanRequest


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"limit": -1}, "Limit must be non-negative"),
        ({"offset": -1}, "Offset must be non-negative"),
        ({"batch_size": 0}, "batch_size must be between 1 and 4294967295, got 0"),
        ({"batch_size": -5}, "batch_size must be between 1 and 4294967295, got -5"),
        ({"batch_size": 1 << 32}, "batch_size must be between 1 and 4294967295"),
    ],
)
def test_number_out_of_range_is_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidRequestError, match=problem):
        ScanRequest(**options)


@pytest.mark.parametrize("options", [{"limit": 0}, {"offset": 0}, {"batch_size": (1 << 32) - 1}])
def test_number_at_the_edge_is_taken(options: dict[str, int]) -> None:
    ScanRequest(**options)
