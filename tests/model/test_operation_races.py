"""Races of all pairs of operations keep the version history consistent."""

from __future__ import annotations

from itertools import combinations_with_replacement

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.model.commit_suite import Race, ensure_sound, every_run, run, two_fragment_table
from tests.model.operations import MEM_WAL_ENTRY, changes
from tests.support.scheduled_store import DictStore

OBJECTS, BASE = two_fragment_table((MEM_WAL_ENTRY,))
STORE = DictStore(OBJECTS)
CHANGES = changes(STORE, BASE)
PAIRS = list(combinations_with_replacement(sorted(CHANGES), 2))


def _race(*names: str, has_base: bool = True) -> Race:
    requests = {
        f"{number}: {name}": CHANGES[name].request(unique=number)
        for number, name in enumerate(names)
    }
    base = BASE if has_base else None
    return Race(objects=STORE.objects, requests=requests, base=base)


@pytest.mark.parametrize(("mine", "theirs"), PAIRS)
def test_every_order_of_two_operations_is_sound(mine: str, theirs: str) -> None:
    for done in every_run(_race(mine, theirs)):
        ensure_sound(done)


@pytest.mark.parametrize(
    "name", ["append", "create index", "delete row 3", "restore", "update row 5"]
)
def test_every_order_of_an_operation_and_an_append_with_a_lost_reply_is_sound(name: str) -> None:
    for done in every_run(_race(name, "append"), losses=1):
        ensure_sound(done)


@given(
    names=st.lists(st.sampled_from(sorted(CHANGES)), min_size=3, max_size=5),
    choices=st.lists(st.integers(0, 59), max_size=120),
    losses=st.integers(0, 6),
)
def test_any_order_of_several_operations_is_sound(
    names: list[str], choices: list[int], losses: int
) -> None:
    ensure_sound(run(_race(*names, has_base=False), choices, losses=losses))
