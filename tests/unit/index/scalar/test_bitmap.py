"""BITMAP: layout of its file, files of other writers, and damaged ones."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyroaring import BitMap

from lancelake.errors import CorruptTableError, InvalidRequestError
from lancelake.expr.condition import (
    Column,
    ColumnComparison,
    Comparison,
    IsNull,
    Leaf,
    Operator,
    TextMatch,
    TextTest,
)
from lancelake.index.kind import IdKind, SegmentFacts
from lancelake.index.row_sets import EMPTY, RowIds, encode_tree_map
from lancelake.index.scalar.bitmap import BITMAP
from lancelake.index.scalar.keyed_sets import FILE
from tests.support.index_segments import built, new_folder, truths

COLUMN = Column(path=("a", "b"), dtype=pa.string())
VALUES = ["x", None, "abc", "x", "b"]
NO_ROWS = encode_tree_map(EMPTY)
IDS = [3, 4, 1 << 32, 1 << 33, 9]


def equal(value: str) -> Leaf:
    return Comparison(column=COLUMN, operator=Operator.EQUAL, value=pa.scalar(value))


def test_one_set_is_written_for_each_value_and_for_null(tmp_path: Path) -> None:
    reader = built(BITMAP, pa.array(VALUES), IDS, tmp_path).folder.open(FILE)
    assert reader.metadata == {"lance:index_stats": '{"num_bitmaps":4}'}
    assert reader.read().column("keys").to_pylist() == [None, "abc", "b", "x"]


def test_every_test_of_the_text_is_answered(tmp_path: Path) -> None:
    segment = BITMAP.open(built(BITMAP, pa.array(VALUES), IDS, tmp_path))
    for test, text in ((TextTest.CONTAINS, "b"), (TextTest.ENDS_WITH, "c")):
        answer = segment.answer(TextMatch(column=COLUMN, test=test, text=text))
        assert answer is not None
        wanted = [
            None if v is None else text in v if test is TextTest.CONTAINS else v.endswith(text)
            for v in VALUES
        ]
        assert truths(answer, IDS) == wanted


def test_a_comparison_of_columns_is_not_answered(tmp_path: Path) -> None:
    segment = BITMAP.open(built(BITMAP, pa.array(VALUES), IDS, tmp_path))
    leaf = ColumnComparison(left=COLUMN, operator=Operator.EQUAL, right=COLUMN)
    assert segment.answer(leaf) is None


def written(root: Path, keys: list[str | None], bitmaps: list[bytes], **facts) -> SegmentFacts:
    folder = new_folder(root)
    schema = pa.schema([("keys", pa.string()), ("bitmaps", pa.binary())])
    writer = folder.create(FILE, schema)
    writer.write(pa.RecordBatch.from_arrays([pa.array(keys), pa.array(bitmaps)], schema=schema))
    writer.finish()
    return SegmentFacts(folder=folder, dtype=pa.string(), details=None, index_version=0, **facts)


def test_keys_in_any_order_are_read(tmp_path: Path) -> None:
    sets = [encode_tree_map(RowIds({0: BitMap([n])})) for n in range(3)]
    segment = BITMAP.open(written(tmp_path, ["b", None, "a"], sets))
    assert [(key, ids.to_array().tolist()) for key, ids in segment.sets()] == [
        (None, [1]),
        (b"a", [2]),
        (b"b", [0]),
    ]
    nulls = segment.answer(IsNull(column=COLUMN))
    assert nulls is not None
    assert truths(nulls, [0, 1, 2]) == [False, True, False]
    rows = [batch.to_pydict() for batch in segment.entries()]
    assert [row["value"] for row in rows] == [[None], ["a"], ["b"]]


def test_a_set_of_a_whole_fragment_has_all_its_rows(tmp_path: Path) -> None:
    whole = b"\x01\0\0\0" + b"\x02\0\0\0" + b"\0\0\0\0"
    facts = written(tmp_path, ["a", "b"], [whole, NO_ROWS], fragment_rows={2: 3}.get)
    answer = BITMAP.open(facts).answer(equal("a"))
    assert answer is not None
    assert answer.maybe_true.ids.parts == {2: BitMap(range(3))}


@pytest.mark.parametrize("data", [b"", b"\x05\0\0\0", b"\x01\0\0\0\0\0\0\0\x02\0\0\0zz"])
def test_a_damaged_set_names_its_file(data: bytes, tmp_path: Path) -> None:
    facts = written(tmp_path, ["a", "b"], [data, NO_ROWS])
    with pytest.raises(CorruptTableError, match=FILE):
        BITMAP.open(facts).answer(equal("a"))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    facts = SegmentFacts(
        folder=new_folder(tmp_path), dtype=pa.string(), details=None, index_version=0
    )
    with pytest.raises(CorruptTableError, match=f"{FILE} is missing"):
        BITMAP.open(facts).answer(equal("a"))


def test_what_is_stored_depends_on_the_table() -> None:
    assert BITMAP.stored_ids(0, has_stable_row_ids=True) is IdKind.STABLE_ID
    assert BITMAP.stored_ids(0, has_stable_row_ids=False) is IdKind.ADDRESS


def test_parameters_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match="zone_size"):
        built(BITMAP, pa.array(["a"]), [1], tmp_path, parameters={"zone_size": 1})


@pytest.mark.parametrize(("ids", "is_twice"), [(IDS, False), ([3, 4, 3, 1 << 33, 9], True)])
def test_rows_under_two_values_are_noticed(tmp_path: Path, ids: list[int], is_twice: bool) -> None:
    segment = BITMAP.open(built(BITMAP, pa.array(VALUES), ids, tmp_path))
    assert segment.has_rows_twice() is is_twice
