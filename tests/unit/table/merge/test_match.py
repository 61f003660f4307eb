from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lancelake.pylance as lance
from lancelake.commit.snapshot import Snapshot
from lancelake.engine.port import Engine, LocalEngine
from lancelake.format.arrow_schema import from_arrow
from lancelake.format.schema import Field
from lancelake.table.merge import match
from lancelake.table.merge.match import Pairs, match_keys
from lancelake.table.merge.source import SourceKeys, key_fields, read_source
from tests.support.elsewhere import Elsewhere


def _fields(base: Snapshot, *on: str) -> tuple[Field, ...]:
    return key_fields(on, base.manifest.schema)


def _pairs(
    base: Snapshot, source: pa.Table, on: tuple[str, ...] = ("id",), engine: Engine | None = None
) -> list[tuple[int, int, int]]:
    """Return source row, fragment and offset of each pair."""
    fields = _fields(base, *on)
    with read_source(source.to_reader()) as rows:
        keys = SourceKeys.of(rows, fields, on)
        found = match_keys(base, fields, keys, engine or LocalEngine(parallelism=2))
    return [
        (int(s), int(t) >> 32, int(t) & 0xFFFFFFFF)
        for s, t in zip(found.source, found.target, strict=True)
    ]


IDS = pa.table({"id": pa.array([9, None, 3, 2, 77, 4], pa.int64())})
FOUND = [(2, 0, 3), (5, 1, 0), (0, 2, 1)]


def test_live_rows_are_matched_in_the_order_of_the_table(base: Snapshot) -> None:
    assert _pairs(base, IDS) == FOUND


def test_tasks_run_elsewhere_find_the_same(base: Snapshot) -> None:
    assert _pairs(base, IDS, engine=Elsewhere()) == FOUND


def test_keys_that_are_too_many_are_looked_for_in_several_passes(
    base: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(match, "_KEYS_AT_ONCE", 2)
    assert _pairs(base, IDS) == FOUND


def test_a_key_that_is_null_in_the_table_matches_nothing(tmp_path: Path) -> None:
    table = pa.table({"id": pa.array([None, 0, None, 5], pa.int64())})
    base = lance.write_dataset(table, tmp_path / "nulls")._snapshot
    assert _pairs(base, pa.table({"id": [5, 0]})) == [(1, 0, 1), (0, 0, 3)]


def test_every_source_row_with_a_key_is_a_pair(base: Snapshot) -> None:
    twice = pa.table({"id": [4, 3, 4]})
    assert _pairs(base, twice) == [(1, 0, 3), (0, 1, 0), (2, 1, 0)]


def test_text_is_matched_without_marks(base: Snapshot) -> None:
    assert _pairs(base, pa.table({"name": ["n9", "n2", "n0"]}), ("name",)) == [(2, 0, 0), (0, 2, 1)]


def test_all_parts_of_a_key_must_match(base: Snapshot) -> None:
    source = pa.table({"id": [3, 4, 5], "name": ["n3", "other", None]})
    assert _pairs(base, source, ("id", "name")) == [(0, 0, 3)]


@pytest.mark.parametrize(
    "source", [IDS.slice(0, 0), pa.table({"id": pa.array([None], pa.int64())})]
)
def test_no_keys_match_nothing(base: Snapshot, source: pa.Table) -> None:
    assert _pairs(base, source) == []


def test_pairs_can_be_chosen() -> None:
    pairs = Pairs(source=np.array([1, 2]), target=np.array([3, 4], dtype=np.uint64))
    assert len(pairs.where(np.array([False, True]))) == 1


@given(values=st.lists(st.one_of(st.none(), st.integers(0, 20))), text=st.booleans())
def test_keys_are_called_unique_only_when_they_are(values: list[int | None], text: bool) -> None:
    table = pa.table({"id": pa.array(values, pa.int64())})
    schema = pa.schema([("id", pa.string() if text else pa.int64())])
    with read_source(table.cast(schema).to_reader()) as rows:
        keys = SourceKeys.of(rows, from_arrow(schema).fields, ["id"])
    present = [v for v in values if v is not None]
    assert keys.are_unique == (len(set(present)) == len(present))
    numbers = [n for part in keys.parts(3) for n in part.column("source_row").to_pylist()]
    assert numbers == [i for i, v in enumerate(values) if v is not None]
