from __future__ import annotations

from dataclasses import replace

import pytest

from lancelake.errors import InvalidRequestError, UnsupportedError
from lancelake.format import operations as ops
from lancelake.format.fragment import DataFile, Fragment
from lancelake.format.ids import BaseId, FieldId, FragmentId
from lancelake.format.schema import Field, Schema
from lancelake.txn.build import FileVersion, ensure_schema
from lancelake.txn.conflict_matrix import FIRST, KEY, VALUE, data_file, fragment, without_rows
from tests.unit.txn.making import after, table

FILE = data_file("new.lance", (KEY, VALUE))


def append(*files: DataFile) -> ops.Append:
    return ops.Append(fragments=(Fragment(id=FragmentId(0), files=files, physical_rows=10),))


@pytest.mark.parametrize(
    ("file", "problem"),
    [
        (replace(FILE, fields=(), column_indices=()), "has no fields"),
        (replace(FILE, path=""), "without a path"),
        (replace(FILE, column_indices=(0,)), "2 fields but 1 columns"),
        (replace(FILE, fields=(KEY, KEY)), "lists a field twice"),
        (replace(FILE, base_id=BaseId(3)), "at base 3"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused(file: DataFile, problem: str) -> None:
    with pytest.raises(InvalidRequestError, match=problem):
        after(append(file))


def test_a_file_of_another_version_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match=r"2\.2"):
        after(append(replace(FILE, file_minor_version=2)))


def test_a_field_in_two_files_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="field 0 in two files"):
        after(append(FILE, data_file("other.lance", (KEY,))))


def test_more_deleted_rows_than_rows_are_refused() -> None:
    wrong = replace(without_rows(FIRST, *range(10)), physical_rows=3)
    op = ops.Delete(updated_fragments=(wrong,), deleted_fragment_ids=(), predicate="p")
    with pytest.raises(InvalidRequestError, match="10 deleted of 3"):
        after(op)


def test_rows_without_a_count_get_no_row_ids() -> None:
    op = ops.Append(fragments=(replace(fragment(FragmentId(0)), physical_rows=None),))
    with pytest.raises(InvalidRequestError, match="has no row count"):
        after(op, table(stable=True))


@pytest.mark.parametrize(
    ("names", "ids", "problem"),
    [
        (("a.b",), (0,), "has a dot"),
        (("a", "a"), (0, 1), "appears twice"),
        (("a", "b"), (0, 0), "negative or not unique"),
        (("a",), (-1,), "negative or not unique"),
    ],
)
def test_a_schema_leads_to_one_field_each(
    names: tuple[str, ...], ids: tuple[int, ...], problem: str
) -> None:
    fields = (
        Field(name=n, id=FieldId(i), logical_type="int32") for n, i in zip(names, ids, strict=True)
    )
    with pytest.raises(InvalidRequestError, match=problem):
        ensure_schema(Schema(fields=tuple(fields)))


def test_dictionaries_of_legacy_tables_would_be_lost() -> None:
    head = table()
    unit = Field(name="unit", id=FieldId(7), logical_type="dict:string:int8:false")
    schema = replace(head.manifest.schema, fields=(unit,))
    manifest = replace(
        head.manifest,
        schema=schema,
        data_version=FileVersion.LEGACY,
        fragments=(),
    )
    with pytest.raises(UnsupportedError, match="read-only"):
        after(ops.ReserveFragments(num_fragments=1), replace(head, manifest=manifest))


def test_what_was_wrong_before_does_not_hinder() -> None:
    head = table()
    odd = replace(head.manifest.fragments[0], files=(replace(FILE, base_id=BaseId(9)),))
    manifest = replace(head.manifest, fragments=(odd, head.manifest.fragments[1]))
    state = after(ops.ReserveFragments(num_fragments=1), replace(head, manifest=manifest))
    assert state.manifest.fragments[0] == odd


def test_fragment_ids_end_with_32_bits() -> None:
    with pytest.raises(InvalidRequestError, match="no fragment ids left"):
        after(ops.ReserveFragments(num_fragments=(1 << 32) - 1))
