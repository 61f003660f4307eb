"""Codec of UpdateMemWalState: progress of regions."""

from __future__ import annotations

import uuid

from lancelake.format.index_meta import MergedGeneration
from lancelake.format.operations import CODECS, UpdateMemWalState

update_mem_wal_state = CODECS["update_mem_wal_state"]


def test_marks_are_read_as_they_were_written():
    mark = MergedGeneration(region_id=uuid.UUID(int=3), generation=7)
    operation = UpdateMemWalState(merged_generations=(mark,))

    assert update_mem_wal_state.decode(update_mem_wal_state.encode(operation)) == operation
