from __future__ import annotations

import pytest

from lancelake.errors import InvalidRequestError
from lancelake.format.schema import quoted_name
from lancelake.spark.connector.row_commands import assigned_column, name_parts

COLUMNS = ["id", "a.b", "Name", "t"]


@pytest.mark.parametrize(
    ("name", "column", "is_part"),
    [
        ("id", "id", False),
        ("t.ID", "id", False),
        ("`name`", "Name", False),
        ("T.`a.b`", "a.b", False),
        ("id.member", "id", True),
        ("t.id.member", "id", True),
        ("t", "t", False),
    ],
)
def test_an_assignment_names_a_column_or_a_part_of_one(
    name: str, column: str, is_part: bool
) -> None:
    assert assigned_column(name, "t", COLUMNS) == (column, is_part)


@pytest.mark.parametrize("name", ["nam", "t.nam", "s.id", "a.b", ""])
def test_an_assignment_to_no_column_is_refused(name: str) -> None:
    with pytest.raises(InvalidRequestError, match="is not in the table"):
        assigned_column(name, "t", COLUMNS)


@pytest.mark.parametrize("name", ["id", "a.b", "a`b", "`"])
def test_a_quoted_name_has_one_part(name: str) -> None:
    assert name_parts(quoted_name(name)) == [name]
