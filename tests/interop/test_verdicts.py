"""Do our rules judge two changes of one version as the latest official release does?"""

from __future__ import annotations

from pathlib import Path

from lancelake.txn.matrix import matrix
from tests.interop.verdict_oracle import CODE
from tests.support.official import Official

TEXT_INDEX = ("CreateIndex", "text over fragment 1")

# Where we differ on purpose (decision 16): ours, theirs.
DELIBERATE = {
    # An index on a column that is gone would be published.
    (TEXT_INDEX, ("Project", "without text")): ("R", "·"),
    (TEXT_INDEX, ("Project", "without text, nulls as before")): ("R", "·"),
}


def test_verdicts_equal_those_of_the_latest_release(official_14: Official, tmp_path: Path) -> None:
    ours = {
        ((cell.mine.__name__, case.mine), (cell.theirs.__name__, case.theirs)): case.outcome.value
        for row in matrix()
        for cell in row
        for case in cell.cases
    }
    judged = official_14.run(str(tmp_path / "table"), CODE)
    theirs = {(tuple(mine), tuple(other)): outcome for mine, other, outcome in judged}
    different = {k: (ours[k], v) for k, v in theirs.items() if ours[k] != v}
    assert different == DELIBERATE
