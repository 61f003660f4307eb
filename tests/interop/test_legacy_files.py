"""Legacy data files are read as by the official releases that wrote them."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lancelake.data.legacy.legacy_file import LegacyFile
from lancelake.format.fragment import Fragment
from lancelake.format.manifest import Manifest, decode_manifest
from tests.support.compare import assert_same_table
from tests.support.legacy_tables import MemorySource, pruned
from tests.support.official import RELEASES, Official, is_installed

ROWS = 97
GROUP = 20


@pytest.fixture(scope="module", params=RELEASES)
def official(request: pytest.FixtureRequest) -> Iterator[Official]:
    if not is_installed(request.param):
        pytest.skip(f"pylance {request.param} is not installed")
    with Official(request.param) as release:
        yield release


def repeated(values: Sequence[object], dtype: pa.DataType) -> pa.Array:
    return pa.array([values[i % len(values)] for i in range(ROWS)], dtype)


NESTED = pa.struct(
    [
        pa.field("n", pa.int16()),
        pa.field("t", pa.string()),
        pa.field("deep", pa.struct([pa.field("l", pa.list_(pa.float32())), ("b", pa.bool_())])),
    ]
)
NESTED_VALUES = [
    {"n": 1, "t": "one", "deep": {"l": [1.0, 2.0], "b": True}},
    None,
    {"n": None, "t": "", "deep": None},
    {"n": 4, "t": "vier", "deep": {"l": None, "b": None}},
    {"n": 5, "t": None, "deep": {"l": [], "b": True}},
]
SECONDS = datetime.datetime(2024, 2, 29, 12, 30, 15, tzinfo=datetime.UTC)
COLUMNS: dict[str, pa.Array] = {
    "int8": repeated([1, None, -128, 127], pa.int8()),
    "uint16": repeated([1, None, 65535], pa.uint16()),
    "int32": repeated([-1, None, 2**31 - 1], pa.int32()),
    "uint64": repeated([1, None, 2**64 - 1], pa.uint64()),
    "half": repeated([1.5, None, -0.0, float("nan")], pa.float16()),
    "float": repeated([1.5, None, float("inf")], pa.float32()),
    "double": repeated([1e300, None], pa.float64()),
    "bool": repeated([True, False, None, True, True], pa.bool_()),
    "date32": repeated([datetime.date(2024, 2, 29), None], pa.date32()),
    "date64": repeated([datetime.date(2024, 2, 29), None], pa.date64()),
    "time32": repeated([datetime.time(1, 2, 3), None], pa.time32("ms")),
    "time64": repeated([datetime.time(1, 2, 3), None], pa.time64("ns")),
    "timestamp": repeated([SECONDS, None], pa.timestamp("us", "UTC")),
    "local": repeated([SECONDS.replace(tzinfo=None), None], pa.timestamp("ms")),
    "duration": repeated([datetime.timedelta(1), None], pa.duration("s")),
    "decimal": repeated([decimal.Decimal("-1.25"), None], pa.decimal128(10, 2)),
    "decimal256": repeated([decimal.Decimal("1.25"), None], pa.decimal256(50, 2)),
    "fixed": repeated([b"abc", None, b"xyz"], pa.binary(3)),
    "vector": repeated([[1.0, 2.0, 3.0], None, [4.0, None, 6.0]], pa.list_(pa.float32(), 3)),
    "bits": repeated([[True, False, True], None], pa.list_(pa.bool_(), 3)),
    "matrix": repeated([[[1, 2], [3, 4], [5, 6]]], pa.list_(pa.list_(pa.int16(), 2), 3)),
    "string": repeated(["a", "", None, "ümlaut", "z" * 50], pa.string()),
    "large_string": repeated(["a", "", None, "b" * 9], pa.large_string()),
    "binary": repeated([b"\xff", b"", None], pa.binary()),
    "large_binary": repeated([b"\xff\x00", b"", None], pa.large_binary()),
    "null": pa.nulls(ROWS),
    "struct": repeated(NESTED_VALUES, NESTED),
    "list": repeated([[1, 2], None, [], [3, None, 5]], pa.list_(pa.int64())),
    "large_list": repeated([["a", ""], None, [], [None, "ccc"]], pa.large_list(pa.string())),
    "lists": repeated([[[1], [2, 3]], None, [None, [], [4]]], pa.list_(pa.list_(pa.uint8()))),
    "structs": repeated([NESTED_VALUES, [], None, NESTED_VALUES[:1]], pa.list_(NESTED)),
    "list_of_null": repeated([[None], [], [None, None]], pa.list_(pa.null())),
    "list_of_bool": repeated([[True], [], [False, True, True]], pa.list_(pa.bool_())),
    "list_of_vector": repeated([[[1, 2]], [], [[3, 4], [5, 6]]], pa.list_(pa.list_(pa.int8(), 2))),
}


def dictionary(values: pa.Array, indices: list[int | None], kind: pa.DataType) -> pa.Array:
    return pa.DictionaryArray.from_arrays(repeated(indices, kind), values)


WORDS = dictionary(pa.array(["x", "ÿ", "zz"]), [0, 2, 1, None], pa.int8())
COLUMNS |= {
    "dict": WORDS,
    "dict_with_empty": dictionary(pa.array(["x", "", "zz"]), [0, 2, 1], pa.int8()),
    "dict_large": dictionary(pa.array(["x", "y"], pa.large_string()), [1, 0], pa.uint32()),
    "dict_binary": dictionary(pa.array([b"x", b"\xff"]), [1, 0], pa.int16()),
    "dict_int": dictionary(pa.array([7, -7], pa.int64()), [1, 0, None], pa.int8()),
    "struct_of_dict": pa.StructArray.from_arrays([WORDS], ["word"]),
    "list_of_dict": pa.ListArray.from_arrays(pa.array([*range(ROWS), ROWS], pa.int32()), WORDS),
}


def newest(root: Path) -> tuple[MemorySource, Manifest]:
    files = {path: path.read_bytes() for path in (root / "_versions").glob("*.manifest")}
    manifests = {path: decode_manifest(data).manifest for path, data in files.items()}
    path = max(manifests, key=lambda p: manifests[p].version)
    return MemorySource(files[path], name=path.name), manifests[path]


def opened(root: Path, fragment: Fragment) -> list[LegacyFile]:
    source, manifest = newest(root)
    return [
        LegacyFile.open(
            MemorySource((root / "data" / file.path).read_bytes(), name=file.path),
            file,
            pruned(manifest.schema.fields, file),
            manifest=source,
        )
        for file in fragment.files
    ]


def side_by_side(batches: list[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    columns = {name: b.column(name) for b in batches for name in b.schema.names}
    fields = {f.name: f for b in batches for f in b.schema}
    names = [name for name in schema.names if name in columns]
    own = pa.schema([fields[name] for name in names])
    return pa.table([columns[name] for name in names], schema=own)


def ours(root: Path, expected: pa.Schema, *, batch_rows: int) -> pa.Table:
    _, manifest = newest(root)
    tables = []
    for fragment in manifest.fragments:
        readers = opened(root, fragment)
        streams = [r.batches(start=0, stop=r.num_rows, batch_rows=batch_rows) for r in readers]
        tables += [side_by_side(list(each), expected) for each in zip(*streams, strict=True)]
    return pa.concat_tables(tables)


def our_rows(root: Path, expected: pa.Schema, rows: list[int]) -> pa.Table:
    _, manifest = newest(root)
    (fragment,) = manifest.fragments
    taken = [r.take(np.array(rows, np.uint64)) for r in opened(root, fragment)]
    return side_by_side(taken, expected)


@pytest.mark.parametrize("name", COLUMNS)
def test_a_scan_gives_what_the_release_reads(official: Official, name: str, tmp_path: Path) -> None:
    root = tmp_path / "t"
    table = pa.table({name: COLUMNS[name]})
    official.write(root, table, data_storage_version="legacy", max_rows_per_group=GROUP)
    expected = official.read(root)
    assert_same_table(ours(root, expected.schema, batch_rows=33), expected)


# Both releases panic when they take rows of `bits`, though they scan it.
@pytest.mark.parametrize("name", [name for name in COLUMNS if name != "bits"])
def test_a_take_gives_what_the_release_takes(official: Official, name: str, tmp_path: Path) -> None:
    root = tmp_path / "t"
    table = pa.table({name: COLUMNS[name]})
    official.write(root, table, data_storage_version="legacy", max_rows_per_group=GROUP)
    rows = [0, 1, 2, 7, 19, 20, 41, 42, 43, 80, 96]
    expected = official.take(root, rows)
    assert_same_table(our_rows(root, expected.schema, rows), expected)


def wide_table() -> pa.Table:
    """All columns, in chunks that do not match the groups, cut out of longer arrays."""
    whole = pa.table(COLUMNS)
    return pa.concat_tables([whole.slice(3, 14), whole.slice(40, 31), whole.slice(11, 6)])


@pytest.mark.parametrize("batch_rows", [1, 10, 1000])
def test_slices_and_chunks_of_all_types(
    official: Official, batch_rows: int, tmp_path: Path
) -> None:
    root = tmp_path / "t"
    official.write(root, wide_table(), data_storage_version="legacy", max_rows_per_group=16)
    expected = official.read(root)
    assert_same_table(ours(root, expected.schema, batch_rows=batch_rows), expected)


def test_many_fragments(official: Official, tmp_path: Path) -> None:
    root = tmp_path / "t"
    sizes: dict[str, Any] = {"max_rows_per_group": 7, "max_rows_per_file": 20}
    # The release refuses to append where an empty string of the dictionary has become a null.
    table = wide_table().drop_columns(["dict_with_empty"])
    official.write(root, table, data_storage_version="legacy", **sizes)
    official.append(root, table.slice(30), **sizes)
    expected = official.read(root)
    assert_same_table(ours(root, expected.schema, batch_rows=15), expected)


def test_columns_added_in_a_second_file(official: Official, tmp_path: Path) -> None:
    root = tmp_path / "t"
    table = wide_table().select(["int32", "struct", "string", "dict"])
    official.write(root, table, data_storage_version="legacy", max_rows_per_group=16)
    official.add_columns(root, {"twice": "int32 * 2", "long": "concat(string, '!')"})
    expected = official.read(root)
    assert_same_table(ours(root, expected.schema, batch_rows=25), expected)


def test_columns_dropped_and_renamed(official: Official, tmp_path: Path) -> None:
    root = tmp_path / "t"
    table = wide_table().select(["int8", "struct", "string", "lists", "dict"])
    official.write(root, table, data_storage_version="legacy", max_rows_per_group=16)
    official.drop_columns(root, ["int8", "string"])
    official.rename_column(root, "lists", "nested")
    expected = official.read(root)
    assert_same_table(ours(root, expected.schema, batch_rows=25), expected)


def test_empty_strings_of_required_fields_are_not_null(official: Official, tmp_path: Path) -> None:
    root = tmp_path / "t"
    schema = pa.schema(
        [
            pa.field("s", pa.string(), nullable=False, metadata={"unit": "none"}),
            pa.field("l", pa.list_(pa.string()), nullable=False),
        ]
    )
    table = pa.table([["a", ""], [["", "b"], []]], schema=schema)
    official.write(root, table, data_storage_version="legacy")
    expected = official.read(root)
    assert_same_table(ours(root, expected.schema, batch_rows=25), expected)


def test_bfloat16(official: Official, tmp_path: Path) -> None:
    root = tmp_path / "t"
    code = """
from lance.arrow import bfloat16_array
values = bfloat16_array([1.5, -2.0, 3.25, 0.5])
lists = pa.FixedSizeListArray.from_arrays(values, 2)
table = pa.table({"b": values.slice(0, 2), "v": lists})
lance.write_dataset(table, uri, data_storage_version="legacy")
result = True
"""
    official.run(root, code)
    expected = official.read(root)
    assert_same_table(ours(root, expected.schema, batch_rows=25), expected)
