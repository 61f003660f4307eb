from __future__ import annotations

import pytest

from lancelake.engine.port import JobProgress, Stages


def told(found: list[JobProgress]) -> list[tuple[str, int, int]]:
    return [(each.stage, each.done, each.total) for each in found]


def test_a_stage_reports_its_begin_its_steps_and_its_end() -> None:
    found: list[JobProgress] = []
    with Stages("index a", found.append).stage("read", 10) as advance:
        advance(4)
        advance(6)
    assert told(found) == [("read", 0, 10), ("read", 4, 10), ("read", 10, 10)]


def test_a_stage_whose_steps_are_not_counted_ends_complete() -> None:
    found: list[JobProgress] = []
    with Stages("index a", found.append).stage("train"):
        pass
    assert told(found) == [("train", 0, 1), ("train", 1, 1)]


def test_an_estimated_total_is_corrected_at_the_end() -> None:
    found: list[JobProgress] = []
    with Stages("index a", found.append).stage("read", 10) as advance:
        advance(7)
    assert told(found)[-1] == ("read", 7, 7)


def test_a_stage_that_fails_does_not_end() -> None:
    found: list[JobProgress] = []
    with pytest.raises(KeyError), Stages("index a", found.append).stage("read", 10):
        raise KeyError
    assert told(found) == [("read", 0, 10)]
