"""Invalid requests raise a clear error and leave the table unchanged."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import (
    InvalidNameError,
    InvalidRequestError,
    LanceTableError,
    ObjectNotFoundError,
    SchemaMismatchError,
    VersionNotFoundError,
)
from lancelake.pylance.fragment import DataFile, FragmentMetadata

Op = lance.LanceOperation
ROWS = pa.table({"a": pa.array(range(4), pa.int64()), "b": pa.array(range(4), pa.int32())})
TWICE = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
INNER_TWICE = pa.table(
    {"s": pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], names=["x", "x"])}
)

Refused = Callable[[lance.LanceDataset], object]


@pytest.fixture
def table(tmp_path: Path) -> lance.LanceDataset:
    bases = [lance.DatasetBasePath(str(tmp_path / "x"), "x")]
    return lance.write_dataset(ROWS, tmp_path / "t", initial_bases=bases)


def _file(
    path: str = "gone.lance", fields: tuple[int, ...] = (0, 1), base_id: int | None = None
) -> DataFile:
    return DataFile(path, list(fields), list(range(len(fields))), 2, 1, 500, base_id)


def _fragment(*files: DataFile, number: int = 0) -> FragmentMetadata:
    return FragmentMetadata(number, list(files), 4)


def _replaced(field: int, *, fragment: int = 0) -> Any:
    return Op.DataReplacement([Op.DataReplacementGroup(fragment, _file(fields=(field,)))])


def _indexed(field: int) -> Any:
    return Op.CreateIndex([lance.Index(str(uuid.uuid4()), "i", [field], 1, {0}, 0)], [])


def _write(rows: pa.Table, mode: str = "append") -> Refused:
    return lambda table: lance.write_dataset(rows, table, mode=mode)


def _commit(operation: Any) -> Refused:
    return lambda table: lance.LanceDataset.commit(table, operation, table.version)


def _based(path: str, name: str | None, number: int | None = None) -> Refused:
    def add(table: lance.LanceDataset) -> object:
        place = str(Path(table.uri).parent / path)
        return table.add_bases([lance.DatasetBasePath(place, name, False, number)])

    return add


SCHEMAS: dict[str, tuple[Refused, type[LanceTableError], str]] = {
    "another type": (
        _write(pa.table({"a": ["x"], "b": pa.array([1], pa.int32())})),
        SchemaMismatchError,
        "column a has type int64 in the table and string in the data",
    ),
    "a column too many": (
        _write(ROWS.append_column("c", [[1, 2, 3, 4]])),
        SchemaMismatchError,
        "does not have: c",
    ),
    "a column twice, added": (_write(TWICE), SchemaMismatchError, "two columns a"),
    "a column twice, anew": (_write(TWICE, "overwrite"), InvalidNameError, "field name 'a'"),
    "a member twice": (_write(INNER_TWICE, "overwrite"), SchemaMismatchError, r"two columns s\.x"),
    "a member twice, added": (_write(INNER_TWICE), SchemaMismatchError, "does not have: s"),
}
FIELDS: dict[str, tuple[Refused, type[LanceTableError], str]] = {
    "append": (_commit(Op.Append([_fragment(_file(fields=(0, 77)))])), InvalidRequestError, "77"),
    "replacement": (_commit(_replaced(55)), InvalidRequestError, "field id 55"),
    "update": (_commit(Op.Update(fields_modified=[99])), InvalidRequestError, "field id 99"),
    "config": (
        _commit(Op.UpdateConfig(field_metadata_updates={99: Op.UpdateMap({"a": "1"})})),
        InvalidRequestError,
        "field id 99",
    ),
    "index": (_commit(_indexed(99)), InvalidRequestError, "field 99"),
    "projection": (
        _commit(Op.Project(pa.schema([*ROWS.schema, pa.field("c", pa.int8())]))),
        InvalidRequestError,
        "'c' has id 2",
    ),
    "projection, another type": (
        _commit(Op.Project(pa.schema([pa.field("a", pa.int8())]))),
        InvalidRequestError,
        "has type int64 in the table and int8",
    ),
    "overwrite": (
        _commit(Op.Overwrite(ROWS.schema, [_fragment(_file(fields=(0, 2)))])),
        InvalidRequestError,
        "field id 2",
    ),
}
FILES: dict[str, tuple[Refused, type[LanceTableError], str]] = {
    "append": (_commit(Op.Append([_fragment(_file())])), ObjectNotFoundError, r"gone\.lance"),
    "many": (
        _commit(Op.Append([_fragment(_file(f"{i}.lance")) for i in range(100)])),
        ObjectNotFoundError,
        "and 99 more",
    ),
    "some": (
        _commit(Op.Append([_fragment(_file(f"{i}.lance")) for i in range(3)])),
        ObjectNotFoundError,
        "and 2 more",
    ),
    "overwrite": (
        _commit(Op.Overwrite(ROWS.schema, [_fragment(_file())])),
        ObjectNotFoundError,
        r"gone\.lance",
    ),
    "update": (
        _commit(Op.Update(new_fragments=[_fragment(_file())])),
        ObjectNotFoundError,
        r"gone\.lance",
    ),
    "merge": (
        lambda t: _commit(Op.Merge([_fragment(_file())], t.lance_schema))(t),
        ObjectNotFoundError,
        r"gone\.lance",
    ),
    "replacement": (_commit(_replaced(0)), ObjectNotFoundError, r"gone\.lance"),
    "on a base": (
        _commit(Op.Append([_fragment(_file(base_id=1))])),
        ObjectNotFoundError,
        r"x/gone\.lance",
    ),
    "on no base": (
        _commit(Op.Append([_fragment(_file(base_id=9))])),
        InvalidRequestError,
        "base path 9, which is not declared",
    ),
    "outside": (
        _commit(Op.Append([_fragment(_file("../../x.lance"))])),
        InvalidRequestError,
        "leaves the table",
    ),
    "restored version": (_commit(Op.Restore(99)), VersionNotFoundError, "99"),
}
NAMES: dict[str, tuple[Refused, type[LanceTableError], str]] = {
    f"{kind} {name!r}": (call, InvalidNameError, "not a valid name")
    for name in ("", "a b", "a..b", "a.lock", "a\\b", "a?")
    for kind, call in (
        ("tag", lambda table, name=name: table.tags.create(name, 1)),
        ("branch", lambda table, name=name: table.create_branch(name)),
    )
} | {
    "tag with a slash": (lambda t: t.tags.create("a/b", 1), InvalidNameError, "letters, digits"),
    "tag with a dot": (lambda t: t.tags.create(".a", 1), InvalidNameError, "start or end"),
    "branch main": (lambda t: t.create_branch("main"), InvalidNameError, "'main'"),
    "branch above": (lambda t: t.create_branch("a/../b"), InvalidNameError, "not a valid name"),
    "branch with a gap": (lambda t: t.create_branch("a//b"), InvalidNameError, "empty segments"),
}
BASES: dict[str, tuple[Refused, type[LanceTableError], str]] = {
    "name": (_based("y", "x"), InvalidRequestError, "'x' is taken"),
    "path": (_based("x", "y"), InvalidRequestError, "already registered"),
    "id": (_based("y", "y", 1), InvalidRequestError, "id 1 is taken"),
}
EVERY = {
    f"{group}: {name}": case
    for group, cases in {
        "schema": SCHEMAS,
        "fields": FIELDS,
        "files": FILES,
        "names": NAMES,
        "bases": BASES,
    }.items()
    for name, case in cases.items()
}


@pytest.mark.parametrize("name", EVERY)
def test_a_bad_request_is_refused_and_leaves_the_table_as_it_was(
    table: lance.LanceDataset, name: str
) -> None:
    refused, kind, problem = EVERY[name]
    with pytest.raises(kind, match=problem):
        refused(table)
    opened = lance.dataset(table.uri)
    assert (opened.version, opened.tags.list(), opened.branches.list()) == (1, {}, {})
    assert opened.to_table() == ROWS
    opened.validate()


@pytest.mark.parametrize(
    "bases",
    [[("/x", "x"), ("/y", "x")], [("/x", "x"), ("/x/", "y")], [("/x", "x"), ("file:///x", "y")]],
)
def test_a_table_with_colliding_bases_is_not_created(
    tmp_path: Path, bases: list[tuple[str, str]]
) -> None:
    declared = [lance.DatasetBasePath(path, name) for path, name in bases]
    with pytest.raises(InvalidRequestError, match=r"taken|already registered"):
        lance.write_dataset(ROWS, tmp_path, initial_bases=declared)
    assert not (tmp_path / "_versions").exists()


def test_a_table_with_a_column_twice_is_not_created(tmp_path: Path) -> None:
    with pytest.raises(InvalidNameError, match="Duplicate field name 'a'"):
        lance.write_dataset(TWICE, tmp_path)
    assert not (tmp_path / "_versions").exists()


def test_files_that_are_there_are_committed_without_a_word(table: lance.LanceDataset) -> None:
    made: Any = lance.LanceFragment.create(table.uri, ROWS)
    many = [made, *(lance.LanceFragment.create(table.uri, ROWS) for _ in range(2))]
    assert lance.LanceDataset.commit(table, Op.Append(many), table.version).count_rows() == 16
