from __future__ import annotations

import pytest

from lancelake.errors import InvalidRequestError
from lancelake.format.fragment import BasePath
from lancelake.format.ids import BaseId
from lancelake.table.write import TO_ROOT, TargetBases

FIRST = BasePath(id=BaseId(1), name="first", is_dataset_root=False, path="/first")
SECOND = BasePath(id=BaseId(2), name="second", is_dataset_root=False, path="/second")
BASES = (SECOND, FIRST)


def test_by_default_files_go_to_the_root() -> None:
    assert TO_ROOT.among(BASES) == (None,)


def test_bases_are_found_by_name_and_by_path_in_the_order_asked_for() -> None:
    assert TargetBases(names=("second", "/first")).among(BASES) == (SECOND, FIRST)


def test_all_bases_come_after_the_root_by_number() -> None:
    assert TargetBases(with_root=True).among(BASES) == (None, FIRST, SECOND)


def test_the_root_can_be_left_out() -> None:
    assert TargetBases(with_root=False).among(BASES) == (FIRST, SECOND)


@pytest.mark.parametrize(
    ("wish", "bases", "problem"),
    [
        (TargetBases(names=("third",)), BASES, "'third' not found in available bases"),
        (TargetBases(names=("first",), with_root=True), BASES, "together with target_bases"),
        (TargetBases(with_root=False), (), "found no registered bases"),
    ],
)
def test_an_unknown_base_is_refused(
    wish: TargetBases, bases: tuple[BasePath, ...], problem: str
) -> None:
    with pytest.raises(InvalidRequestError, match=problem):
        wish.among(bases)
