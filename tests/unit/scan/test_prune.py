"""Fragments that conditions on row addresses leave out."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.expr.condition import Condition
from lancelake.expr.predicate import predicate
from lancelake.format.arrow_schema import from_arrow
from lancelake.scan.planner import fragment_test

SCHEMA = pa.schema([("x", pa.int64()), ("_rowaddr", pa.uint64())])
FOURTH = 3 << 32


@pytest.mark.parametrize(
    ("condition", "fragments"),
    [
        (f"_rowaddr = {FOURTH + 5}", [3]),
        (f"_rowaddr >= {FOURTH}", [3, 4]),
        (f"_rowaddr < {1 << 32}", [0, 1]),
        (f"_rowaddr BETWEEN {1 << 32} AND {2 << 32}", [1, 2]),
        (f"_rowaddr IN (7, {FOURTH})", [0, 3]),
        (f"_rowaddr = 1 OR _rowaddr = {FOURTH}", [0, 3]),
        (f"_rowaddr > {FOURTH} AND x = 1", [3, 4]),
        ("false", []),
    ],
)
def test_fragments_in_which_a_condition_may_hold(condition: str, fragments: list[int]) -> None:
    may_hold = fragment_test(understood(condition), {("_rowaddr",): 32})
    assert may_hold is not None
    assert [i for i in range(5) if may_hold(i)] == fragments


@pytest.mark.parametrize("condition", ["x = 1", "x = 1 OR _rowaddr = 1", "NOT (_rowaddr = 1)"])
def test_other_conditions_say_nothing_of_fragments(condition: str) -> None:
    assert fragment_test(understood(condition), {("_rowaddr",): 32}) is None


@pytest.mark.parametrize("stable", [True, False])
def test_a_scan_by_row_id_plans_only_the_fragments_that_can_hold_it(
    tmp_path: Path, stable: bool
) -> None:
    rows = pa.table({"x": range(30)})
    table = lance.write_dataset(
        rows, tmp_path / "t", max_rows_per_file=10, enable_stable_row_ids=stable
    )
    wanted = table.to_table(["x"], "x = 25", with_row_id=True)["_rowid"][0].as_py()
    scanner = table.scanner(filter=f"_rowid = {wanted}")
    assert scanner.to_table()["x"].to_pylist() == [25]
    assert f"fragments={3 if stable else 1}" in scanner.explain_plan()


def understood(condition: str) -> Condition:
    return predicate(condition, from_arrow(SCHEMA.remove(1)), SCHEMA, ["_rowaddr"]).condition
