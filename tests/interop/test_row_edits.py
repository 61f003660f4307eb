"""Deletes, updates and merges compared with official Lance: random tables, random edits."""

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
from tests.strategies.drawn_writes import write_drawn
from tests.strategies.histories import predicates
from tests.strategies.row_edits import Edit, edits
from tests.strategies.tables import schemas, tables
from tests.strategies.target import Target
from tests.support.compare import assert_same_table
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
    is_stable: bool

    def change(self, edit: Edit, *, swapped: bool = False) -> bool:
        """Change both copies; both must say the same, or both refuse."""
        theirs, ours = (self.ours, self.theirs) if swapped else (self.theirs, self.ours)
        try:
            expected = self.official.run(theirs, edit.statements, **edit.inputs)
        except OfficialError as error:
            before = lance.dataset(ours).version
            with pytest.raises(LanceTableError):
                edit.run(lance, ours)
            assert lance.dataset(ours).version == before
            event(f"refused: {error.kind}")
            return False
        found = edit.run(lance, ours)
        assert found == _counts(expected), edit.code
        return True

    def ensure_same(self) -> None:
        """Compare rows, ids, lineage and deletion files, and look for damage."""
        theirs, ours = (lance.dataset(uri) for uri in (self.theirs, self.ours))
        expected, found = _rows(theirs), _rows(ours)
        assert_same_table(found, expected)
        assert ours.version == theirs.version
        if not _has_rewritten_columns(ours) and not _has_rewritten_columns(theirs):
            assert _deletions(ours) == _deletions(theirs)
        assert _facts(ours, is_stable=self.is_stable) == _facts(theirs, is_stable=self.is_stable)
        for uri in (self.theirs, self.ours):
            self._ensure_read_by_key(uri)
            wrong = check(Location.parse(uri), data=True, versions="all")
            assert [f for f in wrong if f.severity is Severity.ERROR] == []

    def _ensure_read_by_key(self, uri: str) -> None:
        """Official scans, which use indices, find the rows that we find without them."""
        for where in ("key >= 5", "key % 3 = 1", "key IN (1, 4, 9, 104)"):
            found = self.official.read(uri, filter=where, columns=["key"])["key"].to_pylist()
            expected = lance.dataset(uri).to_table(filter=where, columns=["key"])["key"].to_pylist()
            assert sorted(found) == sorted(expected), where

    def ensure_older_release_agrees(self, older: Official) -> None:
        """What an older release makes of the newer one's table it must make of ours."""
        try:
            expected = older.run(self.theirs, VALIDATED)
        except OfficialError:
            event("no table for the older release")
            return
        assert sorted(older.run(self.ours, VALIDATED)) == sorted(expected)


# Release 4.0.2 calls files out of order whose first column was rewritten, its own as well.
VALIDATED = """
ds = lance.dataset(uri)
if not any(-2 in file.fields for fragment in ds.get_fragments() for file in fragment.data_files()):
    ds.validate()
result = ds.to_table(columns=["key"])["key"].to_pylist()
"""


def _counts(result: Any) -> Any:
    if result is None:
        return None
    names = ("num_inserted_rows", "num_updated_rows", "num_deleted_rows", "num_rows_updated")
    return {name: result[name] for name in names if name in result}


def _rows(ds: lance.LanceDataset) -> pa.Table:
    return ds.to_table().sort_by("key")


def _deletions(ds: lance.LanceDataset) -> list[tuple[int, int]]:
    found = [(f.physical_rows, f.num_deletions) for f in ds.get_fragments()]
    return sorted(found)


def _has_rewritten_columns(ds: lance.LanceDataset) -> bool:
    return any(len(f.data_files()) > 1 for f in ds.get_fragments())


def _facts(ds: lance.LanceDataset, *, is_stable: bool) -> Any:
    """Return by key what stays with a row; new rows may get their ids in any order."""
    if not is_stable:
        return None
    table = ds.to_table(columns=["key", *LINEAGE], with_row_id=True).sort_by("key")
    rows = table.to_pylist()
    made = max((row[LINEAGE[0]] for row in rows), default=0)
    kept = {row["key"]: row["_rowid"] for row in rows if row[LINEAGE[0]] < made}
    versions = [(row["key"], row[LINEAGE[0]], row[LINEAGE[1]]) for row in rows]
    return versions, kept, sorted(row["_rowid"] for row in rows)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """Return where the tables of this module go."""
    with tempfile.TemporaryDirectory(prefix="edits-") as name:
        yield Path(name)


def _drawn_pair(data: DataObject, target: Target, official: Official, folder: Path) -> Any:
    schema = data.draw(schemas(target), label="schema")
    is_stable = data.draw(st.booleans(), label="stable row ids")
    first = data.draw(tables(schema, target, rows=st.integers(1, 12)), label="rows")
    second = data.draw(tables(schema, target, first_key=first.num_rows), label="more rows")
    gone = data.draw(st.one_of(st.none(), predicates(12)), label="deleted")
    base = folder / f"{len(list(folder.iterdir()))}"
    uri = str(base / "theirs")
    write_drawn(
        official,
        uri,
        first,
        data_storage_version=target.file_version,
        enable_stable_row_ids=is_stable,
        max_rows_per_file=data.draw(st.sampled_from([3, 5, 1000]), label="rows per file"),
    )
    if second.num_rows:
        official.append(uri, second)
    if gone is not None:
        official.delete(uri, gone)
    kind = data.draw(st.sampled_from([None, None, "BTREE", "BITMAP"]), label="index on the key")
    if kind is not None:
        official.create_scalar_index(uri, "key", kind)
    shutil.copytree(uri, base / "ours")
    pair = Pair(official=official, theirs=uri, ours=str(base / "ours"), is_stable=is_stable)
    return pair, schema


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.file_version)
@given(data=st.data())
def test_a_series_of_edits_leads_to_the_same_table(
    data: DataObject, target: Target, official_14: Official, official_4: Official, folder: Path
) -> None:
    pair, schema = _drawn_pair(data, target, official_14, folder)
    for number in range(data.draw(st.integers(1, 4), label="edits")):
        edit = data.draw(edits(schema, target), label=f"edit {number}")
        pair.change(edit)
        pair.ensure_same()
    last = data.draw(edits(schema, target), label="on the other's table")
    pair.change(last, swapped=True)
    pair.ensure_same()
    pair.ensure_older_release_agrees(official_4)
