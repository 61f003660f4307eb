"""Merges find rows through an index of the key as they do by reading the key."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.engine.port import LocalEngine
from lancelake.scan.plan import ScanTask
from lancelake.table.merge import match
from lancelake.table.merge.match import KeyLookup, match_keys
from lancelake.table.merge.source import SourceKeys, key_fields, read_source
from lancelake.table.row_steps import divided
from tests.support.searched_tables import add_segment

COUNT = 2000
KEYS = [0.0, -0.0, float("nan"), 1.5, None]


@pytest.fixture(params=[False, True], ids=["addresses", "stable row ids"])
def uri(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return a table of which the first fragments are indexed."""
    place = str(tmp_path / "t.lance")
    numbers = np.arange(COUNT)
    table = pa.table(
        {
            "id": numbers,
            "half": numbers // 2,
            "f": pa.array([KEYS[n % 5] for n in range(COUNT)], pa.float64()),
            "text": [f"t{n}" for n in range(COUNT)],
        }
    )
    lance.write_dataset(table, place, max_rows_per_file=300, enable_stable_row_ids=request.param)
    for column, kind in (("id", "BTREE"), ("half", "BITMAP"), ("f", "BTREE"), ("text", "BTREE")):
        add_segment(place, column, kind, fragments=set(range(6)))
    lance.dataset(place).delete("id IN (5, 700)")
    return place


@pytest.mark.parametrize(
    ("on", "source"),
    [
        (("id",), {"id": [5, 6, 701, 1999, 5000, None]}),
        (("half",), {"half": [3, 350, 999]}),
        (("f",), {"f": [0.0, float("nan"), None]}),
        (("text",), {"text": ["t8", "t1950", "none"]}),
        (("half", "text"), {"half": [4, 4, 900], "text": ["t8", "t10", "t1800"]}),
    ],
    ids=",".join,
)
def test_pairs_are_those_of_a_scan(
    uri: str, on: tuple[str, ...], source: dict[str, list[object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(match, "_ROWS_PER_KEY", 1)
    base = lance.dataset(uri)._snapshot
    fields = key_fields(on, base.manifest.schema)
    read: list[int] = []

    def watched(scans: Sequence[ScanTask], parts: int) -> Sequence[ScanTask]:
        read.append(sum(scan.most_rows or 0 for scan in scans))
        return divided(scans, parts)

    monkeypatch.setattr(match, "divided", watched)
    with read_source(pa.table(source).to_reader()) as rows:
        keys = SourceKeys.of(rows, fields, on)
        engine = LocalEngine(parallelism=2)
        mine, scanned = (match_keys(base, fields, keys, engine, use_index=u) for u in (True, False))
    assert mine.source.tolist() == scanned.source.tolist()
    assert mine.target.tolist() == scanned.target.tolist()
    with_index, without = read
    assert with_index < without


def test_many_keys_are_found_by_a_scan(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("an index was asked")

    monkeypatch.setattr(match, "search", refuse)
    rows = pa.table({"id": list(range(0, COUNT, 10)), "f": [7.5] * 200})
    merge = lance.dataset(uri).merge_insert("id").when_matched_update_all()
    assert merge.execute(rows)["num_updated_rows"] == 199


@pytest.mark.parametrize("use_index", [True, False])
def test_upsert_changes_the_same_rows(uri: str, use_index: bool) -> None:
    rows = pa.table({"id": [6, 1999, 5000], "half": [1, 2, 3], "f": [0.0] * 3, "text": ["x"] * 3})
    merge = lance.dataset(uri).merge_insert("id").use_index(use_index)
    done = merge.when_matched_update_all().when_not_matched_insert_all().execute(rows)
    assert (done["num_updated_rows"], done["num_inserted_rows"]) == (2, 1)
    found = lance.dataset(uri).to_table(["id"], "text = 'x'", use_scalar_index=False)
    assert sorted(found["id"].to_pylist()) == [6, 1999, 5000]
    assert lance.dataset(uri).count_rows("text = 'x'") == 3


def test_plan_names_the_indices_of_the_key(uri: str) -> None:
    merge = lance.dataset(uri).merge_insert(["id", "half"]).when_matched_update_all()
    assert "key_indices=[id_btree, half_bitmap]" in merge.explain_plan()
    assert "key_indices" not in merge.use_index(False).explain_plan()


def test_rows_of_fragments_without_an_index_may_have_any_key(
    uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(match, "_ROWS_PER_KEY", 1)
    base = lance.dataset(uri)._snapshot
    keys = SourceKeys(table=pa.table({"id": [6, 8, 701, 5000]}), are_unique=True)
    found = KeyLookup.of(base, key_fields(("id",), base.manifest.schema), keys)
    assert found.most_rows(base) == 3 + COUNT % 300


def test_any_row_may_have_one_of_many_keys(uri: str) -> None:
    base = lance.dataset(uri)._snapshot
    keys = SourceKeys(table=pa.table({"id": range(COUNT)}), are_unique=True)
    found = KeyLookup.of(base, key_fields(("id",), base.manifest.schema), keys)
    assert found.most_rows(base) == COUNT - 2
