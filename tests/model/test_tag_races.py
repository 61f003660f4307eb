"""Concurrent changes of one tag, in every order of store calls."""

from __future__ import annotations

from collections.abc import Callable

from lancelake.commit.ref_files import RefTarget, annotate_tag, create_tag, move_tag, remove_tag
from lancelake.errors import RefNotFoundError
from lancelake.format import layout, refs
from lancelake.format.ids import Version
from lancelake.format.refs import Tag
from lancelake.storage.store import ObjectStore
from tests.support.scheduled_store import DictStore, Outcomes, Schedule, Scheduler
from tests.support.set_clock import ManualClock

PATH = layout.tag("v1")
POINTS = frozenset({"get", "swap", "delete"})


def _at(version: int) -> RefTarget:
    return RefTarget(branch=None, version=Version(version), manifest_size=version)


def _moves(version: int) -> Callable[[ObjectStore], object]:
    return lambda store: move_tag(store, "v1", _at(version), clock=ManualClock(ns=version))


def _notes(store: ObjectStore) -> None:
    annotate_tag(store, "v1", {"a": "b"})


def _removes(store: ObjectStore) -> None:
    remove_tag(store, "v1")


def _every_order(
    first: Callable[[ObjectStore], object], second: Callable[[ObjectStore], object]
) -> list[tuple[DictStore, Outcomes[object]]]:
    """Run two writers in every order of their store calls."""
    ends = []
    choices: list[int] | None = []
    while choices is not None:
        store = DictStore()
        create_tag(store, "v1", _at(1), clock=ManualClock())
        schedule = Schedule(choices)
        writers = {"first": first, "second": second}
        ends.append((store, Scheduler(schedule, points=POINTS).run(writers, store)))
        choices = schedule.next_choices()
    assert len(ends) > 2
    return ends


def _tag(store: DictStore) -> Tag:
    return refs.decode_tag(store.objects[PATH])


def test_of_two_moves_both_land_and_the_last_one_stays() -> None:
    ends = _every_order(_moves(2), _moves(3))
    assert [outcomes.raised for _, outcomes in ends] == [{}] * len(ends)
    # Version, size and time are of the same move: nothing is mixed.
    found = {
        (tag.version, tag.manifest_size, tag.updated_at)
        for tag in (_tag(store) for store, _ in ends)
    }
    assert found == {
        (2, 2, "1970-01-01T00:00:00.000000002Z"),
        (3, 3, "1970-01-01T00:00:00.000000003Z"),
    }


def test_a_move_and_a_note_keep_each_other() -> None:
    for store, outcomes in _every_order(_moves(2), _notes):
        assert outcomes.raised == {}
        assert (_tag(store).version, dict(_tag(store).metadata)) == (2, {"a": "b"})


def test_a_tag_that_was_removed_does_not_come_back() -> None:
    for store, outcomes in _every_order(_moves(2), _removes):
        assert store.objects == {}
        assert all(isinstance(error, RefNotFoundError) for error in outcomes.raised.values())
        assert "second" in outcomes.returned
