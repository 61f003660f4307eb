"""Estimated width of rows."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lancelake.format.arrow_schema import from_arrow
from lancelake.format.fragment import DataFile, Fragment
from lancelake.format.ids import FieldId, FragmentId
from lancelake.scan.plan import column_widths, row_bytes, stored_bytes

SCHEMA = from_arrow(
    pa.schema(
        [
            ("i", pa.int64()),
            ("v", pa.list_(pa.float32(), 16)),
            ("s", pa.string()),
            ("st", pa.struct([("x", pa.int16()), ("b", pa.binary())])),
        ]
    )
)
# Field ids: i 0, v 1, s 2, st 3, st.x 4, st.b 5.
HELD = tuple(FieldId(i) for i in range(6))


def fragment(*, rows: int | None, size: int | None) -> Fragment:
    file = DataFile(
        path="x.lance",
        fields=HELD,
        column_indices=tuple(range(6)),
        file_major_version=2,
        file_minor_version=1,
        file_size_bytes=size,
    )
    return Fragment(id=FragmentId(0), files=(file,), physical_rows=rows)


def width(columns: tuple[str, ...], *, rows: int | None = 100, size: int | None = 10_000) -> float:
    made = fragment(rows=rows, size=size)
    return row_bytes(made, column_widths(SCHEMA), SCHEMA.select(columns))


@pytest.mark.parametrize(("columns", "expected"), [(("i",), 8), (("v",), 64), (("i", "v"), 72)])
def test_columns_of_fixed_width_are_known(columns: tuple[str, ...], expected: float) -> None:
    assert width(columns) == expected


def test_rest_of_the_file_is_shared_by_the_other_columns() -> None:
    # 100 bytes a row, of which 74 are known: 26 are left for s and st.b.
    assert (width(("s",)), width(("st",))) == (13, 15)


def test_no_columns_have_no_width() -> None:
    assert width(()) == 0


@pytest.mark.parametrize(("rows", "size"), [(None, 10_000), (100, None), (0, 10_000), (0, 0)])
def test_width_is_estimated_where_the_manifest_does_not_have_it(
    rows: int | None, size: int | None
) -> None:
    assert width(("s",), rows=rows, size=size) > 0


def test_column_of_no_file_has_no_width() -> None:
    bare = Fragment(id=FragmentId(0), files=(), physical_rows=5)
    assert row_bytes(bare, column_widths(SCHEMA), SCHEMA) == 0


def stored(columns: tuple[str, ...], *, rows: int | None = 100, size: int | None = 10_000) -> float:
    made = fragment(rows=rows, size=size)
    return stored_bytes(made, column_widths(SCHEMA), SCHEMA.select(columns))


@pytest.mark.parametrize("columns", [(), ("i",), ("i", "v"), ("i", "v", "s", "st")])
def test_columns_of_a_file_that_is_not_compressed_are_stored_as_wide_as_they_are(
    columns: tuple[str, ...],
) -> None:
    assert stored(columns, size=20_000) == width(columns, size=20_000)


def test_a_compressed_file_is_shared_in_the_ratio_of_widths() -> None:
    # 57 bytes a row are stored; i has 8, v 64, st.x 2, and s and st.b are taken as 20 each.
    parts = [stored((name,), size=5_700) for name in ("i", "v", "s", "st")]
    assert parts == pytest.approx([4, 32, 10, 11])


def test_stored_width_is_estimated_where_the_manifest_does_not_have_it() -> None:
    assert stored(("i", "s"), rows=None) == width(("i", "s"), rows=None)
