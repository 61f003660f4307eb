"""Writes in three steps: plan, run, commit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import lancelake
from lancelake.commit.snapshot import Snapshot
from lancelake.core.table_place import TablePlace
from lancelake.errors import (
    ConflictError,
    InvalidRequestError,
    LanceTableError,
    SchemaMismatchError,
    UnsupportedError,
)
from lancelake.format.arrow_schema import from_arrow
from lancelake.format.fragment import FileVersion
from lancelake.pylance import LanceOperation
from lancelake.storage.location import Location
from lancelake.table.columns.alter import ColumnChange, alter_columns
from lancelake.table.publish import OnceOnly, Retries
from lancelake.table.write import (
    RowsByFilter,
    SchemaMode,
    WriteMode,
    WriteOptions,
    commit,
    plan,
    run,
    write,
)

APPEND = WriteOptions(mode=WriteMode.APPEND)
OVERWRITE = WriteOptions(mode=WriteMode.OVERWRITE)
MERGE = replace(APPEND, schema_mode=SchemaMode.MERGE)
ONE = replace(APPEND, once=OnceOnly(app_id="job", version=1))


@pytest.fixture
def place(tmp_path: Path) -> Location:
    return Location.parse(tmp_path / "t.lance")


def _write(
    base: Snapshot | None, place: Location, rows: pa.Table, options: WriteOptions
) -> Snapshot:
    return write(base, place, rows.to_reader(), options)


def _values(made: Snapshot, column: str = "i") -> list[int]:
    dataset = lancelake.dataset(made.location.uri, version=made.version)
    return sorted(dataset.to_table()[column].to_pylist())


def _rows(*values: int) -> pa.Table:
    return pa.table({"i": pa.array(values, pa.int64())})


@pytest.fixture
def base(place: Location) -> Snapshot:
    return _write(None, place, _rows(1, 2), WriteOptions())


def test_a_first_write_makes_the_table(base: Snapshot) -> None:
    assert (base.version, _values(base)) == (1, [1, 2])


def test_rows_are_appended_or_take_the_place_of_all(base: Snapshot, place: Location) -> None:
    more = _write(base, place, _rows(3), APPEND)
    assert _values(more) == [1, 2, 3]
    assert _values(_write(more, place, _rows(4), OVERWRITE)) == [4]


REPLACE_TWOS = replace(OVERWRITE, replaces=RowsByFilter(condition="i = 2"))


def test_rows_that_a_condition_finds_are_replaced(base: Snapshot, place: Location) -> None:
    assert _values(_write(base, place, _rows(2, 2), REPLACE_TWOS)) == [1, 2, 2]


def test_rows_that_the_condition_does_not_find_replace_none(
    base: Snapshot, place: Location
) -> None:
    before = sorted((Path(place.uri) / "data").iterdir())
    with pytest.raises(InvalidRequestError, match="the condition of the overwrite: i = 2"):
        _write(base, place, _rows(2, 3), REPLACE_TWOS)
    assert _values(lancelake.dataset(place.uri)._snapshot) == [1, 2]
    assert sorted((Path(place.uri) / "data").iterdir()) == before


def test_rows_of_a_new_table_match_the_condition(place: Location) -> None:
    with pytest.raises(InvalidRequestError, match="the condition of the overwrite: i = 2"):
        _write(None, place, _rows(2, 3), REPLACE_TWOS)
    assert _values(_write(None, place, _rows(2, 2), REPLACE_TWOS)) == [2, 2]


def test_rows_that_came_since_the_plan_are_replaced(base: Snapshot, place: Location) -> None:
    _write(base, place, _rows(2, 5), APPEND)
    assert _values(_write(base, place, _rows(2), REPLACE_TWOS)) == [1, 2, 5]


def test_rows_of_other_columns_than_the_newest_version_has_are_refused(
    base: Snapshot, place: Location
) -> None:
    alter_columns(base, [ColumnChange(path="i", data_type=pa.int32())])
    options = replace(REPLACE_TWOS, patience=Retries(most=0))
    with pytest.raises(ConflictError):
        _write(base, place, _rows(2), options)


def test_a_condition_on_an_unknown_column_is_refused_before_rows_are_written(
    base: Snapshot, place: Location
) -> None:
    options = replace(OVERWRITE, replaces=RowsByFilter(condition="j = 2"))
    with pytest.raises(LanceTableError, match="j"):
        plan(base, place, _rows(2).schema, options)


def test_only_an_overwrite_replaces_the_rows_of_a_condition(
    base: Snapshot, place: Location
) -> None:
    options = replace(REPLACE_TWOS, mode=WriteMode.APPEND)
    with pytest.raises(InvalidRequestError, match='replace_where needs mode="overwrite"'):
        plan(base, place, _rows(2).schema, options)


def test_a_numbered_write_is_committed_once(base: Snapshot, place: Location) -> None:
    first = _write(base, place, _rows(3), ONE)
    again = _write(base, place, _rows(3), ONE)
    assert again.version == first.version
    assert _values(again) == [1, 2, 3]
    assert plan(first, place, _rows(3).schema, ONE).made_before == first


def test_only_an_overwrite_chooses_the_file_version(base: Snapshot, place: Location) -> None:
    asked, schema = FileVersion.V2_2, _rows(3).schema
    appended = plan(base, place, schema, APPEND)
    assert appended.task.file_version is base.manifest.data_version
    with pytest.raises(InvalidRequestError, match=r"format version 2\.1"):
        plan(base, place, schema, replace(APPEND, data_version=asked))
    options = replace(OVERWRITE, data_version=asked)
    assert plan(base, place, schema, options).task.file_version is asked


def test_maps_of_a_new_table_get_files_that_can_have_them(place: Location) -> None:
    data = pa.schema([("m", pa.map_(pa.string(), pa.int64()))])
    assert plan(None, place, data, WriteOptions()).task.file_version is FileVersion.V2_2


def test_other_columns_need_a_new_or_a_wider_schema(base: Snapshot, place: Location) -> None:
    data = _rows(3).append_column("j", pa.array([5]))
    with pytest.raises(SchemaMismatchError) as error:
        TablePlace(place).plan_write(base, data.schema, APPEND)
    assert (error.value.table, error.value.version) == (place.uri, 1)
    wider = _write(base, place, data, MERGE)
    assert _values(wider) == [1, 2, 3]
    assert plan(base, place, data.schema, OVERWRITE).task.schema == from_arrow(data.schema)


def test_an_append_of_nothing_makes_no_version_where_that_is_not_wanted(
    base: Snapshot, place: Location
) -> None:
    planned = plan(base, place, _rows().schema, replace(APPEND, commits_nothing=False))
    assert commit(planned, run(planned, _rows().to_reader())) is base


def test_types_that_only_newer_releases_read_are_appended_to_a_table_that_has_them(
    place: Location,
) -> None:
    schema = pa.schema([("i", pa.int64()), ("at", pa.timestamp("us", "+01:00"))])
    made = lancelake.LanceDataset.commit(place.uri, LanceOperation.Overwrite(schema, []))
    rows = pa.table({"i": [1], "at": [0]}).cast(schema)
    assert _values(_write(made._snapshot, place, rows, APPEND)) == [1]


def test_a_column_that_cannot_be_stored_is_not_added(base: Snapshot, place: Location) -> None:
    wider = _rows(3).append_column("at", pa.nulls(1, pa.timestamp("us", "+01:00")))
    with pytest.raises(UnsupportedError, match="column at"):
        plan(base, place, wider.schema, MERGE)
    assert lancelake.dataset(place.uri).latest_version == base.version
