"""Writes that are planned, done by others and committed afterwards."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lancelake
from lancelake.clock import SystemIds
from lancelake.commit.snapshot import Snapshot
from lancelake.data.fragment_writer import write_fragments
from lancelake.engine.local import LocalEngine
from lancelake.errors import InvalidRequestError, SchemaMismatchError, UnsupportedError
from lancelake.expr.predicate import predicate
from lancelake.format.arrow_schema import from_arrow
from lancelake.format.file_version import FileVersion
from lancelake.pylance import LanceOperation
from lancelake.storage.location import Location
from lancelake.table.idempotent import OnceOnly
from lancelake.table.planned_write import (
    PlanOptions,
    RowsByFilter,
    WritePlan,
    commit_write,
    made_by,
    plan_rows,
)

ONE = PlanOptions(once=OnceOnly(app_id="job", version=1))


@pytest.fixture
def place(tmp_path: Path) -> Location:
    return Location.parse(tmp_path / "t.lance")


def _written(plan: WritePlan, rows: pa.Table) -> Snapshot:
    fragments = write_fragments(plan.task, rows.to_reader(), ids=SystemIds())
    return commit_write(plan, fragments)


def _write(
    base: Snapshot | None, place: Location, rows: pa.Table, options: PlanOptions
) -> Snapshot:
    return _written(plan_rows(base, place, rows.schema, options), rows)


def _values(made: Snapshot, column: str = "i") -> list[int]:
    dataset = lancelake.dataset(made.location.uri, version=made.version)
    return sorted(dataset.to_table()[column].to_pylist())


def _rows(*values: int) -> pa.Table:
    return pa.table({"i": pa.array(values, pa.int64())})


@pytest.fixture
def base(place: Location) -> Snapshot:
    return _write(None, place, _rows(1, 2), PlanOptions())


def test_a_first_write_makes_the_table(base: Snapshot) -> None:
    assert (base.version, _values(base)) == (1, [1, 2])


def test_rows_are_appended_or_take_the_place_of_all(base: Snapshot, place: Location) -> None:
    more = _write(base, place, _rows(3), PlanOptions())
    assert _values(more) == [1, 2, 3]
    assert _values(_write(more, place, _rows(4), PlanOptions(overwrites=True))) == [4]


def test_rows_that_a_condition_finds_are_replaced(base: Snapshot, place: Location) -> None:
    condition = predicate("i = 2", base.manifest.schema, _rows().schema, ())
    rows = RowsByFilter(condition=condition, engine=LocalEngine())
    made = _write(base, place, _rows(2, 2), PlanOptions(overwrites=True, replaces=rows))
    assert _values(made) == [1, 2, 2]


def test_rows_that_the_condition_does_not_find_replace_none(
    base: Snapshot, place: Location
) -> None:
    condition = predicate("i = 2", base.manifest.schema, _rows().schema, ())
    rows = RowsByFilter(condition=condition, engine=LocalEngine())
    with pytest.raises(InvalidRequestError, match="the condition of the overwrite: i = 2"):
        _write(base, place, _rows(2, 3), PlanOptions(overwrites=True, replaces=rows))
    assert _values(lancelake.dataset(place.uri)._snapshot) == [1, 2]


def test_a_numbered_write_lands_once(base: Snapshot, place: Location) -> None:
    first = _write(base, place, _rows(3), ONE)
    again = _write(base, place, _rows(3), ONE)
    assert again.version == first.version
    assert _values(again) == [1, 2, 3]
    assert made_by(first, ONE.once) is not None
    assert plan_rows(first, place, _rows(3).schema, ONE).made_before is not None


def test_only_an_overwrite_chooses_the_file_version(base: Snapshot, place: Location) -> None:
    asked, schema = FileVersion.V2_2, _rows(3).schema
    appended = plan_rows(base, place, schema, PlanOptions())
    assert appended.task.file_version is base.manifest.data_version
    assert appended.choices.data_version is None
    with pytest.raises(InvalidRequestError, match=r"format version 2\.1"):
        plan_rows(base, place, schema, PlanOptions(data_version=asked))
    options = PlanOptions(data_version=asked, overwrites=True)
    assert plan_rows(base, place, schema, options).task.file_version is asked


def test_maps_of_a_new_table_get_files_that_can_have_them(place: Location) -> None:
    data = pa.schema([("m", pa.map_(pa.string(), pa.int64()))])
    assert plan_rows(None, place, data, PlanOptions()).task.file_version is FileVersion.V2_2


def test_other_columns_need_a_new_or_a_wider_schema(base: Snapshot, place: Location) -> None:
    data = _rows(3).append_column("j", pa.array([5]))
    with pytest.raises(SchemaMismatchError) as error:
        plan_rows(base, place, data.schema, PlanOptions())
    assert (error.value.table, error.value.version) == (place.uri, 1)
    wider = _write(base, place, data, PlanOptions(merges_schema=True))
    assert _values(wider) == [1, 2, 3]
    anew = PlanOptions(overwrites=True, replaces_schema=True)
    assert plan_rows(base, place, data.schema, anew).task.schema == from_arrow(data.schema)


def test_an_append_of_nothing_makes_no_version(base: Snapshot, place: Location) -> None:
    plan = plan_rows(base, place, _rows().schema, PlanOptions())
    assert commit_write(plan, ()) is base


def test_types_that_only_newer_releases_read_are_appended_to_a_table_that_has_them(
    place: Location,
) -> None:
    schema = pa.schema([("i", pa.int64()), ("at", pa.timestamp("us", "+01:00"))])
    made = lancelake.LanceDataset.commit(place.uri, LanceOperation.Overwrite(schema, []))
    rows = pa.table({"i": [1], "at": [0]}).cast(schema)
    assert _values(_write(made._snapshot, place, rows, PlanOptions())) == [1]


def test_a_column_that_cannot_be_stored_is_not_added(base: Snapshot, place: Location) -> None:
    wider = _rows(3).append_column("at", pa.nulls(1, pa.timestamp("us", "+01:00")))
    with pytest.raises(UnsupportedError, match="column at"):
        plan_rows(base, place, wider.schema, PlanOptions(merges_schema=True))
    assert lancelake.dataset(place.uri).latest_version == base.version
