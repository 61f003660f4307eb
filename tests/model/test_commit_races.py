"""Commit guarantees in every order of store calls."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancelake.commit.candidate import CommitRequest
from lancelake.format.ids import FragmentId, Version
from lancelake.format.operations import Append, Delete, Operation, Overwrite, Restore
from tests.model.commit_suite import Race, ensure_sound, every_run, run, two_fragment_table
from tests.support.table_builder import SCHEMA, fragment, request, set_config

OBJECTS, BASE = two_fragment_table()


def _delete(*ids: int) -> Delete:
    gone = tuple(FragmentId(i) for i in ids)
    return Delete(updated_fragments=(), deleted_fragment_ids=gone, predicate="")


OPERATIONS: dict[str, Operation] = {
    "append": Append(fragments=(fragment(7),)),
    "overwrite": Overwrite(fragments=(fragment(8),), schema=SCHEMA),
    "delete 0": _delete(0),
    "delete 1": _delete(1),
    "set a": set_config("a", "1"),
    "set b": set_config("b", "2"),
    "restore": Restore(version=Version(1)),
}
PAIRS = [(mine, theirs) for mine in OPERATIONS for theirs in OPERATIONS if mine <= theirs]


def _race(requests: dict[str, CommitRequest], *, has_base: bool = True) -> Race:
    base = BASE if has_base else None
    return Race(objects=OBJECTS, requests=requests, base=base)


def _pair(mine: str, theirs: str) -> Race:
    return _race(
        {
            "mine": request(OPERATIONS[mine], unique=1),
            "theirs": request(OPERATIONS[theirs], unique=2),
        }
    )


@pytest.mark.parametrize(("mine", "theirs"), PAIRS)
def test_every_order_of_two_writers_is_sound(mine: str, theirs: str) -> None:
    for done in every_run(_pair(mine, theirs)):
        ensure_sound(done)


@pytest.mark.parametrize(
    ("mine", "theirs"), [("append", "append"), ("set a", "set a"), ("delete 0", "delete 1")]
)
def test_every_order_of_two_writers_with_a_lost_reply_is_sound(mine: str, theirs: str) -> None:
    for done in every_run(_pair(mine, theirs), losses=1):
        ensure_sound(done)


def test_every_order_of_two_writers_who_find_the_base_themselves_is_sound() -> None:
    requests = {
        "mine": request(OPERATIONS["append"], unique=1),
        "theirs": request(OPERATIONS["delete 0"], unique=2),
    }
    for done in every_run(_race(requests, has_base=False)):
        ensure_sound(done)


def test_the_same_transaction_by_two_writers_lands_once() -> None:
    same = request(OPERATIONS["append"], unique=1)
    for done in every_run(_race({"one": same, "other": same}), losses=1):
        ensure_sound(done)
        assert not done.outcomes.raised


def test_strict_overwrites_never_follow_each_other() -> None:
    overwrite = OPERATIONS["overwrite"]
    requests = {
        "one": request(overwrite, unique=1, max_retries=0),
        "other": request(overwrite, unique=2, max_retries=0),
    }
    for done in every_run(_race(requests), losses=1):
        ensure_sound(done)
        assert len(done.outcomes.returned) <= 1


@given(
    operations=st.lists(st.sampled_from(sorted(OPERATIONS)), min_size=3, max_size=5),
    choices=st.lists(st.integers(0, 59), max_size=120),
    losses=st.integers(0, 6),
    max_retries=st.sampled_from([0, 1, 2, 20]),
)
def test_any_order_of_several_writers_is_sound(
    operations: list[str], choices: list[int], losses: int, max_retries: int
) -> None:
    requests = {
        f"writer {number}": request(OPERATIONS[name], unique=number, max_retries=max_retries)
        for number, name in enumerate(operations)
    }
    ensure_sound(run(_race(requests, has_base=False), choices, losses=losses))
