"""BTREE: layout of its files, ranges, statistics, parameters, and damaged files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lancelake.data.codec import readers
from lancelake.data.codec.index_file import SegmentFolder
from lancelake.errors import CorruptTableError, InternalError, InvalidRequestError
from lancelake.expr.condition import Column, Comparison, IsNull, Membership, Operator
from lancelake.index import cache
from lancelake.index.kind import (
    ROW_ID,
    VALUE,
    BuildInput,
    IdKind,
    SegmentFacts,
    SortedSegment,
)
from lancelake.index.order import Cut, KeyRange
from lancelake.index.scalar.btree import build
from lancelake.index.scalar.btree.kind import BTREE
from tests.support.index_segments import built, facts_of, new_folder, truths

COLUMN = Column(path=("c",), dtype=pa.int64())
VALUES = [5, None, 1, 3, None, 2, 2, 9, 4]
IDS = list(range(100, 109))
SMALL = {"zone_size": 2}


def equal(value: int) -> Comparison:
    return Comparison(column=COLUMN, operator=Operator.EQUAL, value=pa.scalar(value))


def small(root: Path) -> SegmentFacts:
    return built(BTREE, pa.array(VALUES), IDS, root, parameters=SMALL)


def batch(values: list[int | None], ids: list[int]) -> pa.RecordBatch:
    columns = [pa.array(values, pa.int64()), pa.array(ids, pa.uint64())]
    return pa.RecordBatch.from_arrays(columns, names=[VALUE, ROW_ID])


def test_pages_and_their_bounds_are_written(tmp_path: Path) -> None:
    folder = small(tmp_path).folder
    lookup = folder.open("page_lookup.lance")
    assert lookup.metadata == {"batch_size": "2", "range_partitioned": "false"}
    assert lookup.read().to_pydict() == {
        "min": [None, 1, 2, 4, 9],
        "max": [None, 2, 3, 5, 9],
        "null_count": [2, 0, 0, 0, 0],
        "page_idx": [0, 1, 2, 3, 4],
    }
    pages = folder.open("page_data.lance").read()
    assert pages.column("values").to_pylist() == [None, None, 1, 2, 2, 3, 4, 5, 9]


def test_a_range_in_the_middle_is_answered_at_once(tmp_path: Path) -> None:
    segment = BTREE.open(small(tmp_path))
    assert isinstance(segment, SortedSegment)
    answer = segment.answer_range(KeyRange(lower=Cut(2, False), upper=Cut(4, True)))
    wanted = [None if v is None else 2 <= v <= 4 for v in VALUES]
    assert truths(answer, IDS) == wanted


def test_an_empty_range_has_no_rows(tmp_path: Path) -> None:
    segment = BTREE.open(small(tmp_path))
    answer = segment.answer_range(KeyRange(lower=Cut(4, True), upper=Cut(2, False)))
    assert not answer.maybe_true.ids


def test_ranges_are_listed_in_the_metadata(tmp_path: Path) -> None:
    folder = new_folder(tmp_path)
    inputs = [batch([None, 1, 1], [1, 2, 3]), batch([], []), batch([1, 7], [4, 5])]
    parts = [
        BTREE.build_range(
            BuildInput(dtype=pa.int64(), batches=[rows], parameters=SMALL), place, folder
        )
        for place, rows in enumerate(inputs)
    ]
    segment = BTREE.finish_ranges(parts, pa.int64(), SMALL, folder)
    names = [file.path for file in segment.files]
    assert names == [*(f"part_{n << 32}_page_data.lance" for n in (0, 2)), "page_lookup.lance"]
    listed = folder.open("page_lookup.lance").metadata["page_num_per_range_partition"]
    assert json.loads(listed) == [[0, 2], [2 << 32, 1]]
    opened = BTREE.open(facts_of(segment, folder, pa.int64()))
    answer = opened.answer(equal(1))
    assert answer is not None
    assert truths(answer, [1, 2, 3, 4, 5]) == [None, True, True, True, False]


def test_ranges_out_of_order_and_nulls_in_each_are_read(tmp_path: Path) -> None:
    folder = new_folder(tmp_path)
    inputs = [batch([None, 7, 8], [1, 2, 3]), batch([None, 1, 9], [4, 5, 6])]
    parts = [
        BTREE.build_range(
            BuildInput(dtype=pa.int64(), batches=[rows], parameters=SMALL), place, folder
        )
        for place, rows in enumerate(inputs)
    ]
    facts = facts_of(BTREE.finish_ranges(parts, pa.int64(), SMALL, folder), folder, pa.int64())
    segment = BTREE.open(facts)
    for value in (1, 7, 8, 9):
        answer = segment.answer(equal(value))
        assert answer is not None
        found = [None, value == 7, value == 8, None, value == 1, value == 9]
        assert truths(answer, [1, 2, 3, 4, 5, 6]) == found
    merged = BTREE.merge(
        [(facts, None)], BuildInput(dtype=pa.int64(), batches=[]), target := new_folder(tmp_path)
    )
    rows = target.open(merged.files[0].path).read()
    assert rows.column("values").to_pylist() == [None, None, 1, 7, 8, 9]


def test_ranges_without_rows_are_an_empty_segment(tmp_path: Path) -> None:
    folder = new_folder(tmp_path)
    rows = BuildInput(dtype=pa.int64(), batches=[batch([], [])])
    parts = [BTREE.build_range(rows, place, folder) for place in range(2)]
    segment = BTREE.finish_ranges(parts, pa.int64(), {}, folder)
    assert [file.path for file in segment.files] == ["page_data.lance", "page_lookup.lance"]
    answer = BTREE.open(facts_of(segment, folder, pa.int64())).answer(equal(1))
    assert answer is not None
    assert not answer.maybe_true.ids


def test_what_was_read_once_is_answered_from_memory(tmp_path: Path) -> None:
    facts = small(tmp_path)
    first = BTREE.open(facts).answer(equal(2))
    for name in ("page_lookup.lance", "page_data.lance"):
        damaged(facts.folder, name).unlink()
    assert BTREE.open(facts).answer(equal(2)) == first


@pytest.fixture
def codec_calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, object]]:
    """Files that are opened, and ranges of rows that are read, in the order of the calls."""
    calls: list[tuple[str, object]] = []
    open_file, read_range = readers.file_reader, readers.CodecReader.read_range

    def opened(uri: str, **options: Any) -> object:
        calls.append(("open", Path(uri).name))
        return open_file(uri, **options)

    def read(self: readers.CodecReader, start: int, count: int, **options: Any) -> object:
        calls.append(("read", range(start, start + count)))
        return read_range(self, start, count, **options)

    monkeypatch.setattr(readers, "file_reader", opened)
    monkeypatch.setattr(readers.CodecReader, "read_range", read)
    return calls


def test_a_first_lookup_opens_and_reads_each_file_once(
    tmp_path: Path, codec_calls: list[tuple[str, object]]
) -> None:
    segment = BTREE.open(built(BTREE, pa.array(range(20)), range(20), tmp_path, parameters=SMALL))
    answer = segment.answer(equal(7))
    assert answer is not None
    assert truths(answer, [6, 7, 8]) == [False, True, False]
    assert codec_calls == [
        ("open", "page_lookup.lance"),
        ("read", range(10)),
        ("open", "page_data.lance"),
        ("read", range(6, 8)),
    ]


def test_pages_near_each_other_are_read_together(
    tmp_path: Path, codec_calls: list[tuple[str, object]]
) -> None:
    ids = range(1000, 1300)
    segment = BTREE.open(built(BTREE, pa.array(range(300)), ids, tmp_path, parameters=SMALL))
    near = [*range(0, 200, 6), 250]
    answer = segment.answer(Membership(column=COLUMN, values=pa.array(near)))
    assert answer is not None
    assert truths(answer, ids) == [value in near for value in range(300)]
    reads = [found for call, found in codec_calls if call == "read"]
    assert reads == [range(150), range(200), range(250, 252)]


def test_pages_that_were_read_together_do_not_keep_others_in_memory(tmp_path: Path) -> None:
    facts = built(BTREE, pa.array(range(300)), range(300), tmp_path, parameters=SMALL)
    BTREE.open(facts).answer(Membership(column=COLUMN, values=pa.array(range(0, 200, 4))))
    kept = cache.find_all(cache.of(facts.folder.place), [(build.VALUES, page) for page in range(5)])
    sizes = [keys.buffers()[1].size if isinstance(keys, pa.Array) else None for keys in kept]
    assert sizes == [16, None, 16, None, 16]


def test_a_remapped_segment_keeps_its_ranges(tmp_path: Path) -> None:
    folder = new_folder(tmp_path)
    parts = [
        BTREE.build_range(
            BuildInput(dtype=pa.int64(), batches=[rows], parameters=SMALL), place, folder
        )
        for place, rows in enumerate([batch([1, 2], [1, 2]), batch([3, 4], [3, 4])])
    ]
    facts = facts_of(BTREE.finish_ranges(parts, pa.int64(), SMALL, folder), folder, pa.int64())
    remapped = BTREE.remap(facts, lambda ids: ids + np.uint64(10), new_folder(tmp_path))
    assert len(remapped.files) == 3


@pytest.mark.parametrize(
    ("values", "statistics"),
    [
        ([], {}),
        ([None, None, None], {"min": "N/A", "max": "N/A", "num_pages": 2}),
        ([None, None, 4, 5], {"min": "4", "max": "5", "num_pages": 2}),
        ([None, 4, 5], {"min": "NULL", "max": "5", "num_pages": 2}),
    ],
)
def test_statistics_name_the_bounds(values, statistics, tmp_path: Path) -> None:
    array = pa.array(values, pa.int64())
    facts = built(BTREE, array, list(range(len(values))), tmp_path, parameters=SMALL)
    assert BTREE.open(facts).statistics() == statistics


def test_an_empty_segment_has_no_rows(tmp_path: Path) -> None:
    segment = BTREE.open(built(BTREE, pa.array([], pa.int64()), [], tmp_path))
    many = Membership(column=COLUMN, values=pa.array([1, 2]))
    for leaf in (equal(1), IsNull(column=COLUMN), many):
        answer = segment.answer(leaf)
        assert answer is not None
        assert not answer.maybe_true.ids
    assert list(segment.entries()) == []


def test_what_a_version_stores_depends_on_the_table() -> None:
    stored = {
        (version, is_stable): BTREE.stored_ids(version, has_stable_row_ids=is_stable)
        for version in (0, 1)
        for is_stable in (False, True)
    }
    assert [at for at, kind in stored.items() if kind is IdKind.STABLE_ID] == [(0, True)]


def test_segments_of_different_versions_are_not_merged(tmp_path: Path) -> None:
    facts = small(tmp_path)
    newer = SegmentFacts(
        folder=facts.folder, dtype=facts.dtype, details=facts.details, index_version=1
    )
    rows = BuildInput(dtype=pa.int64(), batches=[])
    with pytest.raises(InvalidRequestError, match="versions 0, 1"):
        BTREE.merge([(facts, None), (newer, None)], rows, new_folder(tmp_path))


@pytest.mark.parametrize(
    "parameters", [{"zone_size": 0}, {"zone_size": "many"}, {"zone_size": True}, {"other": 1}]
)
def test_wrong_parameters_are_refused(parameters, tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError):
        built(BTREE, pa.array([1]), [1], tmp_path, parameters=parameters)


def test_rows_that_are_not_sorted_are_refused(tmp_path: Path) -> None:
    rows = BuildInput(dtype=pa.int64(), batches=[batch([3, 1, 2, 0], [1, 2, 3, 4])])
    with pytest.raises(InternalError, match="not in value order"):
        BTREE.build(rows, new_folder(tmp_path))


def damaged(folder: SegmentFolder, name: str) -> Path:
    return Path(folder.file(name).uri)


@pytest.mark.parametrize("name", ["page_lookup.lance", "page_data.lance"])
def test_a_missing_file_is_named(name: str, tmp_path: Path) -> None:
    facts = small(tmp_path)
    damaged(facts.folder, name).unlink()
    with pytest.raises(CorruptTableError, match=f"{name}.* missing"):
        BTREE.open(facts).answer(equal(1))


@pytest.mark.parametrize("name", ["page_lookup.lance", "page_data.lance"])
def test_a_file_that_is_cut_off_is_named(name: str, tmp_path: Path) -> None:
    facts = small(tmp_path)
    path = damaged(facts.folder, name)
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(CorruptTableError, match=name):
        BTREE.open(facts).answer(equal(1))


def test_pages_that_are_missing_are_noticed(tmp_path: Path) -> None:
    facts = small(tmp_path)
    schema = build.page_schema(pa.int64())
    writer = facts.folder.create("page_data.lance", schema)
    writer.write(
        pa.RecordBatch.from_arrays([pa.array([1]), pa.array([1], pa.uint64())], schema=schema)
    )
    writer.finish()
    with pytest.raises(CorruptTableError, match=r"page_data.lance has 1 rows for 5 pages"):
        BTREE.open(facts).answer(equal(1))


@pytest.mark.parametrize(
    "metadata",
    [
        {"batch_size": "none"},
        {"batch_size": "0"},
        {"range_partitioned": "true"},
        {"range_partitioned": "true", "page_num_per_range_partition": "[1]"},
    ],
)
def test_damaged_metadata_is_noticed(metadata: dict[str, str], tmp_path: Path) -> None:
    facts = small(tmp_path)
    table = facts.folder.open("page_lookup.lance").read()
    other = new_folder(tmp_path)
    writer = other.create("page_lookup.lance", build.lookup_schema(pa.int64()))
    for rows in table.to_batches():
        writer.write(rows.cast(build.lookup_schema(pa.int64())))
    writer.finish(metadata)
    broken = SegmentFacts(folder=other, dtype=pa.int64(), details=None, index_version=0)
    with pytest.raises(CorruptTableError, match=r"page_lookup.lance"):
        BTREE.open(broken).answer(equal(1))


def test_a_file_of_other_columns_is_noticed(tmp_path: Path) -> None:
    folder = new_folder(tmp_path)
    folder.create("page_lookup.lance", pa.schema([("other", pa.int64())])).finish()
    facts = SegmentFacts(folder=folder, dtype=pa.int64(), details=None, index_version=0)
    with pytest.raises(CorruptTableError, match=r"page_lookup.lance has no column min"):
        BTREE.open(facts).answer(equal(1))


def stale(root: Path, kept: list[int]) -> bool:
    """Return whether bounds are stale once the pages have only some of the rows."""
    facts = small(root)
    pages = facts.folder.open(build.PAGE_FILE).read().take(kept)
    writer = facts.folder.create(build.PAGE_FILE, build.page_schema(pa.int64()))
    for rows in pages.to_batches():
        writer.write(rows)
    writer.finish()
    readers.forget_readers(facts.folder.place.root, [facts.folder.file(build.PAGE_FILE).uri])
    segment = BTREE.open(facts)
    return segment.has_stale_bounds()


def test_bounds_of_unchanged_pages_are_not_stale(tmp_path: Path) -> None:
    assert not stale(tmp_path, list(range(9)))


@pytest.mark.parametrize(
    "kept",
    [[0, 2, 3, 4, 5, 6, 7, 8, 8], [0, 1, 3, 4, 5, 6, 7, 8, 8], [0, 1, 2, 3, 4, 5], [0, 1]],
    ids=["a null is missing", "a value is missing", "a page is missing", "only nulls"],
)
def test_bounds_of_pages_without_some_rows_are_stale(tmp_path: Path, kept: list[int]) -> None:
    assert stale(tmp_path, kept)
