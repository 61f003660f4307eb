"""Official releases read our data files."""

from __future__ import annotations

import datetime
import decimal
import hashlib
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import lancelake
from lancelake.data.schema_check import ensure_fits
from lancelake.errors import SchemaMismatchError
from lancelake.format.arrow_schema import from_arrow
from lancelake.storage.location import Location
from tests.strategies.tables import schemas, tables
from tests.strategies.target import Target
from tests.support.compare import assert_same_table, table_difference
from tests.support.official import Official, OfficialError
from tests.support.s3_server import s3_server
from tests.support.written_tables import write_table

VERSIONS = ("2.0", "2.1", "2.2")
SINCE_2_1 = ("2.1", "2.2")
ONLY_2_2 = ("2.2",)
UTC = datetime.UTC
BFLOAT16 = {b"ARROW:extension:name": b"lance.bfloat16", b"ARROW:extension:metadata": b""}


def _column(values: list[object] | pa.Array, dtype: pa.DataType, **field: object) -> pa.Table:
    array = values if isinstance(values, pa.Array) else pa.array(values, dtype)
    schema = pa.schema([pa.field("c", dtype, **field)])
    return pa.table([array], schema=schema)


def _json(values: list[str | None]) -> pa.Array:
    return pa.ExtensionArray.from_storage(pa.json_(), pa.array(values, pa.string()))


def _numbers() -> dict[str, pa.Table]:
    found = {}
    for dtype in (pa.int8(), pa.int16(), pa.int32(), pa.int64()):
        top = 2 ** (dtype.bit_width - 1)
        found[str(dtype)] = _column([1, None, -top, top - 1], dtype)
    for dtype in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()):
        found[str(dtype)] = _column([0, None, 2**dtype.bit_width - 1], dtype)
    for dtype in (pa.float16(), pa.float32(), pa.float64()):
        found[str(dtype)] = _column([0.5, None, float("nan"), float("-inf"), -0.0], dtype)
    found["bool"] = _column([True, None, False] * 5, pa.bool_())
    found["null"] = _column([None] * 4, pa.null())
    found["required"] = _column([1, 2, 3], pa.int32(), nullable=False)
    return found


def _texts() -> dict[str, pa.Table]:
    found = {}
    for dtype in (pa.string(), pa.large_string()):
        found[str(dtype)] = _column(["a", None, "", "ß" * 3000], dtype)
        words = pa.dictionary(pa.int16(), dtype)
        found[f"dictionary of {dtype}"] = _column(["a", None, "b", "a", ""], words)
    for dtype in (pa.binary(), pa.large_binary()):
        found[str(dtype)] = _column([b"a", None, b"", b"\0" * 3000], dtype)
    found["fixed_size_binary"] = _column([b"abc", None, b"xyz"], pa.binary(3))
    found["bfloat16"] = _column([b"ab", None, b"\0\0"], pa.binary(2), metadata=BFLOAT16)
    found["dictionary of numbers"] = _column([5, None, 5], pa.dictionary(pa.int8(), pa.int64()))
    found["json"] = _column(_json(['{"a":[1,2.5,null]}', None, '"t"', "[]"]), pa.json_())
    return found


def _moments() -> dict[str, pa.Table]:
    found = {}
    day = datetime.date(2024, 2, 29)
    found["date32"] = _column([day, None], pa.date32())
    found["date64"] = _column([day, None], pa.date64())
    for unit in ("s", "ms", "us", "ns"):
        found[f"duration {unit}"] = _column([5, None, -(2**63)], pa.duration(unit))
        for zone in (None, "UTC", "America/New_York"):
            dtype = pa.timestamp(unit, zone)
            found[str(dtype)] = _column([1, None, -1, 2**62], dtype)
    for dtype in (pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")):
        found[str(dtype)] = _column([0, None, 1000], dtype)
    for dtype in (pa.decimal128(10, 2), pa.decimal128(38, 0), pa.decimal256(70, 5)):
        found[str(dtype)] = _column([decimal.Decimal(-12), None, decimal.Decimal(7)], dtype)
    return found


def _nested() -> dict[str, pa.Table]:
    pair = pa.struct([("x", pa.int32()), ("y", pa.string())])
    required = pa.struct([pa.field("x", pa.int32(), nullable=False)])
    packed = pa.struct([pa.field("x", pa.int32(), False), pa.field("y", pa.float64(), False)])
    wide = pa.list_(pa.float32(), 64)
    return {
        "struct": _column([{"x": 1, "y": "a"}, {"x": None, "y": None}], pair),
        "struct of required": _column([{"x": 1}], required, nullable=False),
        "empty struct": _column([{}, {}], pa.struct([])),
        "packed struct": _column(
            [{"x": 1, "y": 0.5}] * 3,
            packed,
            nullable=False,
            metadata={b"lance-encoding:packed": b"true"},
        ),
        "list": _column([[1, None], None, [], [2]], pa.list_(pa.int32())),
        "large list": _column([["a", None], None, []], pa.large_list(pa.string())),
        "list of element": _column([[1]], pa.list_(pa.field("element", pa.int32(), False))),
        "list of lists": _column([[[1], None, []], None, []], pa.list_(pa.list_(pa.int8()))),
        "list of structs": _column([[{"x": 1, "y": None}], None, []], pa.list_(pair)),
        "vectors": _column([[0.5] * 64, None, [1.0] * 64], wide),
        "vectors of vectors": _column(
            [[[1, 2], [3, 4]], None], pa.list_(pa.list_(pa.int8(), 2), 2)
        ),
        "bfloat16 vectors": _column(
            [[b"ab", b"cd"], None], pa.list_(pa.field("item", pa.binary(2), metadata=BFLOAT16), 2)
        ),
        "list of vectors": _column([[[1, 2]], None, []], pa.list_(pa.list_(pa.int16(), 2))),
    }


def _null_structs() -> dict[str, pa.Table]:
    pair = pa.struct([("x", pa.int32()), ("y", pa.string())])
    deep = pa.struct([("p", pair), ("l", pa.list_(pair))])
    full = {"x": 1, "y": "a"}
    return {
        "null struct": _column([full, None, {"x": None, "y": None}], pair),
        "null struct in struct": _column(
            [{"p": None, "l": None}, None, {"p": full, "l": [full]}], deep
        ),
        "null struct in list": _column([[None, full], None, []], pa.list_(pair)),
        "null in struct": _column([{"x": None}, None], pa.struct([("x", pa.null())])),
        "nullable struct of required": _column(
            [{"x": 1}, None], pa.struct([pa.field("x", pa.int32(), nullable=False)])
        ),
    }


def _since_2_2() -> dict[str, pa.Table]:
    pair = pa.struct([("x", pa.int32()), ("y", pa.string())])
    return {
        "map": _column([[("a", 1), ("b", None)], None, []], pa.map_(pa.string(), pa.int32())),
        "map of structs": _column([[("a", {"x": 1})], None], pa.map_(pa.string(), pair)),
    }


CASES = [
    *((name, table, v) for name, table in (_numbers() | _texts()).items() for v in VERSIONS),
    *((name, table, v) for name, table in (_moments() | _nested()).items() for v in VERSIONS),
    *((name, table, v) for name, table in _null_structs().items() for v in SINCE_2_1),
    *((name, table, v) for name, table in _since_2_2().items() for v in ONLY_2_2),
]


@pytest.mark.parametrize(
    ("table", "version"), [c[1:] for c in CASES], ids=[f"{n} {v}" for n, _, v in CASES]
)
def test_every_type_reads_back_equal(
    tmp_path: Path, official: Official, table: pa.Table, version: str
) -> None:
    write_table(tmp_path, table, version)
    assert_same_table(lancelake.dataset(tmp_path).to_table(), table)
    assert_same_table(official.read(tmp_path), table)


def _newest() -> dict[str, pa.Table]:
    """Return what pylance 4 reads wrongly, or not at all, also from files of its own."""
    pair = pa.struct([("x", pa.int32()), ("y", pa.string())])
    return {
        "zone with offset": _column([1, None], pa.timestamp("us", "+05:30")),
        "null in list": _column([[None, None], None, []], pa.list_(pa.null())),
        "only null members": _column([[{"x": 1}], [{"x": 2}, {"x": 3}]], pa.list_(pair)),
        "only null items": _column([[None], [None, None]], pa.list_(pa.string())),
        "only null vectors": _column([[None, None]], pa.list_(pa.int32(), 2)),
    }


@pytest.mark.parametrize("version", SINCE_2_1)
@pytest.mark.parametrize("name", _newest())
def test_what_pylance_4_cannot_read_is_read_by_the_newest(
    tmp_path: Path, official_14: Official, name: str, version: str
) -> None:
    table = _newest()[name]
    write_table(tmp_path, table, version, newest_readers_only=True)
    assert_same_table(lancelake.dataset(tmp_path).to_table(), table)
    assert_same_table(official_14.read(tmp_path), table)


BLOB_V1 = {b"lance-encoding:blob": b"true"}
BLOB_V2 = {b"ARROW:extension:name": b"lance.blob.v2"}
BLOB_VALUE = pa.struct([("data", pa.large_binary()), ("uri", pa.string())])
BLOBS = [b"small", b"", b"p" * 100_000, b"q" * 70_001, b"d" * 5_000_000]
READ_BLOBS = """
import hashlib
blobs = lance.dataset(uri).take_blobs("b", indices=[0, 1, 2, 3, 4])
result = [hashlib.sha256(blob.readall()).hexdigest() for blob in blobs]
"""


def _blobs(values: pa.Array, metadata: dict[bytes, bytes]) -> pa.Table:
    fields = [("a", pa.int64()), pa.field("b", values.type, metadata=metadata), ("c", pa.string())]
    return pa.table([range(len(values)), values, ["x"] * len(values)], schema=pa.schema(fields))


def _digests() -> list[str]:
    return [hashlib.sha256(blob).hexdigest() for blob in BLOBS]


@pytest.mark.parametrize("version", ["2.0", "2.1"])
def test_blobs_of_the_first_kind_read_back_equal(
    tmp_path: Path, official: Official, version: str
) -> None:
    write_table(tmp_path, _blobs(pa.array(BLOBS, pa.large_binary()), BLOB_V1), version)
    assert official.run(tmp_path, READ_BLOBS) == _digests()


def test_blobs_of_the_second_kind_read_back_equal(tmp_path: Path, official: Official) -> None:
    values = pa.array([{"data": blob} for blob in BLOBS], BLOB_VALUE)
    write_table(tmp_path, _blobs(values, BLOB_V2), "2.2")
    assert official.run(tmp_path, READ_BLOBS) == _digests()


def test_blobs_of_the_second_kind_are_described_as_official_releases_do(
    tmp_path: Path, official_14: Official
) -> None:
    rows = [*({"data": blob} for blob in BLOBS), None, {"uri": "file:///nowhere"}]
    table = _blobs(pa.array(rows, BLOB_VALUE), BLOB_V2)
    write_table(tmp_path / "ours", table, "2.2", allow_external_blobs=True)
    official_14.write(
        tmp_path / "theirs",
        table,
        data_storage_version="2.2",
        allow_external_blob_outside_bases=True,
    )
    ours = official_14.read(tmp_path / "ours")
    assert_same_table(ours, official_14.read(tmp_path / "theirs"))
    assert_same_table(lancelake.dataset(tmp_path / "ours").to_table(), ours)


@pytest.mark.parametrize("version", VERSIONS)
@given(data=st.data())
def test_any_table_cut_in_any_way_reads_back_equal(
    tmp_path_factory: pytest.TempPathFactory,
    official: Official,
    version: str,
    data: st.DataObject,
) -> None:
    target = Target(release=official.release, file_version=version)
    schema = data.draw(schemas(target))
    table = data.draw(tables(schema, target))
    rows = data.draw(st.integers(1, 15))
    root = tmp_path_factory.mktemp("any")
    write_table(
        root / "ours",
        table,
        version,
        batch_rows=data.draw(st.integers(1, 5)),
        max_rows_per_file=rows,
        newest_readers_only=official.release != "4.0.2",
    )
    assert_same_table(lancelake.dataset(root / "ours").to_table(), table)
    difference = _misread(official, root / "ours", table)
    # Release 4.0.2 misreads pages of nothing but nulls inside lists, whoever wrote them.
    if difference is not None and official.release == "4.0.2":
        for start in range(0, table.num_rows, rows):
            mode = "append" if start else "create"
            part = table.slice(start, rows)
            official.write(root / "theirs", part, mode=mode, data_storage_version=version)
        assume(_misread(official, root / "theirs", table) is None)
    assert difference is None, difference


def _misread(official: Official, root: Path, table: pa.Table) -> str | None:
    """Return what is wrong with what an official release reads."""
    try:
        return table_difference(official.read(root), table)
    except OfficialError as error:
        return str(error)


def test_tables_on_s3_are_read(official: Official) -> None:
    table = _blobs(pa.array([{"data": b"p" * 100_000}] * 20, BLOB_VALUE), BLOB_V2)
    with s3_server() as server:
        root = Location.parse(f"s3://{server.new_bucket()}/some/table", server.storage_options)
        fragments = write_table(root, table, "2.2", max_rows_per_file=8)
        sizes = [root.store.head(f"data/{f.files[0].path}").size_bytes for f in fragments]
        assert sizes == [fragment.files[0].file_size_bytes for fragment in fragments]
        code = """
ds = lance.dataset(uri, storage_options=options)
blobs = ds.take_blobs("b", indices=[0, 19])
result = [ds.to_table(columns=["a"])["a"].to_pylist(), [len(blob.readall()) for blob in blobs]]
"""
        found = official.run(root.uri, code, options=root.storage_options)
    assert found == [list(range(20)), [100_000, 100_000]]


PAIR = pa.struct([("x", pa.int32()), ("y", pa.string())])
TYPES = [
    *(pa.string(), pa.large_string(), pa.binary(), pa.int32(), pa.int64(), pa.float64()),
    *(pa.null(), pa.dictionary(pa.int8(), pa.string()), pa.json_(), pa.timestamp("us")),
    *(pa.list_(pa.int32()), pa.list_(pa.field("element", pa.int32()))),
    *(pa.list_(pa.field("item", pa.int32(), nullable=False)), pa.list_(pa.int32(), 2)),
    *(PAIR, pa.struct([("y", pa.string()), ("x", pa.int32())]), pa.struct([("y", pa.string())])),
    *(pa.struct([("x", pa.int64())]), pa.list_(PAIR), pa.list_(pa.struct([("x", pa.int32())]))),
]
APPEND = """
result = []
for number, table in enumerate(types):
    for data in types:
        place = f"{uri}/{number}"
        try:
            rows = table.empty_table()
            lance.write_dataset(rows, place, mode="overwrite", data_storage_version="2.1")
            lance.write_dataset(data.empty_table(), place, mode="append")
            result.append(True)
        except OSError:
            result.append(False)
"""


def test_an_append_fits_where_official_releases_say_so(tmp_path: Path, official: Official) -> None:
    types = [pa.schema([("c", dtype)]) for dtype in TYPES]
    fits = [_fits(table, data) for table in types for data in types]
    pairs = [f"{table} <- {data}" for table in TYPES for data in TYPES]
    theirs = official.run(tmp_path, APPEND, types=types)
    assert [pair for pair, a, b in zip(pairs, fits, theirs, strict=True) if a != b] == []


def _fits(table: pa.Schema, data: pa.Schema) -> bool:
    try:
        ensure_fits(from_arrow(table), data)
    except SchemaMismatchError:
        return False
    return True
