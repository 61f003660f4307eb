"""LABEL_LIST: types, segments that do not know their null lists, and damaged files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lancelake.data.codec.index_file import SegmentFolder
from lancelake.errors import CorruptTableError
from lancelake.expr.condition import IsNull, ListMatch
from lancelake.expr.predicate import sql_condition
from lancelake.format.arrow_schema import from_arrow
from lancelake.index.kind import BuildInput, SegmentFacts
from lancelake.index.scalar.keyed_sets import FILE, NULL_LISTS
from lancelake.index.scalar.label_list import LABEL_LIST
from tests.support.index_segments import addresses, build_input, built, new_folder, truths

VALUES = pa.array([["x"], ["x", "y"], None, [], [None]])
IDS = addresses(5)
SCHEMA = pa.schema([("l", VALUES.type)])


def match(text: str) -> ListMatch:
    leaf = sql_condition(text, from_arrow(SCHEMA), SCHEMA)
    assert isinstance(leaf, ListMatch)
    return leaf


def without_nulls(facts: SegmentFacts, root: Path) -> SegmentFacts:
    """Return a segment as releases wrote it that did not note null lists."""
    folder = new_folder(root)
    table = facts.folder.open(FILE).read()
    writer = folder.create(FILE, table.schema)
    for rows in table.to_batches():
        writer.write(rows)
    writer.finish()
    return SegmentFacts(folder=folder, dtype=facts.dtype, details=None, index_version=0)


@pytest.mark.parametrize(
    ("dtype", "is_accepted"),
    [
        (pa.list_(pa.string()), True),
        (pa.large_list(pa.float64()), True),
        (pa.list_(pa.decimal128(10, 2)), True),
        (pa.list_(pa.dictionary(pa.int32(), pa.string())), True),
        (pa.list_(pa.list_(pa.int8())), False),
        (pa.list_(pa.int8(), 2), False),
        (pa.string(), False),
    ],
    ids=str,
)
def test_lists_of_plain_elements_are_accepted(dtype: pa.DataType, is_accepted: bool) -> None:
    assert LABEL_LIST.accepts(dtype) is is_accepted


def test_elements_with_a_dictionary_keep_it_in_the_file(tmp_path: Path) -> None:
    dtype = pa.list_(pa.dictionary(pa.int32(), pa.string()))
    facts = built(LABEL_LIST, pa.array(VALUES.to_pylist(), dtype), IDS, tmp_path)
    assert facts.folder.open(FILE).schema.field("keys").type == dtype.value_type
    answer = LABEL_LIST.open(facts).answer(match("array_has(l, 'x')"))
    assert answer is not None
    assert truths(answer, IDS) == [True, True, None, False, False]


def test_without_null_lists_only_the_true_rows_are_known(tmp_path: Path) -> None:
    old = without_nulls(built(LABEL_LIST, VALUES, IDS, tmp_path), tmp_path)
    segment = LABEL_LIST.open(old)
    answer = segment.answer(match("array_has(l, 'x')"))
    assert answer is not None
    assert answer.is_exact
    assert answer.maybe_true.ids.to_array().tolist() == IDS[:2]
    assert not (~answer).is_exact
    assert segment.answer(IsNull(column=match("array_has(l, 'x')").column)) is None


def test_a_segment_merged_with_one_that_lacks_null_lists_lacks_them(tmp_path: Path) -> None:
    old = without_nulls(built(LABEL_LIST, VALUES, IDS, tmp_path), tmp_path)
    rows = build_input(LABEL_LIST, VALUES, addresses(10)[5:])
    folder = new_folder(tmp_path)
    merged = LABEL_LIST.merge([(old, None)], rows, folder)
    assert merged.index_version == 0
    assert NULL_LISTS not in folder.open(FILE).metadata


def test_a_new_segment_knows_its_null_lists(tmp_path: Path) -> None:
    folder = new_folder(tmp_path)
    segment = LABEL_LIST.build(build_input(LABEL_LIST, VALUES, IDS), folder)
    assert segment.index_version == 1
    assert folder.open(FILE).metadata[NULL_LISTS] == "1"
    assert LABEL_LIST.open(built(LABEL_LIST, VALUES, IDS, tmp_path)).statistics() == {
        "num_bitmaps": 3
    }


def test_an_empty_segment_has_no_rows(tmp_path: Path) -> None:
    folder: SegmentFolder = new_folder(tmp_path)
    LABEL_LIST.build(BuildInput(dtype=VALUES.type, batches=[]), folder)
    facts = SegmentFacts(folder=folder, dtype=VALUES.type, details=None, index_version=1)
    answer = LABEL_LIST.open(facts).answer(match("array_has_all(l, ['x', 'y'])"))
    assert answer is not None
    assert not answer.maybe_true.ids


def test_a_damaged_buffer_names_its_file(tmp_path: Path) -> None:
    folder = new_folder(tmp_path)
    schema = pa.schema([("keys", pa.string()), ("bitmaps", pa.binary())])
    writer = folder.create(FILE, schema)
    number = writer.add_buffer(b"\x01\0")
    writer.finish({NULL_LISTS: str(number)})
    facts = SegmentFacts(folder=folder, dtype=VALUES.type, details=None, index_version=1)
    with pytest.raises(CorruptTableError, match=FILE):
        LABEL_LIST.open(facts).answer(match("array_has(l, 'x')"))


def test_a_missing_buffer_names_its_file(tmp_path: Path) -> None:
    folder = new_folder(tmp_path)
    schema = pa.schema([("keys", pa.string()), ("bitmaps", pa.binary())])
    folder.create(FILE, schema).finish({NULL_LISTS: "77"})
    facts = SegmentFacts(folder=folder, dtype=VALUES.type, details=None, index_version=1)
    with pytest.raises(CorruptTableError, match=FILE):
        LABEL_LIST.open(facts).answer(match("array_has(l, 'x')"))
