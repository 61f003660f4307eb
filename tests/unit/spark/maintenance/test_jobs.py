"""Arguments of maintenance jobs."""

from __future__ import annotations

from datetime import timedelta

import pytest

from lancelake.errors import InvalidRequestError
from lancelake.spark.maintenance.jobs import age_of


def test_an_age_has_units() -> None:
    assert age_of("7days 12h") == timedelta(days=7, hours=12)


@pytest.mark.parametrize("text", ["yesterday", "7", "7 moons", "9999999999years"])
def test_what_is_no_age_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequestError, match=text):
        age_of(text)
