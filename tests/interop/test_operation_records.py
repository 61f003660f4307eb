"""What our commits record about themselves is kept and ignored by official releases."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import lancelake
from lancelake.table.history import change, history
from lancelake.table.operation_record import record_of
from tests.support.official import Official

ROWS = pa.table({"id": [1, 2, 3], "n": [1, 2, 3]})
CHANGE = """
found = lance.dataset(uri).read_transaction(2).transaction_properties
lance.write_dataset(pa.table({"id": [9], "n": [9]}), uri, mode="append")
table = lance.dataset(uri)
table.delete("id = 9")
merge = table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
merge.execute(pa.table({"id": [1], "n": [5]}))
lance.dataset(uri).optimize.compact_files()
result = [found["lancelake.operation"], lance.dataset(uri).count_rows()]
"""


def test_releases_carry_what_commits_record(official: Official, tmp_path: Path) -> None:
    uri = tmp_path / "t.lance"
    table = lancelake.write_dataset(ROWS, uri)
    table.merge_insert("id").when_matched_update_all().execute(ROWS.slice(1, 1))
    assert official.run(uri, CHANGE) == ["MERGE", 3]
    records = [record_of(s.transaction) for s in history(table._snapshot.location)]
    # Official releases record a merge by this key like an update.
    names = ["WRITE", "MERGE", "WRITE", "DELETE", "UPDATE", "RESERVE FRAGMENTS", "OPTIMIZE"]
    assert [record.name for record in records] == names
    assert [record.user is None for record in records] == [False] * 2 + [True] * 5


def test_an_overwrite_of_a_release_removes_and_adds_everything(
    official: Official, tmp_path: Path
) -> None:
    uri = tmp_path / "t.lance"
    official.write(uri, pa.table({"x": [1, 2, 3]}))
    official.overwrite(uri, pa.table({"x": [1, 2]}))
    first, newest = history(lancelake.dataset(uri)._snapshot.location)
    assert newest.transaction is not None
    delta = change(first, newest, newest.transaction.operation)
    counts = (delta.rows_added, delta.rows_removed)
    assert (*counts, delta.fragments_added, delta.fragments_removed) == (2, 3, 1, 1)
