"""Indices find rows that official releases moved without updating the indices."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap

import lancelake.pylance as ours
from lancelake.expr.condition import Column, Comparison, Operator, TextMatch, TextTest
from lancelake.index.kind import DROPPED
from lancelake.index.kinds import kind_of
from lancelake.index.moved_rows import RowMoves, with_inline_moves
from lancelake.index.stored_segment import IndexedVersion
from tests.support.index_laws import Rows, ensure_bounds
from tests.support.index_tables import entries_of, facts_of_entry, rows_of
from tests.support.official import RELEASES, Official, OfficialPool

INDEX = """
ds = lance.dataset(uri)
for column, kind in (("n", "ZONEMAP"), ("n", "BLOOMFILTER"), ("t", "NGRAM")):
    ds.create_scalar_index(column, kind, name=kind, replace=False)
    ds = lance.dataset(uri)
result = None
"""
NUMBER = Comparison(
    column=Column(path=("c",), dtype=pa.int64()),
    operator=Operator.EQUAL,
    value=pa.scalar(33, pa.int64()),
)
TEXT = TextMatch(
    column=Column(path=("c",), dtype=pa.string()), test=TextTest.CONTAINS, text="word3"
)
LEAVES = {"ZONEMAP": ("n", NUMBER), "BLOOMFILTER": ("n", NUMBER), "NGRAM": ("t", TEXT)}


def prepare(official: Official, uri: str) -> None:
    numbers = pa.array(range(60), pa.int64())
    texts = pa.array([f"word{n}" for n in range(60)])
    table = pa.table({"n": numbers, "t": texts})
    official.write(uri, table, max_rows_per_file=10, enable_stable_row_ids=False)
    official.delete(uri, "n IN (3, 4, 25)")
    official.run(uri, INDEX)


def move(official: Official, uri: str) -> None:
    """Move rows twice; some are deleted in between."""
    official.compact(uri, target_rows_per_fragment=20, defer_index_remap=True)
    official.delete(uri, "n IN (8, 31)")
    official.compact(uri, target_rows_per_fragment=40, defer_index_remap=True)


def moves_of(uri: str) -> RowMoves:
    return RowMoves.of(with_inline_moves(ours.dataset(uri)._snapshot))


@pytest.mark.parametrize("release", RELEASES)
def test_every_row_is_found_where_it_went(officials: OfficialPool, tmp_table: str, release: str):
    official = officials(release)
    prepare(official, tmp_table)
    before = rows_of(tmp_table, "n")
    move(official, tmp_table)
    after = rows_of(tmp_table, "n")
    moves = moves_of(tmp_table)
    assert len(moves.compactions) == 2
    now = moves.row_map(before.ids)
    found = {int(i): n for i, n in zip(now, before.values.to_pylist(), strict=True) if i != DROPPED}
    assert found == dict(zip(after.ids.tolist(), after.values.to_pylist(), strict=True))


@pytest.mark.parametrize("release", RELEASES)
def test_indices_answer_about_moved_rows(officials: OfficialPool, tmp_table: str, release: str):
    official = officials(release)
    prepare(official, tmp_table)
    move(official, tmp_table)
    live = ours.dataset(tmp_table).get_fragments()
    version = IndexedVersion(
        indices=with_inline_moves(ours.dataset(tmp_table)._snapshot),
        fragments=BitMap(fragment.fragment_id for fragment in live),
        has_stable_row_ids=False,
    )
    answered = set()
    for entry in entries_of(tmp_table):
        kind = kind_of(entry)
        if kind is None:
            continue
        column, leaf = LEAVES[entry.name]
        rows = rows_of(tmp_table, column)
        segment = kind.open(facts_of_entry(tmp_table, entry, rows.values.type))
        coverage = version.coverage(entry, kind)
        assert coverage is not None
        coverage = coverage.trusted(segment)
        assert coverage.fragments
        found = segment.answer(leaf)
        assert found is not None
        is_covered = np.isin(rows.ids >> np.uint64(32), list(coverage.fragments))
        mine = Rows(values=rows.values.filter(pa.array(is_covered)), ids=rows.ids[is_covered])
        ensure_bounds(coverage.current(found), leaf, mine)
        answered.add(entry.name)
    assert answered == LEAVES.keys()
