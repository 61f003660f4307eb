"""LanceDB answers right by our scalar indices, and we by its own, while both change the table."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from tests.support.official import Official, is_installed
from tests.support.scalar_index_tables import FILTERS, rows, scan_differences

ENVIRONMENT = "peers"
COUNT = 3000
BY_VALUE = {"i": "BTREE", "f": "BTREE", "s": "BITMAP", "k": "BITMAP", "l": "LABEL_LIST"}
BY_ZONE = {"d": "ZONEMAP", "t": "BLOOMFILTER", "w": "NGRAM"}
THEIRS = {
    "i": "BTree",
    "f": "BTree",
    "s": "Bitmap",
    "k": "Bitmap",
    "d": "BTree",
    "l": "LabelList",
    "g": "LabelList",
}
TEXTS = {
    **FILTERS,
    "t": ("t = TIMESTAMP '1970-01-01 00:00:00.000007'", "t is null"),
    "w": ("contains(w, '123')", "contains(w, 'word 29')"),
}
OPEN = """
import pathlib
import lancedb
path = pathlib.Path(uri)
table = lancedb.connect(path.parent).open_table(path.stem)
"""
ASK = """
result = []
for text in texts:
    query = table.search().where(text).select(["n"]).limit(1_000_000)
    is_by_index = "ScalarIndexQuery" in query.explain_plan(True)
    result.append([sorted(query.to_arrow()["n"].to_pylist()), is_by_index])
"""
BUILD = """
for column, kind in kinds.items():
    table.create_index(column, config=getattr(lancedb.index, kind)())
"""
UNINDEXED = """
names = {index.name for index in table.list_indices()}
result = {name: table.index_stats(name).num_unindexed_rows for name in names}
"""
MERGE = """
merge = table.merge_insert("n").when_matched_update_all().when_not_matched_insert_all()
merge.execute(more)
"""


class LanceDb:
    """A LanceDB client in a process of its own."""

    def __init__(self, worker: Official) -> None:
        self._worker = worker

    def run(self, uri: str, code: str, **inputs: Any) -> Any:
        """Execute statements with `table`, and return their `result`."""
        return self._worker.run(uri, OPEN + code, **inputs)

    def differences(self, uri: str, columns: Collection[str]) -> list[str]:
        """Return the filters that LanceDB answers unlike our scan, and columns without an index."""
        table = lance.dataset(uri)
        found: list[str] = []
        for column in columns:
            answers = self.run(uri, ASK, texts=TEXTS[column])
            for text, (theirs, _) in zip(TEXTS[column], answers, strict=True):
                scanned = table.to_table(["n"], text, use_scalar_index=False)["n"].to_pylist()
                if theirs != sorted(scanned):
                    found.append(f"{text}: {len(theirs)} rows, not {len(scanned)}")
            if not any(is_by_index for _, is_by_index in answers):
                found.append(f"no filter of {column} is answered by an index")
        return found


@pytest.fixture(scope="module")
def lancedb() -> Iterator[LanceDb]:
    if not is_installed(ENVIRONMENT):
        pytest.skip("LanceDB is not installed: make test-lancedb")
    with Official(ENVIRONMENT) as worker:
        yield LanceDb(worker)


def table_of(uri: str, *, is_stable: bool = False) -> lance.LanceDataset:
    words = pa.array([f"word {number}" for number in range(COUNT)])
    table = rows(COUNT).append_column("w", words)
    made = lance.write_dataset(table, uri, max_rows_per_file=1000, enable_stable_row_ids=is_stable)
    made.delete("n % 7 = 3")
    return made


def own_differences(uri: str, columns: Collection[str]) -> list[str]:
    """Return the filters that we answer by index unlike a scan, and columns without an index."""
    found = [text for column in columns for text in scan_differences(uri, column)]
    for column in columns:
        plan = lance.dataset(uri).scanner(filter=TEXTS[column][0]).explain_plan()
        if f"{column}_idx" not in plan:
            found.append(f"{TEXTS[column][0]} is not answered by an index")
    return found


@pytest.mark.parametrize("is_stable", [False, True], ids=["addresses", "stable row ids"])
def test_lancedb_answers_by_our_indices(lancedb: LanceDb, tmp_table: str, is_stable: bool) -> None:
    table_of(tmp_table, is_stable=is_stable)
    # Kinds that store addresses are refused in tables with stable row ids.
    kinds = BY_VALUE if is_stable else {**BY_VALUE, **BY_ZONE}
    for column, kind in kinds.items():
        lance.dataset(tmp_table).create_scalar_index(column, kind)
    assert lancedb.differences(tmp_table, kinds) == []
    assert lancedb.run(tmp_table, UNINDEXED) == {f"{column}_idx": 0 for column in kinds}


def test_we_answer_by_indices_of_lancedb(lancedb: LanceDb, tmp_table: str) -> None:
    table_of(tmp_table)
    lancedb.run(tmp_table, BUILD, kinds=THEIRS)
    assert own_differences(tmp_table, THEIRS) == []


@pytest.mark.parametrize("builder", ["ours", "LanceDB"])
def test_both_answer_after_each_change_of_the_other(
    lancedb: LanceDb, tmp_table: str, builder: str
) -> None:
    table_of(tmp_table)
    if builder == "ours":
        for column, kind in BY_VALUE.items():
            lance.dataset(tmp_table).create_scalar_index(column, kind)
    else:
        lancedb.run(tmp_table, BUILD, kinds={column: THEIRS[column] for column in BY_VALUE})

    def more(first: int, seed: int) -> pa.Table:
        words = pa.array(["more"] * 200)
        numbered = rows(200, seed).append_column("w", words)
        return numbered.set_column(0, "n", pa.array(range(first, first + 200), pa.int64()))

    def ours(number: int) -> None:
        match number:
            case 0:
                lance.write_dataset(more(COUNT, 1), tmp_table, mode="append")
            case 1:
                lance.dataset(tmp_table).update({"i": "i + 1"}, where="n % 5 = 0")
            case 2:
                lance.dataset(tmp_table).optimize.compact_files()
            case _:
                lance.dataset(tmp_table).optimize.optimize_indices()

    theirs = (
        "table.add(more)",
        "table.delete('n % 11 = 4')",
        MERGE,
        "table.optimize()",
    )
    for number, code in enumerate(theirs):
        ours(number)
        assert lancedb.differences(tmp_table, BY_VALUE) == [], f"after our change {number}"
        lancedb.run(tmp_table, code, more=more(COUNT + 150 * (number + 1), number + 2))
        assert own_differences(tmp_table, BY_VALUE) == [], f"after change {number} of LanceDB"
    assert set(lancedb.run(tmp_table, UNINDEXED).values()) == {0}
