"""Filters find through indices what they find by a scan, whatever happened to the table."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lancelake.pylance as lance
from lancelake.index.row_sets import Answer, RowIds, RowMask
from lancelake.scan.index_search import search as addresses
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest
from tests.strategies.index_predicates import predicates
from tests.support.searched_lives import AddIndex, Append, Delete, Life, Update, live, lives

# How many predicates are tried, in lives of so many each.
PREDICATES = int(os.environ.get("LANCELAKE_INDEX_PREDICATES", "400"))
AT_ONCE = 40
PROBES = {"NGRAM": "contains({}, 'pie')"}


def differences(table: lance.LanceDataset, texts: list[str]) -> list[str]:
    """Return the conditions that indices answer otherwise than a scan does."""
    found: list[str] = []
    for text in texts:
        expected = table.to_table(["n"], text, use_scalar_index=False)["n"].to_pylist()
        mine = table.to_table(["n"], text)["n"].to_pylist()
        if mine != expected or table.count_rows(text) != len(expected):
            found.append(f"{text}: {mine} instead of {expected}")
    return found


def ensure_used(table: lance.LanceDataset) -> None:
    """Raise AssertionError if an index that covers a fragment is not asked."""
    fragments = {f.fragment_id for f in table.get_fragments()}
    for index in table.list_indices():
        if index["name"].startswith("__") or not fragments & set(index["fragment_ids"]):
            continue
        column = index["fields"][0]
        if "." in column and table.has_stable_row_ids:
            continue  # of members of structs, fragments with updated rows are not trusted
        text = PROBES.get(index["name"].split("_")[-1], "{} IS NULL").format(column)
        request = ScanRequest(columns=("n",), filter=text, fast_search=True)
        search = plan(table._snapshot, request).index_search
        assert search is not None, (index["name"], text)
        assert search.asked


@settings(max_examples=max(1, PREDICATES // AT_ONCE))
@given(life=lives(), texts=st.lists(predicates, min_size=AT_ONCE, max_size=AT_ONCE))
def test_index_answers_are_those_of_a_scan(life: Life, texts: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        table = live(life, str(Path(folder) / "t.lance"))
        assert differences(table, texts) == []
        ensure_used(table)


STEPS = (
    AddIndex("i", "BTREE", False),
    AddIndex("s", "BITMAP", False),
    AddIndex("f", "ZONEMAP", False),
    Append(9, 3),
    Delete("n % 3 = 1"),
    Update("i", "n < 8"),
)
TEXTS = ["i = 2", "NOT (i = 2)", "s = 'ab' OR i > 1", "f > 0.0", "s IS NULL"]


@pytest.mark.parametrize("is_stable", [False, True], ids=["addresses", "stable row ids"])
@pytest.mark.parametrize("side", ["surely_true", "maybe_true", "maybe_false"])
def test_wrong_answers_are_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_stable: bool, side: str
) -> None:
    table = live(Life(is_stable, 50, 20, STEPS), str(tmp_path / "t.lance"))
    assert differences(table, TEXTS) == []
    right = addresses.answer_question

    def wrong(*arguments: object) -> Answer | None:
        found = right(*arguments)  # type: ignore[arg-type]  # handed on
        return None if found is None else spoiled(found)

    def spoiled(answer: Answer) -> Answer:
        """Lose the first row of each fragment on one side, and what is sure with it."""
        mask: RowMask = getattr(answer, side)
        left = RowIds.within({i: part - type(part)(part[:1]) for i, part in mask.ids.parts.items()})
        other = RowMask(left, mask.is_inverted)
        true = answer.maybe_true if side == "maybe_false" else other
        false = other if side == "maybe_false" else answer.maybe_false
        return Answer(true, true, false, false)

    monkeypatch.setattr(addresses, "answer_question", wrong)
    assert differences(table, TEXTS) != []
