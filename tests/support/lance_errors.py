"""Errors of ours, whether Python or Spark raised them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from lancelake.errors import LanceTableError
from lancelake.spark import error_of


@contextmanager
def refused(kind: type[LanceTableError] = LanceTableError, match: str = "") -> Iterator[None]:
    """Expect an exception with an error of this kind inside, whose text matches."""
    with pytest.raises(Exception) as caught:  # the error is looked at below
        yield
    error = error_of(caught.value)
    assert isinstance(error, kind), caught.value
    assert re.search(match, str(error)), error
