"""Times and durations."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from lancelake.pylance.util import sanitize_ts, td_to_micros


def test_durations_are_counted_in_microseconds() -> None:
    assert td_to_micros(timedelta(seconds=1, microseconds=5)) == 1_000_005


def test_times_are_parsed() -> None:
    assert sanitize_ts("2026-01-31 10:20:30") == datetime(2026, 1, 31, 10, 20, 30)  # local
    with pytest.raises(TypeError, match="Unrecognized version timestamp"):
        sanitize_ts(5)  # type: ignore[arg-type]  # the mistake under test
