from __future__ import annotations

import pytest

from lancelake.errors import InvalidRequestError
from lancelake.format.operations import UpdateMemWalState
from lancelake.txn import conflict_matrix, merged_generations
from lancelake.txn.conflict_matrix import mark
from tests.unit.txn.making import after, fragment_ids, table

AT_5 = UpdateMemWalState(merged_generations=(mark("r", 5),))
HEAD = table(indices=(conflict_matrix.mem_wal(),))


def test_rows_stay() -> None:
    assert fragment_ids(after(AT_5, HEAD)) == [0, 1]


def test_progress_is_recorded_under_an_id_of_its_own() -> None:
    (entry,) = after(AT_5, HEAD).indices
    assert merged_generations.progress_of(entry) == {mark("r", 5).region_id: 5}
    assert entry.uuid != HEAD.indices[0].uuid
    assert (entry.dataset_version, entry.created_at_ms) == (2, 5000)


def test_progress_does_not_go_back() -> None:
    with pytest.raises(InvalidRequestError, match="at generation 5"):
        after(AT_5, after(AT_5, HEAD))


def test_a_table_without_mem_wal_has_no_progress() -> None:
    with pytest.raises(InvalidRequestError, match="no MemWAL"):
        after(AT_5, table())
