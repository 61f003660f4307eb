"""Store conformance of the local and the memory store."""

from __future__ import annotations

from pathlib import Path

from lancelake.clock import SystemIds
from lancelake.storage.location import Location
from lancelake.storage.options import DEFAULT_RETRY, RetryingStore
from tests.conformance.store_suite import Law, each_store_law
from tests.support.counting_store import CountingStore
from tests.support.set_clock import ManualClock


@each_store_law
def test_local_store(law: Law, tmp_path: Path) -> None:
    law(Location.parse(tmp_path / "ta#1b%20le").store)


@each_store_law
def test_memory_store(law: Law) -> None:
    law(Location.parse(f"memory://conformance/{law.__name__}").store)


@each_store_law
def test_wrapped_store(law: Law) -> None:
    inner = Location.parse(f"memory://wrapped/{law.__name__}").store
    retrying = RetryingStore(
        inner, policy=DEFAULT_RETRY, clock=ManualClock(), ids=SystemIds(1), lists_in_order=True
    )
    law(CountingStore(retrying))
