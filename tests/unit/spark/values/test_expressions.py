"""Expressions of users: what is neither text nor a column is refused."""

from __future__ import annotations

from typing import Any

import pytest

from lancelake.errors import InvalidRequestError
from lancelake.spark.values.options import as_column


@pytest.mark.parametrize("given", [{"score": "1"}, 5, None, ["id"]], ids=repr)
def test_a_value_of_another_type_is_refused(given: Any) -> None:
    with pytest.raises(InvalidRequestError, match="is not an expression"):
        as_column(given)
