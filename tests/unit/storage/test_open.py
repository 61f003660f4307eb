"""The store of each kind of location."""

from __future__ import annotations

from pathlib import Path

import pytest

from lancelake.errors import StorageUnavailableError
from lancelake.storage.local import LocalStore
from lancelake.storage.location import Location, Session
from lancelake.storage.options import RetryPolicy
from tests.support.set_clock import ManualClock

NOWHERE = {"endpoint": "http://127.0.0.1:1", "skip_signature": "true", "allow_http": "true"}


def test_path_is_served_from_disk(tmp_path: Path) -> None:
    assert isinstance(Location.parse(tmp_path).store, LocalStore)


def test_policy_is_followed() -> None:
    clock = ManualClock()
    session = Session(clock=clock, retry=RetryPolicy(max_retries=2))
    store = Location.parse("s3://b/t", NOWHERE, session=session).store
    with pytest.raises(StorageUnavailableError):
        store.get("a")
    assert len(clock.slept) == 2


def test_options_win_over_the_policy() -> None:
    clock = ManualClock()
    session = Session(clock=clock, retry=RetryPolicy(max_retries=2))
    options = {**NOWHERE, "client_max_retries": "1"}
    with pytest.raises(StorageUnavailableError):
        Location.parse("s3://b/t", options, session=session).store.get("a")
    assert len(clock.slept) == 1
