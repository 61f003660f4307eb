"""Questions to indices in plans."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lancelake.pylance as lance


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> lance.LanceDataset:
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
    table: lance.LanceDataset, text: str, shown: str
) -> None:
    assert shown in table.scanner(filter=text).explain_plan()


def test_a_plan_says_that_the_answer_of_an_index_did_not_help(table: lance.LanceDataset) -> None:
    plan = table.scanner(filter="z >= 0").explain_plan()
    assert "query=[z >= 0]@z_idx(ZONEMAP), rows=100, exact=false, used=false" in plan
