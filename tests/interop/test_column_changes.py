"""Column changes compared with official Lance: random tables, random changes."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

import lancelake.pylance as lance
from lancelake.errors import LanceTableError
from lancelake.maintenance.check.finding import Severity
from lancelake.maintenance.check.run import check
from lancelake.storage.location import Location
from tests.strategies.column_changes import Now, column_changes
from tests.strategies.drawn_writes import write_drawn
from tests.strategies.histories import predicates
from tests.strategies.row_edits import Edit
from tests.strategies.tables import schemas, tables
from tests.strategies.target import Target
from tests.support.compare import assert_same_schema, assert_same_table
from tests.support.official import Official, OfficialError

TARGETS = [
    Target(release="14.0.2", file_version=version, misreads_when_filtered=False)
    for version in ("2.0", "2.1", "2.2")
]
LINEAGE = ["_row_created_at_version", "_row_last_updated_at_version"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two copies of a table: one is changed by an official release, one by us."""

    official: Official
    theirs: str
    ours: str
    target: Target

    def now(self) -> Now:
        """Return what the next change has to fit."""
        ds = lance.dataset(self.ours)
        return Now(schema=ds.schema, rows=ds.count_rows(), target=self.target)

    def change(self, edit: Edit, *, swapped: bool = False) -> None:
        """Change both copies; both must say the same, or both refuse."""
        theirs, ours = (self.ours, self.theirs) if swapped else (self.theirs, self.ours)
        try:
            expected = self.official.run(theirs, edit.statements, **edit.inputs)
        except OfficialError as error:
            before = lance.dataset(ours).version
            with pytest.raises((LanceTableError, TypeError)):
                edit.run(lance, ours)
            assert lance.dataset(ours).version == before
            event(f"refused: {error.kind}")
            return
        assert edit.run(lance, ours) == expected, edit.code

    def ensure_same(self) -> None:
        """Compare rows, schemas, field ids, files and lineage, and look for damage."""
        theirs, ours = (lance.dataset(uri) for uri in (self.theirs, self.ours))
        assert_same_schema(ours.schema, theirs.schema)
        assert_same_table(ours.to_table(), theirs.to_table())
        assert ours.version == theirs.version
        assert _ids(ours) == _ids(theirs)
        assert _files(ours) == _files(theirs)
        assert _operation(ours) == _operation(theirs)
        assert _lineage(ours) == _lineage(theirs)
        for uri in (self.theirs, self.ours):
            wrong = check(Location.parse(uri), data=True, versions="all")
            assert [f for f in wrong if f.severity is Severity.ERROR] == []


def _ids(ds: lance.LanceDataset) -> list[tuple[str, int, int]]:
    return [(f.name, f.id, f.parent_id) for f in ds._snapshot.manifest.schema.walk()]


def _files(ds: lance.LanceDataset) -> list[list[list[int]]]:
    return [[file.fields for file in f.data_files()] for f in ds.get_fragments()]


def _operation(ds: lance.LanceDataset) -> Any:
    """Return what led to the version, as far as it says something about columns."""
    found = ds.read_transaction(ds.version)
    operation = None if found is None else found.operation
    return type(operation).__name__, getattr(operation, "preserves_nullability", None)


def _lineage(ds: lance.LanceDataset) -> Any:
    return ds.to_table(columns=["key", *LINEAGE], with_row_id=True).to_pylist()


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """Return where the tables of this module go."""
    with tempfile.TemporaryDirectory(prefix="columns-") as name:
        yield Path(name)


def _drawn_pair(data: DataObject, target: Target, official: Official, folder: Path) -> Pair:
    schema = data.draw(schemas(target), label="schema")
    rows = data.draw(tables(schema, target), label="rows")
    gone = data.draw(st.one_of(st.none(), predicates(12)), label="deleted")
    base = folder / f"{len(list(folder.iterdir()))}"
    uri = str(base / "theirs")
    sizes = [3, 5, 1000] if target.splits_files else [1000]
    write_drawn(
        official,
        uri,
        rows,
        data_storage_version=target.file_version,
        enable_stable_row_ids=data.draw(st.booleans(), label="stable row ids"),
        max_rows_per_file=data.draw(st.sampled_from(sizes), label="rows per file"),
    )
    if gone is not None:
        official.delete(uri, gone)
    shutil.copytree(uri, base / "ours")
    return Pair(official=official, theirs=uri, ours=str(base / "ours"), target=target)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.file_version)
@given(data=st.data())
def test_a_series_of_changes_leads_to_the_same_table(
    data: DataObject, target: Target, official_14: Official, folder: Path
) -> None:
    pair = _drawn_pair(data, target, official_14, folder)
    for number in range(data.draw(st.integers(1, 4), label="changes")):
        edit = data.draw(column_changes(pair.now()), label=f"change {number}")
        pair.change(edit)
        pair.ensure_same()
    last = data.draw(column_changes(pair.now()), label="on the other's table")
    pair.change(last, swapped=True)
    pair.ensure_same()


@given(data=st.data())
def test_release_4_continues_after_our_changes(
    data: DataObject, official_4: Official, folder: Path
) -> None:
    target = Target(release="4.0.2", file_version="2.1", misreads_when_filtered=False)
    pair = _drawn_pair(data, target, official_4, folder)
    for number in range(data.draw(st.integers(1, 3), label="changes")):
        edit = data.draw(column_changes(pair.now()), label=f"change {number}")
        _changed_if_possible(edit, pair.ours)
    _ensure_same_plain_columns(official_4, pair.ours)
    official_4.delete(pair.ours, "key % 2 = 0")
    _ensure_same_plain_columns(official_4, pair.ours)


def _ensure_same_plain_columns(official: Official, uri: str) -> None:
    """Compare what both read; release 4 does not read all nested columns that it wrote itself."""
    ds = lance.dataset(uri)
    plain = [f.name for f in ds.schema if not pa.types.is_nested(f.type)]
    assert_same_table(ds.to_table(columns=plain), official.read(uri, columns=plain))


def _changed_if_possible(edit: Edit, uri: str) -> None:
    try:
        edit.run(lance, uri)
    except (LanceTableError, TypeError) as error:
        event(f"refused: {type(error).__name__}")


def test_rows_of_a_small_table_are_the_same_after_a_cast(
    official_14: Official, tmp_path: Path
) -> None:
    table = pa.table({"key": range(4), "a": pa.array([1, None, 3, 4], pa.int64())})
    official_14.write(tmp_path / "t", table)
    lance.dataset(tmp_path / "t").alter_columns({"path": "a", "data_type": pa.int8()})
    found = official_14.read(tmp_path / "t")
    assert found.column("a").type == pa.int8()
    assert found.column("a").to_pylist() == [1, None, 3, 4]
