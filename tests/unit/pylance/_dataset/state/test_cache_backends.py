"""Cache backends of sessions are checked."""

from __future__ import annotations

from typing import Any

import pytest

from lancelake.errors import InvalidRequestError
from lancelake.pylance._dataset.state import cache_limit


@pytest.mark.parametrize(
    ("backend", "limit"),
    [
        ("moka://?capacity=1048576", 1 << 20),
        ("moka://?capacity=0", 0),
        ({"kind": "MOKA", "options": {"capacity": "5"}}, 5),
    ],
)
def test_a_known_backend_states_the_limit(backend: Any, limit: int) -> None:
    assert cache_limit("index_cache", None, backend) == limit


@pytest.mark.parametrize(
    ("backend", "problem"),
    [
        ("moka", "\"moka\" is missing ':'"),
        ("moka://", "capacity is required; use"),
        ("moka://?capacity=", "capacity must not be empty"),
        ("moka://?capacity=-1", 'cannot parse capacity "-1"'),
        ("moka://?capacity=5&x=1", 'unknown option "x"'),
        ("other://?capacity=5", 'unknown cache backend kind: "other"'),
        ({"kind": "moka"}, "capacity is required"),
        ({"kind": "moka", "capacity": "1"}, 'unknown dict key "capacity"'),
        ({"options": {"capacity": "1"}}, "must contain a 'kind' key"),
        ({"kind": "moka", "options": {"capacity": 5}}, "values must be strings"),
        (5, "expected str .* got int"),
    ],
)
def test_another_backend_is_refused(backend: Any, problem: str) -> None:
    with pytest.raises(InvalidRequestError, match=f"index_cache_backend: .*{problem}"):
        cache_limit("index_cache", None, backend)
