"""Additional column files of a fragment replace the columns of earlier files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyroaring import BitMap

from lancelake.data.column_file import ColumnFile, sync_file, sync_names, with_file
from lancelake.errors import SchemaMismatchError, UnsupportedError
from lancelake.format.arrow_schema import from_arrow
from lancelake.format.fragment import DataFile, FileVersion, Fragment
from lancelake.format.ids import FieldId, FragmentId
from lancelake.storage.location import Location

VALUES = pa.table({"n": pa.array([1, 2, 3], pa.int64())})


def columns(root: Path, schema: pa.Schema, version: FileVersion = FileVersion.V2_1) -> ColumnFile:
    """Return how columns from field 7 on are written."""
    fields = from_arrow(schema, first_id=7)
    return ColumnFile(root=Location.parse(root), schema=fields, version=version)


def written(root: Path, rows: int, deleted: set[int]) -> DataFile | None:
    """Write the values for a fragment."""
    batches = VALUES.to_batches() if rows > len(deleted) else []
    return columns(root, VALUES.schema).write(
        batches, VALUES.schema, deleted=BitMap(deleted), physical_rows=rows
    )


def test_the_entry_names_fields_and_size(tmp_path: Path) -> None:
    file = written(tmp_path, 4, {1})
    assert file is not None
    path = tmp_path / "data" / file.path
    assert (file.fields, file.column_indices) == ((7,), (0,))
    assert file.file_size_bytes == path.stat().st_size
    sync_file(Location.parse(tmp_path), file)
    sync_names(Location.parse(tmp_path))


def test_a_fragment_without_live_rows_gets_no_file(tmp_path: Path) -> None:
    assert written(tmp_path, 1, {0}) is None
    assert not (tmp_path / "data").exists()


def test_values_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    file = columns(tmp_path, VALUES.schema)
    with pytest.raises(SchemaMismatchError):
        file.ensure_possible(pa.schema([("n", pa.string())]))


def test_columns_that_files_do_not_hold_are_refused(tmp_path: Path) -> None:
    schema = pa.schema([("m", pa.map_(pa.string(), pa.int8()))])
    with pytest.raises(UnsupportedError):
        columns(tmp_path, schema).ensure_possible(schema)


def entry(path: str, *fields: int) -> DataFile:
    """Return a file with these fields."""
    return DataFile(
        path=path,
        fields=tuple(FieldId(i) for i in fields),
        column_indices=tuple(range(len(fields))),
        file_major_version=2,
        file_minor_version=1,
    )


def test_what_a_file_brings_is_dead_in_those_before() -> None:
    before = Fragment(id=FragmentId(0), files=(entry("a", 0, 1), entry("b", 2)))
    after = with_file(before, entry("c", 1, 2))
    assert [(f.path, f.fields) for f in after.files] == [("a", (0, -2)), ("c", (1, 2))]
