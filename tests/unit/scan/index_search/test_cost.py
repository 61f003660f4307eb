"""Indices are not asked where that costs more than it saves."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.scan.index_search import search
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest
from tests.support.searched_tables import add_segment

COUNT = 400


@pytest.fixture
def uri(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return a table of which even a few rows are costly to read."""
    monkeypatch.setattr(search, "_FEW_READ", 10)
    place = str(tmp_path / "t.lance")
    numbers = pa.array(range(COUNT))
    lance.write_dataset(pa.table({"n": numbers, "m": numbers}), place, max_rows_per_file=100)
    for column in ("n", "m"):
        add_segment(place, column, "BTREE", zone_size=10)
    return place


def asked(uri: str, text: str, **options: object) -> list[str]:
    request = ScanRequest(columns=("n",), filter=text, **options)
    found = plan(lance.dataset(uri)._snapshot, request).index_search
    rows = lance.dataset(uri).to_table(["n"], text)["n"].to_pylist()
    assert rows == lance.dataset(uri).to_table(["n"], text, use_scalar_index=False)["n"].to_pylist()
    return [] if found is None else [each.index for each in found.asked]


def test_range_of_most_rows_is_scanned(uri: str) -> None:
    assert asked(uri, "n > 20 AND n < 380") == []
    assert asked(uri, "n > 20 AND n < 80") == ["n_btree"]


def test_rows_outside_of_a_large_range_are_few(uri: str) -> None:
    assert asked(uri, "n > 20") == ["n_btree"]


def test_costly_question_about_few_candidates_is_not_asked(uri: str) -> None:
    assert asked(uri, "n > 20 AND n < 80 AND m IN (30, 50)") == ["m_btree"]
    assert sorted(asked(uri, "n > 20 AND n < 80 AND m IN (30, 50)", fast_search=True)) == [
        "m_btree",
        "n_btree",
    ]


def test_costly_question_about_many_candidates_is_asked(
    uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "FEW_CANDIDATES", 1)
    assert sorted(asked(uri, "n > 20 AND n < 80 AND m IN (30, 50)")) == ["m_btree", "n_btree"]
    assert sorted(asked(uri, "(n > 20 AND n < 80) OR m = 7")) == ["m_btree", "n_btree"]
