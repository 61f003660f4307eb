from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

import lancelake.pylance as lance
from lancelake.errors import ContentionError, InvalidRequestError
from lancelake.memwal import merge as merging
from lancelake.memwal.merge import BackgroundMerger, merge_generations
from lancelake.memwal.view import Freshness
from tests.support.memwal_tables import new_table, newest, rows, seen, writer

NEVER = timedelta(days=1)


def test_flushed_rows_are_merged_while_a_writer_runs(tmp_path: Path) -> None:
    base = new_table(tmp_path / "t", (1, "base"))
    mine = writer(base)
    with BackgroundMerger(base, every=NEVER) as merger:
        for turn in range(3):
            mine.put(rows((turn, f"{turn}")))
            mine.flush()
            merger.merge_now()
            assert seen(newest(tmp_path / "t"), Freshness.BASE)[turn] == f"{turn}"


def test_a_merge_comes_at_its_interval(tmp_path: Path) -> None:
    base = new_table(tmp_path / "t", (1, "base"))
    with writer(base) as mine:
        mine.put(rows((1, "new")))
    with BackgroundMerger(base, every=timedelta(milliseconds=1)):
        while seen(newest(tmp_path / "t"), Freshness.BASE) != {1: "new"}:
            pass


def test_a_lost_race_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = new_table(tmp_path / "t", (1, "base"))
    with writer(base) as mine:
        mine.put(rows((1, "new")))
    failures = iter([ContentionError("others were faster")])

    def merge(*args: object, **kwargs: object) -> object:
        for error in failures:
            raise error
        return merge_generations(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(merging, "merge_generations", merge)
    with BackgroundMerger(base, every=NEVER) as merger:
        merger.merge_now()
        assert seen(newest(tmp_path / "t"), Freshness.BASE) == {1: "base"}
        merger.merge_now()
        assert seen(newest(tmp_path / "t"), Freshness.BASE) == {1: "new"}


def test_another_failure_is_raised(tmp_path: Path) -> None:
    base = new_table(tmp_path / "t", (1, "base"))
    merger = BackgroundMerger(base, every=NEVER)
    lance.write_dataset(rows((9, "new")), tmp_path / "t", mode="overwrite")
    with pytest.raises(InvalidRequestError, match="has no MemWAL"):
        merger.merge_now()
    merger.close()
