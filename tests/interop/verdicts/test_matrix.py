"""The printed conflict matrix matches the latest official release but for listed differences."""

from __future__ import annotations

from lancelake.txn.conflict_matrix import PairOutcome, matrix
from tests.interop.verdicts.golden import load_verdicts
from tests.support.official import RELEASES

SCENE = "row addresses"
# The shapes of the matrix, under the names that official releases were asked by.
NAMES = {
    ("Append", "rows"): "append",
    ("Delete", "some rows of fragment 0"): "delete some of 0",
    ("Delete", "some rows of fragment 1"): "delete some of 1",
    ("Delete", "fragment 0"): "delete 0",
    ("Overwrite", "rows"): "overwrite",
    ("CreateIndex", "value over fragment 0"): "index value of 0",
    ("CreateIndex", "text over fragment 1"): "index text of 1",
    ("CreateIndex", "value removed"): "index value removed",
    ("Rewrite", "fragment 0"): "rewrite 0",
    ("Rewrite", "fragment 1"): "rewrite 1",
    ("Merge", "a column"): "merge, a column",
    ("Merge", "a column, nulls as before"): "merge, a column, nulls as before",
    ("Restore", "old version"): "restore",
    ("Update", "some rows of fragment 0"): "update some of 0",
    ("Update", "some rows of fragment 1"): "update some of 1",
    ("Update", "fragment 0"): "update 0",
    ("Project", "without text"): "project, without text",
    ("Project", "without text, nulls as before"): "project, without text, nulls as before",
    ("UpdateConfig", "config a"): "config a",
    ("UpdateConfig", "config b"): "config b",
    ("UpdateConfig", "table metadata a"): "table metadata a",
    ("UpdateConfig", "schema metadata a"): "schema metadata a",
    ("UpdateConfig", "metadata of value"): "metadata of value",
    ("DataReplacement", "field 1 of fragment 0"): "replace value in 0",
    ("DataReplacement", "field 1 of fragment 1"): "replace value in 1",
    ("DataReplacement", "field 2 of fragment 0"): "replace text in 0",
}
SAID = {"ok": PairOutcome.OK, "retry": PairOutcome.RETRY, "conflict": PairOutcome.REFUSED}
INDEX = ("CreateIndex", "text over fragment 1")
# An index on a column that is gone would be published (decision 16).
DELIBERATE = {
    (INDEX, ("Project", "without text")),
    (INDEX, ("Project", "without text, nulls as before")),
}


def test_the_matrix_is_that_of_the_latest_release() -> None:
    official = load_verdicts(RELEASES[-1])[SCENE]
    ours = {
        ((cell.mine.__name__, case.mine), (cell.theirs.__name__, case.theirs)): case.outcome
        for row in matrix()
        for cell in row
        for case in cell.cases
    }
    shapes = {shape for pair in ours for shape in pair}
    assert NAMES.keys() <= shapes
    theirs = {
        (mine, other): SAID[official[NAMES[mine], NAMES[other]].partition(",")[0]]
        for mine in NAMES
        for other in NAMES
    }
    assert {pair for pair, said in theirs.items() if ours[pair] is not said} == DELIBERATE
