from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from lancelake.errors import InvalidRequestError, WriterFencedError
from lancelake.memwal.setup import flush_tails, seal_regions
from lancelake.memwal.view import Freshness
from tests.support.memwal_tables import REGION, new_table, rows, seen, writer


def test_a_tail_is_flushed_and_its_writer_fenced(tmp_path: Path) -> None:
    base = new_table(tmp_path / "t", (1, "base"))
    old = writer(base)
    old.put(rows((1, "tail")))
    assert flush_tails(base) == (REGION,)
    assert seen(base, Freshness.FLUSHED) == {1: "tail"}
    with pytest.raises(WriterFencedError):
        old.put(rows((1, "late")))


def test_a_region_without_a_tail_keeps_its_writer(tmp_path: Path) -> None:
    base = new_table(tmp_path / "t", (1, "base"))
    mine = writer(base)
    mine.put(rows((1, "x")))
    mine.flush()
    assert flush_tails(base) == ()
    mine.put(rows((1, "y")))


def test_a_region_is_sealed_once(tmp_path: Path) -> None:
    base = new_table(tmp_path / "t", (1, "base"))
    writer(base).put(rows((1, "tail")))
    assert seal_regions(base) == (REGION,)
    assert seal_regions(base) == ()
    assert seen(base, Freshness.FLUSHED) == {1: "tail"}
    with pytest.raises(InvalidRequestError, match="is sealed"):
        writer(base)


def test_an_unknown_region_is_not_sealed(tmp_path: Path) -> None:
    base = new_table(tmp_path / "t", (1, "base"))
    with pytest.raises(InvalidRequestError, match="has no region"):
        seal_regions(base, [uuid.UUID(int=1)])
