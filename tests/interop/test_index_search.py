"""Filters answered by indices keep the rows that pylance keeps, whoever built and changed what."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import lancelake.pylance as lance
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest
from tests.strategies.index_predicates import predicates
from tests.support.official import RELEASES, Official, OfficialPool
from tests.support.searched_lives import Life, live, lives, rows

PREDICATES = int(os.environ.get("LANCELAKE_INDEX_PREDICATES", "200"))
INDICES = {
    "i": "BTREE",
    "f": "BTREE",
    "s": "BITMAP",
    "w": "NGRAM",
    "b": "BITMAP",
    "d": "ZONEMAP",
    "l": "LABEL_LIST",
    "st.x": "BTREE",
    "n": "BLOOMFILTER",
}
AT_ONCE = 40
# Releases take it for a bound above all others when they ask a zone map, of their own, too.
NEGATIVE_NAN = "-CAST('NaN' AS DOUBLE)"
ASK = """
ds = lance.dataset(uri)
result = []
for text in texts:
    try:
        scanned = ds.to_table(["n"], text, use_scalar_index=False)["n"].to_pylist()
    except (ValueError, OSError) as error:
        result.append([str(error), None])
        continue
    try:
        by_index = ds.to_table(["n"], text)["n"].to_pylist()
    except (ValueError, OSError) as error:
        by_index = [str(error)]
    result.append([by_index, scanned])
"""
CHANGE = """
ds = lance.dataset(uri)
ds.delete("n % 5 = 1")
ds = lance.dataset(uri)
ds.update({"i": "i + 1"}, where="n % 4 = 2")
ds = lance.dataset(uri)
ds.optimize.compact_files(target_rows_per_fragment=35, defer_index_remap=deferred)
result = None
"""


def drawn(count: int) -> list[str]:
    """Return so many conditions, the same in every run."""
    found: list[str] = []

    @settings(max_examples=count, derandomize=True, database=None, phases=[Phase.generate])
    @given(predicates)
    def collect(text: str) -> None:
        found.append(text)

    collect()
    return found


def joins_lists_with_null(text: str) -> bool:
    """Whether releases join two lists for a column into one, and forget the null in one of them.

    For `d NOT IN (0, NULL)` they find no row, for `d NOT IN (0, NULL) AND d IN (0, 1)` they do.
    """
    with_null = re.findall(r"([\w.]+) IN \([^()]*(?:\([^()]*\)[^()]*)*NULL\)", text)
    lists = re.findall(r"([\w.]+) (?:NOT )?IN \(", text)
    return any(lists.count(column) > 1 for column in with_null)


def differences(official: Official, uri: str, texts: list[str]) -> list[str]:
    """Return the conditions that we answer by index otherwise than the release by a scan."""
    table = lance.dataset(uri)
    found: list[str] = []
    for text, (by_index, scanned) in zip(texts, official.run(uri, ASK, texts=texts), strict=True):
        if scanned is None or joins_lists_with_null(text):
            continue  # the release does not understand it
        mine = table.to_table(["n"], text)["n"].to_pylist()
        if sorted(mine) != sorted(scanned):
            found.append(f"{text}: {mine} instead of {scanned} (by its index: {by_index})")
    return found


def own_differences(official: Official, uri: str, texts: list[str]) -> list[str]:
    """Return the conditions that the release answers by our index otherwise than by a scan."""
    answers = zip(texts, official.run(uri, ASK, texts=texts), strict=True)
    return [
        f"{text}: {by_index} instead of {scanned}"
        for text, (by_index, scanned) in answers
        if scanned is not None and NEGATIVE_NAN not in text
        if sorted(by_index) != sorted(scanned)
    ]


def names_used(uri: str, texts: list[str]) -> set[str]:
    """Return the indices that were asked about any of the conditions."""
    snapshot = lance.dataset(uri)._snapshot
    plans = [plan(snapshot, ScanRequest(columns=("n",), filter=text)) for text in texts]
    searches = [each.index_search for each in plans]
    return {asked.index for each in searches if each is not None for asked in each.asked}


@settings(max_examples=max(1, PREDICATES // AT_ONCE))
@given(life=lives(), texts=st.lists(predicates, min_size=AT_ONCE, max_size=AT_ONCE))
def test_tables_of_ours_answer_as_the_release_scans(
    official_14: Official, life: Life, texts: list[str]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        uri = live(life, str(Path(folder) / "t.lance")).uri
        assert differences(official_14, uri, texts) == []
        assert own_differences(official_14, uri, texts) == []


@pytest.mark.parametrize(
    ("is_stable", "change"),
    [
        (False, "none"),
        (False, "compacted"),
        (False, "deferred"),
        (True, "none"),
        (True, "compacted"),
    ],
    ids=lambda value: {True: "stable row ids", False: "addresses"}.get(value, value),
)
@pytest.mark.parametrize("release", RELEASES)
def test_indices_of_a_release_answer_as_a_scan(
    officials: OfficialPool, tmp_table: str, release: str, is_stable: bool, change: str
) -> None:
    builder = officials(release)
    builder.write(tmp_table, rows(0, 90, 5), max_rows_per_file=20, enable_stable_row_ids=is_stable)
    for column, kind in INDICES.items():
        builder.create_scalar_index(tmp_table, column, kind, name=f"{kind} of {column}")
    builder.append(tmp_table, rows(1000, 15, 6))
    if change != "none":
        builder.run(tmp_table, CHANGE, deferred=change == "deferred")
    texts = drawn(120)
    assert differences(officials("14.0.2"), tmp_table, texts) == []
    used = names_used(tmp_table, [*texts, "i = 2", "f = 1.5", "s = 'ab'", "array_has(l, 'y')"])
    assert {"BTREE of i", "BTREE of f", "BITMAP of s", "LABEL_LIST of l"} <= used


@pytest.mark.parametrize("writer", ["ours", *RELEASES])
def test_updated_structs_are_not_found_by_the_old_values_of_their_members(
    officials: OfficialPool, tmp_table: str, writer: str
) -> None:
    def table(start: int, stop: int, text: str) -> pa.Table:
        members = pa.array([{"s": text}] * (stop - start), pa.struct([("s", pa.string())]))
        return pa.table({"n": range(start, stop), "st": members})

    release = officials("4.0.2" if writer == "ours" else writer)
    first = table(0, 20, "a")
    release.write(tmp_table, first, max_rows_per_file=10, enable_stable_row_ids=True)
    release.create_scalar_index(tmp_table, "st.s", "BTREE", name="members")
    if writer == "ours":
        merge = lance.dataset(tmp_table).merge_insert("n").when_matched_update_all()
        merge.execute(table(5, 15, "b"))
    else:
        release.merge_insert(tmp_table, table(5, 15, "b"), ["n"])
    assert differences(officials("14.0.2"), tmp_table, ["st.s = 'a'", "st.s = 'b'"]) == []
    assert names_used(tmp_table, ["st.s = 'b'"]) == {"members"}


def test_lists_with_a_null_beside_others_are_recognized() -> None:
    assert joins_lists_with_null("NOT ((d IN (DATE '1970-01-03', NULL) OR d NOT IN (2)))")
    assert joins_lists_with_null("f IN (CAST('NaN' AS DOUBLE), NULL) AND f IN (1.5)")
    assert not joins_lists_with_null("d IN (1, NULL) OR i IN (2)")
