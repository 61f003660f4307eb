from __future__ import annotations

from dataclasses import replace

import pytest

from lancelake.errors import InvalidRequestError
from lancelake.format.fragment import BasePath
from lancelake.format.ids import BaseId
from lancelake.format.operations import ReserveFragments, UpdateBases
from lancelake.txn.rules import OK, Retryable
from tests.unit.txn.making import after, unseen

A = BasePath(id=BaseId(0), name="a", is_dataset_root=False, path="memory:///a")
B = BasePath(id=BaseId(0), name="b", is_dataset_root=True, path="memory:///b")


def test_bases_are_numbered_from_one() -> None:
    state = after(UpdateBases(new_bases=(A, B)))
    assert [b.id for b in state.manifest.base_paths] == [1, 2]


def test_a_chosen_id_is_kept() -> None:
    state = after(UpdateBases(new_bases=(replace(A, id=BaseId(5)), B)))
    assert [b.id for b in state.manifest.base_paths] == [5, 6]


@pytest.mark.parametrize(
    "other",
    [
        replace(B, path=A.path),
        replace(B, name=A.name),
        replace(B, id=BaseId(1)),
    ],
    ids=["path", "name", "id"],
)
def test_path_name_and_id_must_be_free(other: BasePath) -> None:
    head = after(UpdateBases(new_bases=(A,)))
    with pytest.raises(InvalidRequestError, match=r"registered|taken"):
        after(UpdateBases(new_bases=(other,)), head)


def test_only_one_base_can_be_without_a_name() -> None:
    unnamed = tuple(replace(b, name=None) for b in (A, B))
    with pytest.raises(InvalidRequestError, match="taken"):
        after(UpdateBases(new_bases=unnamed))


def test_a_base_is_added_after_unknown_commits_without_bases() -> None:
    mine = UpdateBases(new_bases=(A,))
    assert unseen(mine, ReserveFragments(num_fragments=3)) == OK
    assert isinstance(unseen(mine, UpdateBases(new_bases=(B,))), Retryable)
