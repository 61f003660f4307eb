"""The unenforced primary key is read from metadata and validated as in official releases."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lancelake.errors import InvalidRequestError
from lancelake.format.ids import FieldId
from lancelake.format.primary_key import KEY, POSITION, ensure_valid, marks
from lancelake.format.schema import Field, Schema

LEAF = Field(
    name="x",
    id=FieldId(1),
    parent_id=FieldId(0),
    logical_type="int32",
    nullable=False,
    unenforced_primary_key=True,
)


def below(logical_type: str, *, nullable: bool = False) -> Schema:
    parent = Field(
        name="p",
        id=FieldId(0),
        logical_type=logical_type,
        nullable=nullable,
        children=(LEAF,),
    )
    return Schema(fields=(parent,))


@pytest.mark.parametrize("value", [b"true", b"TRUE", b"1", b"yes", b"Yes", b"y", b"on"])
def test_a_yes_makes_a_field_part_of_the_key(value):
    assert marks({KEY: value}) == (True, 0)


@pytest.mark.parametrize("value", [b"false", b"0", b"", b"t", b" true", b"enabled"])
def test_anything_else_does_not(value):
    assert marks({KEY: value}) == (False, 0)


def test_no_metadata_makes_no_key():
    assert marks({}) == (False, 0)


@pytest.mark.parametrize(
    ("value", "position"), [(b"1", 1), (b"0", 0), (b"+3", 3), (b"4294967295", 4294967295)]
)
def test_a_position_makes_a_field_part_of_the_key(value, position):
    assert marks({POSITION: value}) == (True, position)


@pytest.mark.parametrize("value", [b"x", b"-1", b"", b" 4", b"4294967296"])
def test_a_position_that_is_no_number_counts_as_none(value):
    assert marks({POSITION: value}) == (False, 0)


def test_a_position_wins_over_a_no():
    assert marks({KEY: b"false", POSITION: b"2"}) == (True, 2)


def test_a_yes_stands_beside_a_position_that_is_no_number():
    assert marks({KEY: b"true", POSITION: b"x"}) == (True, 0)


def test_a_leaf_at_the_top_may_be_the_key():
    ensure_valid(Schema(fields=(LEAF,)))


@pytest.mark.parametrize("logical_type", ["struct", "fixed_size_list:struct:2"])
def test_a_member_of_a_struct_may_be_the_key(logical_type):
    ensure_valid(below(logical_type))


def test_a_nullable_field_is_refused():
    with pytest.raises(InvalidRequestError, match=r"column x .*nullable"):
        ensure_valid(Schema(fields=(replace(LEAF, nullable=True),)))


def test_a_nullable_ancestor_is_refused():
    with pytest.raises(InvalidRequestError, match=r"column p.x .*nullable"):
        ensure_valid(below("struct", nullable=True))


def test_a_field_with_children_is_refused():
    parent = replace(below("struct").fields[0], unenforced_primary_key=True)

    with pytest.raises(InvalidRequestError, match="leaf"):
        ensure_valid(Schema(fields=(parent,)))


@pytest.mark.parametrize("logical_type", ["list", "large_list", "list.struct", "map"])
def test_a_field_that_repeats_is_refused(logical_type):
    with pytest.raises(InvalidRequestError, match="inside a"):
        ensure_valid(below(logical_type))
