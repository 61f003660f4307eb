"""Tests of the door to the core."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import lancelake as lance
from lancelake.clock import SystemIds
from lancelake.commit.snapshot import AtVersion
from lancelake.core.operation import on_line, on_main, operation
from lancelake.core.table import (
    Columns,
    Descriptions,
    History,
    Indices,
    Maintenance,
    Refs,
    Table,
    Wal,
)
from lancelake.core.table_place import TablePlace
from lancelake.errors import LanceTableError, TableNotFoundError
from lancelake.storage.location import Location, Session
from lancelake.table.index.request import IndexRequest
from lancelake.table.write import WriteOptions
from tests.support.set_clock import ManualClock

ROWS = pa.table({"a": [1, 2, 3]})
SUBJECTS = (Table, Columns, Descriptions, History, Indices, Maintenance, TablePlace, Refs, Wal)
METHODS = [
    pytest.param(method, id=f"{kind.__name__}.{name}")
    for kind in SUBJECTS
    for name, method in vars(kind).items()
    if isinstance(method, operation | on_line | on_main)
]


@pytest.fixture
def uri(tmp_path: Path) -> str:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(ROWS, uri)
    return uri


@pytest.fixture
def table(uri: str) -> Table:
    return TablePlace(Location.parse(uri)).open()


def test_an_operation_returns_the_version_it_made(table: Table) -> None:
    deleted = table.delete("a = 2")
    assert (deleted.rows, deleted.snapshot.version, table.snapshot.version) == (1, 2, 1)


def test_an_error_names_the_table_and_the_version(table: Table) -> None:
    with pytest.raises(LanceTableError) as error:
        table.delete("b = 2")
    assert (error.value.table, error.value.version) == (table.snapshot.location.uri, 1)


def test_an_error_of_a_subject_names_the_table_and_the_version(table: Table) -> None:
    with pytest.raises(LanceTableError) as error:
        table.columns.drop(["b"])
    assert (error.value.table, error.value.version) == (table.snapshot.location.uri, 1)


def test_a_version_opens_others(table: Table) -> None:
    table.delete("a = 2")
    assert table.at(AtVersion(2)).count_rows() == 2


def test_a_place_without_a_table_is_named(tmp_path: Path) -> None:
    location = Location.parse(tmp_path / "none.lance")
    with pytest.raises(TableNotFoundError) as error:
        TablePlace(location).latest_version()
    assert error.value.table == location.uri


def test_a_session_decides_time_and_ids_of_all_operations(tmp_path: Path) -> None:
    def history(name: str) -> list[object]:
        clock = ManualClock()
        session = Session(clock=clock, ids=SystemIds(seed=7), after=())
        place = TablePlace(Location.parse(tmp_path / name, session=session))
        place.write(ROWS.to_reader(), WriteOptions())
        clock.ns += 5_000_000_000
        table = place.open()
        table.delete("a = 2")
        request = IndexRequest(column="a", kind="BTREE")
        table.indices.create(request)
        table.refs.create_tag("first", AtVersion(1))
        made = place.open()
        entries = [(index.uuid, index.created_at_ms) for index in made.snapshot.indices]
        tag = made.refs.tag("first")
        return [made.snapshot.manifest.timestamp_ns, made.snapshot.transaction, entries, tag]

    assert history("one.lance") == history("two.lance")


@pytest.mark.parametrize("method", METHODS)
def test_a_method_has_a_function(method: operation[..., object]) -> None:
    assert callable(method.load())


def test_a_method_of_the_class_is_documented() -> None:
    assert Table.delete.__doc__


def test_an_operation_is_loaded_when_it_is_called() -> None:
    code = (
        "import sys, lancelake.core.table_place; "
        "sys.exit(','.join({'lancelake.table.rows', 'pyarrow', 'lance'} & set(sys.modules)) or 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
