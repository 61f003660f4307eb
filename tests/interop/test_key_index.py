"""Releases answer right by a key index whose segments were added after upserts."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.commit.snapshot import Latest, open_snapshot
from lancelake.maintenance.optimize import optimize
from lancelake.storage.location import Location
from tests.support.official import Official
from tests.support.sound_tables import findings

KEY = {b"lance-schema:unenforced-primary-key": b"true"}
SCHEMA = pa.schema(
    [pa.field("id", pa.int64(), nullable=False, metadata=KEY), pa.field("v", pa.int64())]
)
ROWS = 3000
TEXTS = ["id = 7", "id = 3004", "id IN (0, 500, 1999, 3030, 9000)", "id >= 2990", "not (id < 2000)"]
ASK = """
ds = lance.dataset(uri)
result = []
for text in texts:
    scan = ds.to_table(filter=text, use_scalar_index=False).to_pylist()
    found = ds.to_table(filter=text).to_pylist()
    if sorted(map(str, scan)) != sorted(map(str, found)):
        result.append(text)
    elif has_index and "ScalarIndexQuery" not in ds.scanner(filter=text).explain_plan():
        result.append("not by index: " + text)
if has_index and ds.stats.index_stats("id_idx")["num_unindexed_rows"]:
    result.append("not all rows are indexed")
"""


def rows(first: int, count: int, value: int) -> pa.Table:
    return pa.table({"id": range(first, first + count), "v": [value] * count}, schema=SCHEMA)


def upsert(uri: str, number: int) -> None:
    """Update some rows, and insert ten."""
    source = pa.concat_tables(
        [rows(500 * number, 20, number), rows(ROWS + 10 * number, 10, number)]
    )
    merge = lance.dataset(uri).merge_insert("id")
    merge.when_matched_update_all().when_not_matched_insert_all().execute(source)


@pytest.mark.parametrize("is_stable", [False, True], ids=["addresses", "stable ids"])
def test_releases_answer_by_the_segments_of_upserts(
    official: Official, tmp_table: str, is_stable: bool
) -> None:
    # Release 4.0.2 does not read a BTREE of row addresses in a table with stable row ids.
    asked = {"texts": TEXTS, "has_index": not is_stable or official.release != "4.0.2"}
    table = lance.write_dataset(
        rows(0, ROWS, -1), tmp_table, max_rows_per_file=1000, enable_stable_row_ids=is_stable
    )
    table.create_scalar_index("id", "BTREE")
    limit = {"lancelake.key_index": "true", "lancelake.key_index.max_segments": "4"}
    table.update_config(limit)
    for number in range(5):
        upsert(tmp_table, number)
        assert official.run(tmp_table, ASK, **asked) == []
    optimize(open_snapshot(Location.parse(tmp_table), Latest()))
    assert official.run(tmp_table, ASK, **asked) == []
    assert official.count_rows(tmp_table) == ROWS + 50


def test_rows_of_a_release_are_added_after_our_next_upsert(
    official: Official, tmp_table: str
) -> None:
    lance.write_dataset(rows(0, ROWS, -1), tmp_table).create_scalar_index("id", "BTREE")
    lance.dataset(tmp_table).update_config({"lancelake.key_index": "true"})
    upsert(tmp_table, 0)
    official.merge_insert(tmp_table, rows(ROWS + 5, 10, 9), on=["id"])
    upsert(tmp_table, 1)
    assert official.run(tmp_table, ASK, texts=TEXTS, has_index=True) == []
    assert findings(tmp_table) == []
