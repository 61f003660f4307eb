"""Supported forms of timestamps."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pandas as pd
import pytest

from lancelake.errors import InvalidRequestError
from lancelake.pylance._dataset.arguments import to_datetime

MOMENT = datetime(2026, 1, 31, 18, 30)


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        (MOMENT, MOMENT),
        (pd.Timestamp(MOMENT), MOMENT),
        ("2026-01-31 18:30:00", MOMENT),
        ("2026-01-31T18:30", MOMENT),
        (" 2026-01-31 ", datetime(2026, 1, 31)),
        ("2026-01-31T18:30:00+00:00", MOMENT.replace(tzinfo=UTC)),
        ("2026-01-31T18:30:00Z", MOMENT.replace(tzinfo=UTC)),
    ],
)
def test_time_is_understood(when: object, expected: datetime) -> None:
    assert to_datetime(when) == expected


@pytest.mark.parametrize("when", ["", "yesterday", "2026-13-01", "31.01.2026"])
def test_text_that_is_no_time_is_refused(when: str) -> None:
    with pytest.raises(InvalidRequestError, match="Failed to parse timestamp string"):
        to_datetime(when)


@pytest.mark.parametrize("when", [5, 1.5, None, date(2026, 1, 31), ["2026"]])
def test_anything_else_is_refused(when: object) -> None:
    with pytest.raises(TypeError, match="Unrecognized version timestamp"):
        to_datetime(when)
