from __future__ import annotations

from collections.abc import Iterator

import pytest

from lancelake.storage import disk_sync


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk() -> Iterator[None]:
    with disk_sync.waiting(waits=False):
        yield
