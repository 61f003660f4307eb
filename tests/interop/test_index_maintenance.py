"""Indices built by one writer and changed by another answer right in every release."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.maintenance.check.finding import Severity
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest
from tests.support.official import Official, OfficialPool
from tests.support.scalar_index_tables import rows
from tests.support.sound_tables import findings

COLUMNS = {
    "BTREE": "i",
    "BITMAP": "k",
    "LABEL_LIST": "l",
    "ZONEMAP": "d",
    "BLOOMFILTER": "m",
    "NGRAM": "s",
}
# Release 4.0.2 loses rows of tables with stable row ids through these.
OF_ZONES = ("ZONEMAP", "BLOOMFILTER")
FILTERS = {
    "BTREE": ("i = 7", "i between -300 and 250", "not (i < 400)", "i is null"),
    "BITMAP": ("k = 1", "k <> 1", "k is null", "not (k in (1, 2))"),
    "LABEL_LIST": ("array_has(l, 'x')", "not array_has_any(l, ['y', 'new'])"),
    "ZONEMAP": ("d < DATE '1969-08-01'", "d is null"),
    "BLOOMFILTER": ("m = 7", "m in (1, 2, 900)"),
    "NGRAM": ("contains(s, 'abc')",),
}
OLD = "4.0.2"
WRITERS = ("ours", OLD, "14.0.2")
READERS = (OLD, "14.0.2")
ASK = """
ds = lance.dataset(uri)
wrong, scanned = [], []
for text in texts:
    scan = ds.to_table(filter=text, columns=["n"], use_scalar_index=False)["n"].to_pylist()
    found = ds.to_table(filter=text, columns=["n"])["n"].to_pylist()
    if sorted(scan) != sorted(found):
        wrong.append(f"{text}: {len(found)} rows, not {len(scan)}")
    if "ScalarIndexQuery" not in ds.scanner(filter=text, columns=["n"]).explain_plan():
        scanned.append(text)
result = wrong, scanned
"""


class Writer:
    """Changes a table, by Lancelake or by a release."""

    def __init__(self, name: str, officials: OfficialPool) -> None:
        self._official: Official | None = None if name == "ours" else officials(name)

    def run(self, uri: str, code: str) -> None:
        """Run a line of Python."""
        if self._official is not None:
            self._official.run(uri, f"ds = lance.dataset(uri)\n{code}\nresult = None")
        else:
            exec(code, {"ds": lance.dataset(uri)})  # a line of this module

    def append(self, uri: str, table: pa.Table) -> None:
        """Append rows."""
        if self._official is not None:
            self._official.append(uri, table)
        else:
            lance.write_dataset(table, uri, mode="append")

    def merge(self, uri: str, table: pa.Table) -> None:
        """Update the rows that exist, and insert the others."""
        if self._official is not None:
            self._official.merge_insert(uri, table, on=["n"])
        else:
            merge = lance.dataset(uri).merge_insert("n").when_matched_update_all()
            merge.when_not_matched_insert_all().execute(table)


COVERED = ("append", "optimize", "optimize again")
"""Steps after which indices cover rows."""
UPDATES = {"i": "i + 1", "k": "3", "m": "m + 1", "s": "'abcabc'", "l": "make_array('new')"}
STEPS: Mapping[str, Callable[[Writer, str], None]] = {
    "append": lambda by, uri: by.append(uri, data(300, 1, 900)),
    "delete": lambda by, uri: by.run(uri, "ds.delete('n % 11 = 3')"),
    "update": lambda by, uri: by.run(uri, f"ds.update({UPDATES!r}, 'n % 13 = 1')"),
    "merge": lambda by, uri: by.merge(uri, data(100, 2, 1150)),
    "compact": lambda by, uri: by.run(
        uri, "ds.optimize.compact_files(target_rows_per_fragment=700)"
    ),
    "optimize": lambda by, uri: by.run(uri, "ds.optimize.optimize_indices()"),
    "compact all": lambda by, uri: by.run(uri, "ds.optimize.compact_files()"),
    "optimize again": lambda by, uri: by.run(uri, "ds.optimize.optimize_indices()"),
}


def data(count: int, seed: int, first: int = 0) -> pa.Table:
    found = rows(count, seed)
    numbers = [first + n for n in range(count)]
    found = found.set_column(0, "n", [numbers]).drop_columns(["f", "b", "t", "g"])
    return found.append_column("m", [[n % 50 for n in numbers]])


def wrong_answers_of_ours(uri: str, kinds: tuple[str, ...]) -> list[str]:
    """Return the conditions that our indices answer otherwise than a scan."""
    table = lance.dataset(uri)

    def found(text: str, *, by_index: bool) -> list[int]:
        answer = table.to_table(["n"], text, use_scalar_index=by_index)
        return sorted(answer["n"].to_pylist())

    return [t for t in texts(kinds) if found(t, by_index=True) != found(t, by_index=False)]


def unused_by_ours(uri: str, kinds: tuple[str, ...]) -> list[str]:
    """Return the conditions about which we ask no index."""
    snapshot = lance.dataset(uri)._snapshot
    requests = {
        text: ScanRequest(columns=("n",), filter=text, fast_search=True) for text in texts(kinds)
    }
    return [text for text, asked in requests.items() if plan(snapshot, asked).index_search is None]


def scanned_by(release: str, *, stable: bool) -> list[str]:
    """Return the conditions for which a release does not use our indices.

    Release 4.0.2 does not read a BTREE of row addresses in a table with stable row ids.
    """
    return list(FILTERS["BTREE"]) if stable and release == OLD else []


def texts(kinds: tuple[str, ...]) -> list[str]:
    return [text for kind in kinds for text in FILTERS[kind]]


# Release 4.0.2 leaves old values of updated rows in indices of stable row ids when it merges them,
# and drops a BTREE of 14.0.2.
CHANGES = [
    (by, stable) for by in WRITERS for stable in (False, True) if (by, stable) != (OLD, True)
]


@pytest.mark.parametrize(("changer", "stable"), CHANGES)
@pytest.mark.parametrize("builder", WRITERS)
def test_every_release_answers_by_an_index_after_every_change(
    builder: str, changer: str, stable: bool, officials: OfficialPool, tmp_table: str
) -> None:
    kinds = tuple(kind for kind in COLUMNS if not (stable and kind in OF_ZONES))
    officials("4.0.2").write(
        tmp_table,
        data(900, 0),
        max_rows_per_file=300,
        data_storage_version="2.0",
        enable_stable_row_ids=stable,
    )
    build, change = Writer(builder, officials), Writer(changer, officials)
    for kind in kinds:
        build.run(tmp_table, f"ds.create_scalar_index({COLUMNS[kind]!r}, {kind!r})")
    for step, make in STEPS.items():
        make(change, tmp_table)
        for release in READERS:
            wrong, scanned = officials(release).run(tmp_table, ASK, texts=texts(kinds))
            assert wrong == [], (step, release)
            if step in COVERED and not (stable and release == OLD):
                assert scanned == [], (step, release)
        assert wrong_answers_of_ours(tmp_table, kinds) == [], step
        if step in COVERED:
            assert unused_by_ours(tmp_table, kinds) == [], step
        assert [f for f in findings(Path(tmp_table)) if f.severity is Severity.ERROR] == []


@pytest.mark.parametrize("builder", WRITERS)
def test_we_answer_right_by_indices_of_stable_ids_that_the_old_release_changed(
    builder: str, officials: OfficialPool, tmp_table: str
) -> None:
    """Release 4.0.2 leaves old values of updated rows in them, and extends those of zones."""
    kinds = tuple(COLUMNS) if builder != "ours" else tuple(k for k in COLUMNS if k not in OF_ZONES)
    args = {"max_rows_per_file": 300, "data_storage_version": "2.0"}
    officials(OLD).write(tmp_table, data(900, 0), enable_stable_row_ids=True, **args)
    build, change = Writer(builder, officials), Writer(OLD, officials)
    for kind in kinds:
        build.run(tmp_table, f"ds.create_scalar_index({COLUMNS[kind]!r}, {kind!r})")
    for step, make in STEPS.items():
        make(change, tmp_table)
        assert wrong_answers_of_ours(tmp_table, kinds) == [], step


@pytest.mark.parametrize("release", READERS)
def test_a_refresh_of_ours_removes_old_values_that_the_old_release_left(
    release: str, officials: OfficialPool, tmp_table: str
) -> None:
    args = {"max_rows_per_file": 300, "data_storage_version": "2.0"}
    officials(OLD).write(tmp_table, data(900, 0), enable_stable_row_ids=True, **args)
    old = Writer(OLD, officials)
    old.run(tmp_table, "ds.create_scalar_index('k', 'BITMAP')")
    for step in ("update", "compact", "optimize"):
        STEPS[step](old, tmp_table)
    wrong, _ = officials(release).run(tmp_table, ASK, texts=texts(("BITMAP",)))
    assert wrong
    ours = Writer("ours", officials)
    ours.append(tmp_table, data(10, 5, 5000))
    ours.run(tmp_table, "ds.optimize.optimize_indices()")
    assert officials(release).run(tmp_table, ASK, texts=texts(("BITMAP",))) == [[], []]


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
@pytest.mark.parametrize("builder", READERS)
def test_statistics_are_those_of_the_release(
    builder: str, stable: bool, officials: OfficialPool, tmp_table: str
) -> None:
    kinds = tuple(kind for kind in COLUMNS if not (stable and kind in OF_ZONES))
    official = officials(builder)
    official.write(tmp_table, data(900, 0), max_rows_per_file=300, enable_stable_row_ids=stable)
    for kind in kinds:
        official.create_scalar_index(tmp_table, COLUMNS[kind], kind)
    official.append(tmp_table, data(300, 1, 900))
    official.delete(tmp_table, "n % 11 = 3")
    for kind in kinds:
        name = f"{COLUMNS[kind]}_idx"
        code = f"result = lance.dataset(uri).stats.index_stats({name!r})"
        theirs = officials("14.0.2").run(tmp_table, code)
        assert lance.dataset(tmp_table).index_statistics(name) == theirs


DEFER = "ds.optimize.compact_files(target_rows_per_fragment=1_000_000, defer_index_remap=True)"


@pytest.mark.parametrize("release", READERS)
def test_a_deferred_compaction_of_ours_loses_no_row(
    release: str, officials: OfficialPool, tmp_table: str
) -> None:
    """Release 4.0.2 does not follow recorded moves in zone maps."""
    ours, kinds = Writer("ours", officials), tuple(COLUMNS)
    lance.write_dataset(data(900, 0), tmp_table, max_rows_per_file=300, data_storage_version="2.0")
    for kind in kinds:
        ours.run(tmp_table, f"ds.create_scalar_index({COLUMNS[kind]!r}, {kind!r})")
    for code in ("ds.delete('n % 11 = 3')", DEFER, "ds.optimize.optimize_indices()"):
        ours.run(tmp_table, code)
        wrong, _ = officials(release).run(tmp_table, ASK, texts=texts(kinds))
        assert wrong == [], code


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
@pytest.mark.parametrize("release", READERS)
def test_indices_are_kept_by_restore_branch_and_clone(
    release: str, stable: bool, officials: OfficialPool, tmp_table: str
) -> None:
    kinds = tuple(kind for kind in COLUMNS if not (stable and kind in OF_ZONES))
    ds = lance.write_dataset(
        data(900, 0), tmp_table, max_rows_per_file=300, enable_stable_row_ids=stable
    )
    for kind in kinds:
        ds.create_scalar_index(COLUMNS[kind], kind)
    indexed = ds.version
    ds.create_branch("side")
    ds.shallow_clone(f"{tmp_table}-shallow", indexed)
    ds.deep_clone(f"{tmp_table}-deep", indexed)
    ds.drop_index("i_idx")
    ds.insert(data(100, 1, 900))
    lance.dataset(tmp_table, version=indexed).restore()
    side = f"{tmp_table}/tree/side"
    for uri in (tmp_table, side, f"{tmp_table}-shallow", f"{tmp_table}-deep"):
        found = lance.dataset(uri)
        assert {i.name for i in found.describe_indices()} == {f"{COLUMNS[k]}_idx" for k in kinds}
        found.insert(data(50, 2, 2000))
        found.optimize.optimize_indices()
        assert found.index_statistics("i_idx")["num_unindexed_rows"] == 0
        wrong, scanned = officials(release).run(uri, ASK, texts=texts(kinds))
        assert (wrong, scanned) == ([], scanned_by(release, stable=stable)), uri


def test_cleanup_removes_the_files_of_indices_that_no_version_names(tmp_table: str) -> None:
    ds = lance.write_dataset(data(900, 0), tmp_table, max_rows_per_file=300)
    ds.create_scalar_index("i", "BTREE")
    ds.create_scalar_index("i", "BTREE")
    ds.create_index_uncommitted("k", "BITMAP", fragment_ids=[0])
    folders = Path(tmp_table, "_indices")
    assert len({path.parent for path in folders.glob("*/*")}) == 3
    ds.cleanup_old_versions(timedelta(0), delete_unverified=True)
    kept = {segment.uuid for index in ds.describe_indices() for segment in index.segments}
    assert {path.parent.name for path in folders.glob("*/*")} == kept


def test_entries_that_an_old_release_loses_are_found_by_a_scan(
    tmp_path: Path, officials: OfficialPool
) -> None:
    uri = str(tmp_path / "t.lance")
    table = pa.table({"n": range(100), "v": range(100)})
    ds = lance.write_dataset(table, uri, enable_stable_row_ids=True)
    ds.create_scalar_index("n", "BTREE")
    ds.update({"v": "v + 1"}, where="n IN (3, 7)")
    old = Writer(OLD, officials)
    old.run(uri, "ds.optimize.compact_files()")
    old.append(uri, pa.table({"n": [400], "v": [1]}))
    old.run(uri, "ds.optimize.optimize_indices()")
    found = lance.dataset(uri)
    assert sorted(found.to_table(["n"], "n IN (3, 4, 5, 6, 7)")["n"].to_pylist()) == [3, 4, 5, 6, 7]
    assert found.count_rows("n < 9") == 9


COMPACT_BRANCH = """
b = ds.create_branch("side")
b.delete("n % 11 = 3")
b.optimize.compact_files()
"""


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
@pytest.mark.parametrize("writer", WRITERS)
def test_indices_of_a_branch_answer_after_its_compaction(
    writer: str, stable: bool, officials: OfficialPool, tmp_table: str
) -> None:
    """Official releases record a rewritten segment as one of the source."""
    kinds = tuple(kind for kind in COLUMNS if kind not in OF_ZONES)
    by = Writer(writer, officials)
    officials(OLD).write(
        tmp_table, data(900, 0), max_rows_per_file=300, enable_stable_row_ids=stable
    )
    for kind in kinds:
        by.run(tmp_table, f"ds.create_scalar_index({COLUMNS[kind]!r}, {kind!r})")
    by.run(tmp_table, COMPACT_BRANCH)
    side = f"{tmp_table}/tree/side"
    assert wrong_answers_of_ours(side, kinds) == []
    assert unused_by_ours(side, kinds) == []
    assert [f for f in findings(Path(side)) if f.severity is Severity.ERROR] == []
    if writer == "ours":
        for release in READERS:
            found = officials(release).run(side, ASK, texts=texts(kinds))
            assert found == [[], scanned_by(release, stable=stable)], release
