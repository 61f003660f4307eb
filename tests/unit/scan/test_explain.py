"""Textual scan plans."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.commit.snapshot import Snapshot
from lancelake.format.frozen import FrozenMap
from lancelake.scan.plan import explain
from lancelake.scan.planner import plan
from lancelake.scan.request import Ordering, ScanRequest


def test_every_step_is_named(source: Snapshot) -> None:
    request = ScanRequest(
        columns=FrozenMap({"double": "a * 2"}),
        filter="key > 3",
        limit=5,
        offset=2,
        order_by=(Ordering(column="key", ascending=False),),
    )
    text = explain(plan(source, request))
    steps = [line.strip().split(":")[0] for line in text.splitlines()]
    assert steps == ["Output", "Sort", "Limit", "Compute", "Filter", "LanceRead"]
    for word in ("double", "key desc", "skip=2, fetch=5", "a * 2", "key > 3", "fragments=5"):
        assert word in text


def test_each_fragment_is_named_when_asked_for(source: Snapshot) -> None:
    text = explain(plan(source, ScanRequest(limit=8)), verbose=True)
    named = [line.strip() for line in text.splitlines() if "fragment " in line]
    assert named == ["fragment 0", "fragment 1"]


def test_scan_without_columns_says_so(source: Snapshot) -> None:
    assert "(no columns)" in explain(plan(source, ScanRequest(columns=())))


def test_columns_read_after_the_filter_are_a_step_of_their_own(source: Snapshot) -> None:
    request = ScanRequest(columns=("a", "key"), filter="key > 3", late_materialization=True)
    text = explain(plan(source, request))
    assert "LanceRead: projection=[a], source=stream\n" in text
    assert "projection=[key]\n" in text
    early = explain(plan(source, ScanRequest(columns=("a", "key"), filter="key > 3")))
    assert "source=stream" not in early
    assert "projection=[a, key]\n" in early


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> lance.LanceDataset:
    rows = pa.table({"a": range(100), "s": [f"x{i}" for i in range(100)], "b": [True, False] * 50})
    rows = rows.append_column("z", rows["a"])
    table = lance.write_dataset(rows, tmp_path_factory.mktemp("plans") / "t.lance")
    table.create_scalar_index("a", "BTREE")
    table.create_scalar_index("b", "BITMAP")
    table.create_scalar_index("s", "NGRAM")
    table.create_scalar_index("z", "ZONEMAP")
    return table


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a = 1", "query=[a = 1]@a_idx(BTREE)"),
        ("a > 3 AND a < 9", "query=[a > 3 && a < 9]@a_idx(BTREE)"),
        ("a BETWEEN 9 AND 3", "query=[a >= 9 && a <= 3]@a_idx(BTREE)"),
        ("b", "query=[b = true]@b_idx(BITMAP)"),
        ("contains(s, 'x98')", 'query=[contains(s, Utf8("x98"))]@s_idx(NGRAM)'),
    ],
)
def test_questions_are_shown_as_in_pylance(
    indexed: lance.LanceDataset, text: str, shown: str
) -> None:
    assert shown in indexed.scanner(filter=text).explain_plan()


def test_a_plan_says_that_the_answer_of_an_index_did_not_help(indexed: lance.LanceDataset) -> None:
    text = indexed.scanner(filter="z >= 0").explain_plan()
    assert "query=[z >= 0]@z_idx(ZONEMAP), rows=100, exact=false, used=false" in text


def test_listed_columns_are_read_late_unless_the_filter_needs_them(source: Snapshot) -> None:
    shown = ScanRequest(columns=("a", "key"), filter="key > 3")
    late = explain(plan(source, replace(shown, late_materialization=("a",))))
    assert "LanceRead: projection=[a], source=stream\n" in late
    early = explain(plan(source, replace(shown, late_materialization=("key",))))
    assert "source=stream" not in early
    assert "projection=[a, key]\n" in early
