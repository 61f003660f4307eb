from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lancelake.errors import (
    ContentionError,
    InvalidRequestError,
    WriterFencedError,
)
from lancelake.format.memwal.region_manifest import Generation, RegionManifest
from lancelake.memwal.region import RegionFiles, claim, ensure_epoch, fence, update_manifest
from lancelake.storage.location import Location
from tests.support.failing_store import FailingCalls, Stop
from tests.support.memwal_tables import REGION

NEW = RegionManifest(region_id=REGION)


@pytest.fixture
def files(tmp_path: Path) -> RegionFiles:
    return RegionFiles.at(Location.parse(tmp_path), REGION)


def _failing(files: RegionFiles, *numbers: int, stop: Stop = Stop.AFTER) -> RegionFiles:
    calls = FailingCalls(numbers, stop=stop, only=frozenset({"create"}))
    return replace(files, store=calls.on(files.store))


def test_each_claim_has_the_next_epoch(files: RegionFiles) -> None:
    assert [claim(files, NEW).writer_epoch for _ in range(3)] == [1, 2, 3]


def test_a_claim_with_a_lost_reply_is_repeated(files: RegionFiles) -> None:
    assert claim(_failing(files, 0), NEW).writer_epoch == 2


def test_a_claim_is_given_up_when_the_store_does_not_reply(files: RegionFiles) -> None:
    with pytest.raises(ContentionError):
        claim(_failing(files, *range(100), stop=Stop.BEFORE), NEW)


def test_a_sealed_region_is_refused(files: RegionFiles) -> None:
    files.create_manifest(NEW.sealed())
    with pytest.raises(InvalidRequestError, match="is sealed"):
        claim(files, NEW)


def test_a_region_of_another_spec_is_refused(files: RegionFiles) -> None:
    claim(files, NEW)
    with pytest.raises(InvalidRequestError, match="region spec 0, not 1"):
        claim(files, replace(NEW, spec_id=1))


def test_the_first_writer_needs_no_sentinel(files: RegionFiles) -> None:
    assert fence(files, claim(files, NEW)) == files.last_position() == 0


def test_a_sentinel_follows_the_last_entry(files: RegionFiles) -> None:
    claim(files, NEW)
    files.create_entry(1, b"anything")
    assert fence(files, claim(files, NEW)) == 2
    entry = files.entry(2)
    assert (entry.is_sentinel, entry.writer_epoch) == (True, 2)


def test_a_sentinel_with_a_lost_reply_is_written_once(files: RegionFiles) -> None:
    claim(files, NEW)
    assert fence(_failing(files, 0), claim(files, NEW)) == files.last_position() == 1


def test_a_writer_that_was_replaced_before_its_sentinel_is_fenced(files: RegionFiles) -> None:
    claim(files, NEW)
    mine = claim(files, NEW)
    theirs = claim(files, NEW)

    class Behind(RegionFiles):
        def last_position(self) -> int:
            return 0

    fence(files, theirs)
    with pytest.raises(WriterFencedError, match="another writer"):
        fence(Behind(store=files.store, region=REGION), mine)


def test_the_epoch_of_another_writer_fences(files: RegionFiles) -> None:
    claim(files, NEW)
    assert ensure_epoch(files, 1).version == 1
    claim(files, NEW)
    with pytest.raises(WriterFencedError):
        ensure_epoch(files, 1)


def test_a_change_with_a_lost_reply_is_made_once(files: RegionFiles) -> None:
    claim(files, NEW)
    made = Generation(generation=1, path="x")
    found = update_manifest(
        _failing(files, 0),
        1,
        lambda m: m.with_generation(made, covers=3),
        is_done=lambda m: made in m.generations,
    )
    assert (found.version, found.generations, files.latest()) == (2, (made,), found)
