from __future__ import annotations

import pytest

from lancelake.format import operations as ops
from lancelake.txn.conflict_matrix import Cell, PairOutcome, matrix
from scripts.conflicts_page import markdown

OK, R, X = PairOutcome.OK, PairOutcome.RETRY, PairOutcome.REFUSED

# What each letter of the table below can come to.
CONDITIONS: dict[str, set[PairOutcome]] = {
    "·": {OK},
    "R": {R},
    "X": {X},
    "a": {OK, R},  # the same rows, or rows not known, of a shared fragment
    "b": {R, X},  # X: a shared config key
    "c": {OK, X},  # a shared config key
    "d": {OK, R},  # an index of the same name, new or removed
    "e": {OK, R},  # a new index covers a rewritten fragment
    "f": {OK, R},  # a shared fragment
    "g": {OK, R},  # a replaced field is indexed
    "h": {OK, X},  # mine writes the MemWAL entry, or not
    "k": {OK, R},  # mine inserts keys
    "l": {OK, R, X},  # keys, then progress, then rows
    "m": {OK, R, X},  # progress of the same region
    "n": {OK, X},  # metadata of the schema, or a shared config key
    "o": {OK, X},  # a shared key of any map
    "p": {OK, R},  # the same field of the same fragment
    "r": {OK, X},  # the same base
    "s": {OK, R},  # metadata of the schema
    "t": {OK, X},  # metadata of the schema
    "u": {OK, R},  # nullability is not asserted to be kept
    "v": {OK, X},  # the fragment is gone
    "w": {OK, R, X},  # the fragment changed, or is gone
    "y": {OK, R, X},  # nullability is not asserted to be kept, or the field is gone
    "z": {OK, R},  # an indexed column is gone
}

COLUMNS = ["Ap", "De", "Ov", "CI", "Rw", "Me", "Re", "RF", "Up", "Pr", "UC", "DR", "MW", "Cl", "UB"]
TABLE = """
Ap  · · X · · u X · · u · · X · ·
De  · a X · f R X · a · · f X · ·
Ov  · · b · · · · · · · c · X · ·
CI  · · X d e z X · · z · g h · ·
Rw  · f X e f R X · f · · f · · ·
Me  R R X · R R X · R X s R X · ·
Re  · · · · · · · · · · t · X · ·
RF  · · X · · · X · · · · · · · ·
Up  k a X · f R X · l u · f m · ·
Pr  u · X · · R X · u R · u X · ·
UC  · · n · · s t · · · o · · · ·
DR  · v X g f R X · w y · p X · ·
MW  X X X m · X X · m X · X m X ·
Cl  · · · · · · · · · · · · · · ·
UB  · · · · · · · · · · · · · · r
"""
KINDS: dict[str, type[ops.Operation]] = {
    "Ap": ops.Append,
    "De": ops.Delete,
    "Ov": ops.Overwrite,
    "CI": ops.CreateIndex,
    "Rw": ops.Rewrite,
    "Me": ops.Merge,
    "Re": ops.Restore,
    "RF": ops.ReserveFragments,
    "Up": ops.Update,
    "Pr": ops.Project,
    "UC": ops.UpdateConfig,
    "DR": ops.DataReplacement,
    "MW": ops.UpdateMemWalState,
    "Cl": ops.Clone,
    "UB": ops.UpdateBases,
}
EXPECTED = [
    pytest.param(row, column, letter, id=f"{row}-{column}")
    for row, *letters in (line.split() for line in TABLE.strip().splitlines())
    for column, letter in zip(COLUMNS, letters, strict=True)
]


def cell(mine: str, theirs: str) -> Cell:
    return next(
        c for row in matrix() for c in row if c.mine is KINDS[mine] and c.theirs is KINDS[theirs]
    )


@pytest.mark.parametrize(("mine", "theirs", "letter"), EXPECTED)
def test_a_cell_has_the_outcomes_of_its_condition(mine: str, theirs: str, letter: str) -> None:
    assert cell(mine, theirs).outcomes == CONDITIONS[letter]


def test_every_pair_of_kinds_is_a_cell() -> None:
    assert len({(c.mine, c.theirs) for row in matrix() for c in row}) == len(KINDS) ** 2


def test_a_condition_is_explained_by_reasons() -> None:
    assert cell("Ov", "Ov").conditions == ("R: the table was replaced", "X: both set config a")


def test_the_printed_matrix_has_a_row_for_each_kind() -> None:
    lines = markdown().splitlines()
    assert [line.split(" | ")[0] for line in lines[2:17]] == [
        f"| {k.__name__}" for k in KINDS.values()
    ]
