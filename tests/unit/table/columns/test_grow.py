"""Members are added to nested columns, and columns with one value to every row."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.commit.snapshot import Snapshot
from lancelake.errors import InvalidRequestError, SchemaMismatchError
from lancelake.format.arrow_schema import public_schema
from lancelake.table.columns.add import add_constant_columns
from lancelake.table.columns.alter import add_null_members, grown, widened, widened_schema
from tests.support.official import Official

MEMBER = pa.schema([pa.field("pair", pa.struct([pa.field("z", pa.int32())]))])


def test_a_struct_gets_a_member(base: Snapshot, dataset: lance.LanceDataset) -> None:
    before = dataset.to_table()
    add_null_members(base, MEMBER)
    after = lance.dataset(dataset.uri)
    after.validate()
    assert after.to_table().drop_columns("pair") == before.drop_columns("pair")
    expected = [{**pair, "z": None} for pair in before["pair"].to_pylist()]
    assert after.to_table()["pair"].to_pylist() == expected


def test_official_lance_reads_the_member(
    base: Snapshot, dataset: lance.LanceDataset, official_14: Official
) -> None:
    made = add_null_members(base, MEMBER)
    found = official_14.read(dataset.uri)
    assert found["pair"].to_pylist()[0] == {"x": 0, "y": "y0", "z": None}
    assert made.version == base.version + 1


def test_lists_of_structs_get_members(tmp_path: Path) -> None:
    item = pa.struct([("a", pa.int32())])
    rows = pa.table({"l": pa.array([[{"a": 1}], None, [], [None]], pa.list_(item))})
    dataset = lance.write_dataset(rows, tmp_path / "t", data_storage_version="2.1")
    member = pa.list_(pa.field("item", pa.struct([pa.field("b", pa.string())])))
    add_null_members(dataset._snapshot, pa.schema([pa.field("l", member)]))
    found = lance.dataset(tmp_path / "t").to_table()["l"].to_pylist()
    assert found == [[{"a": 1, "b": None}], None, [], [None]]


def test_an_existing_member_is_refused(base: Snapshot) -> None:
    again = pa.schema([pa.field("pair", pa.struct([pa.field("x", pa.int64())]))])
    with pytest.raises(InvalidRequestError, match=r"pair\.x already exists"):
        add_null_members(base, again)


def test_a_column_of_another_kind_gets_no_member(base: Snapshot) -> None:
    wrong = pa.schema([pa.field("name", pa.struct([pa.field("x", pa.int64())]))])
    with pytest.raises(SchemaMismatchError):
        add_null_members(base, wrong)


def _data(pair: pa.StructType) -> pa.Schema:
    return pa.schema([("id", pa.int64()), ("pair", pair), pa.field("n", pa.int8(), nullable=False)])


def test_a_table_gets_the_columns_and_members_that_only_the_data_has(base: Snapshot) -> None:
    data = _data(pa.struct([("z", pa.int32()), ("x", pa.int64())]))
    after = widened(base, data)
    names = [field.name for field in after.manifest.schema.walk()]
    assert names[-1] == "n"
    assert after.manifest.schema.by_id() == widened_schema(base, data).by_id()
    assert "z" in names
    assert after.manifest.schema.fields[-1].nullable


def test_a_table_that_has_all_of_the_data_stays_as_it_is(base: Snapshot) -> None:
    assert widened(base, public_schema(base.manifest.schema)) is base


def test_nothing_is_added_for_data_that_does_not_fit(base: Snapshot) -> None:
    with pytest.raises(SchemaMismatchError):
        widened(base, _data(pa.struct([("z", pa.int32()), ("x", pa.string())])))
    assert lance.dataset(base.location.uri).version == base.version


def test_null_structs_and_maps_stay_null() -> None:
    small, large = pa.struct([("a", pa.int8())]), pa.struct([("a", pa.int8()), ("b", pa.int8())])
    structs = pa.array([{"a": 1}, None], small)
    assert grown(structs, large).to_pylist() == [{"a": 1, "b": None}, None]
    maps = pa.array([[("k", {"a": 1})], None, []], pa.map_(pa.string(), small))
    assert grown(maps, pa.map_(pa.string(), large)).to_pylist() == [
        [("k", {"a": 1, "b": None})],
        None,
        [],
    ]


def test_a_constant_fills_every_row(base: Snapshot, dataset: lance.LanceDataset) -> None:
    row = pa.record_batch({"c": pa.array([{"p": [7]}])})
    add_constant_columns(base, row)
    after = lance.dataset(dataset.uri)
    after.validate()
    assert after.to_table()["c"].to_pylist() == [{"p": [7]}] * 9
