from __future__ import annotations

import pytest

import lancelake.pylance as lance
from lancelake.commit.snapshot import Snapshot
from lancelake.errors import ContentionError, InvalidExpressionError
from lancelake.format.operations import Delete
from lancelake.maintenance.check.run import check
from lancelake.storage.location import Location
from lancelake.table.publish import Retries
from lancelake.table.rows import delete


def _ids(snapshot: Snapshot) -> list[int]:
    dataset = lance.dataset(snapshot.location.uri, version=snapshot.version)
    return sorted(dataset.to_table()["id"].to_pylist())


def test_rows_for_which_the_condition_holds_are_gone(base: Snapshot) -> None:
    done = delete(base, "id < 2 OR id = 9")
    assert done.rows == 3
    assert _ids(done.snapshot) == [3, 4, 5, 6, 7, 8]
    assert list(check(Location.parse(base.location.uri), versions="all")) == []


def test_fragments_without_rows_left_are_dropped(base: Snapshot) -> None:
    done = delete(base, "id < 8")
    assert [fragment.id for fragment in done.snapshot.manifest.fragments] == [2]


def test_without_a_condition_all_rows_go(base: Snapshot) -> None:
    done = delete(base, None)
    assert done.rows == 9
    assert done.snapshot.manifest.fragments == ()


def test_the_condition_is_recorded(base: Snapshot) -> None:
    made = delete(base, "id = 5").snapshot.transaction
    assert made is not None
    assert isinstance(made.operation, Delete)
    assert made.operation.predicate == "id = 5"


def test_a_condition_that_cannot_be_evaluated_leaves_the_table_as_it_was(base: Snapshot) -> None:
    with pytest.raises(InvalidExpressionError):
        delete(base, "cast(name as int) = 1")
    assert lance.dataset(base.location.uri).version == base.version


def test_other_rows_deleted_meanwhile_stay_deleted(base: Snapshot) -> None:
    delete(base, "id = 4")
    done = delete(base, "id = 5")
    assert _ids(done.snapshot) == [0, 1, 3, 6, 7, 8, 9]


def test_rows_updated_meanwhile_are_looked_at_again(base: Snapshot) -> None:
    lance.dataset(base.location.uri).update({"weight": "100.0"}, where="id = 4")
    done = delete(base, "weight = 6.0 OR weight = 7.5")
    assert done.rows == 1
    assert 4 in _ids(done.snapshot)


def test_without_retries_the_contention_is_reported(base: Snapshot) -> None:
    lance.dataset(base.location.uri).update({"weight": "100.0"}, where="id = 4")
    with pytest.raises(ContentionError):
        delete(base, "id = 4", retries=Retries(most=0))
    assert lance.dataset(base.location.uri).count_rows() == 9
