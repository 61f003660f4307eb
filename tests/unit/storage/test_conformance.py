"""Store conformance of the local and the memory store."""

from __future__ import annotations

from pathlib import Path

from lancelake.clock import ManualClock, SystemIds
from lancelake.storage.counting import CountingStore
from lancelake.storage.location import Location
from lancelake.storage.open import open_store
from lancelake.storage.retry import DEFAULT_RETRY, RetryingStore
from tests.conformance.store_suite import Law, each_store_law


@each_store_law
def test_local_store(law: Law, tmp_path: Path) -> None:
    law(open_store(Location.parse(tmp_path / "ta#1b%20le")))


@each_store_law
def test_memory_store(law: Law) -> None:
    law(open_store(Location.parse(f"memory://conformance/{law.__name__}")))


@each_store_law
def test_wrapped_store(law: Law) -> None:
    inner = open_store(Location.parse(f"memory://wrapped/{law.__name__}"))
    retrying = RetryingStore(
        inner, policy=DEFAULT_RETRY, clock=ManualClock(), ids=SystemIds(1), lists_in_order=True
    )
    law(CountingStore(retrying))
