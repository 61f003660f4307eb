"""A full text search finds the rows whose text matches, whatever happened to the table."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

import lancelake.pylance as lance
from lancelake.pylance.query import FullTextOperator, MatchQuery, PhraseQuery
from tests.support.text_tables import has_phrase

WORDS = "abcd"
OPTIONS = {"with_position": True, "stem": False, "remove_stop_words": False}
texts = st.lists(
    st.one_of(st.none(), st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)),
    min_size=1,
    max_size=12,
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), texts),
        st.tuples(st.just("delete"), st.integers(2, 5)),
        st.tuples(st.just("update"), st.integers(2, 5)),
        st.tuples(st.just("compact"), st.booleans()),
        st.tuples(st.just("optimize"), st.sampled_from([None, 0])),
        st.tuples(st.just("index"), st.none()),
    ),
    max_size=6,
)
queries = st.lists(st.lists(st.sampled_from("abcde"), min_size=1, max_size=3), max_size=4)


def rows(found: list[str | None], first: int) -> pa.Table:
    ids = pa.array(range(first, first + len(found)), pa.int64())
    return pa.table({"id": ids, "t": pa.array(found, pa.string())})


def take(table: lance.LanceDataset, step: tuple[str, object], first: int) -> lance.LanceDataset:
    """Change a table."""
    match step:
        case "append", list(found):
            lance.write_dataset(rows(found, first), table.uri, mode="append")
        case "delete", int(part):
            table.delete(f"id % {part} = 1")
        case "update", int(part):
            table.update({"t": "'d a'"}, where=f"id % {part} = 0")
        case "compact", bool(deferred):
            table.optimize.compact_files(defer_index_remap=deferred)
        case "optimize", count:
            table.optimize.optimize_indices(num_indices_to_merge=count)
        case _:
            table.create_scalar_index("t", "INVERTED", **OPTIONS)
    return lance.dataset(table.uri)


@settings(max_examples=40, deadline=None)
@given(start=texts, life=steps, asked=queries, stable=st.booleans(), slop=st.integers(0, 2))
def test_a_search_finds_what_a_look_at_all_texts_finds(
    start: list[str | None],
    life: list[tuple[str, object]],
    asked: list[list[str]],
    stable: bool,
    slop: int,
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        uri = str(Path(folder) / "t.lance")
        table = lance.write_dataset(rows(start, 0), uri, enable_stable_row_ids=stable)
        table.create_scalar_index("t", "INVERTED", **OPTIONS)
        for number, step in enumerate(life):
            table = take(table, step, 1000 * (number + 1))
        content = table.to_table().to_pylist()
        split = {row["id"]: (row["t"] or "").split() for row in content}
        for words in asked:
            text = " ".join(words)
            expected = {
                MatchQuery(text, "t"): [i for i, has in split.items() if set(has) & set(words)],
                MatchQuery(text, "t", operator=FullTextOperator.AND): [
                    i for i, has in split.items() if set(words) <= set(has)
                ],
                PhraseQuery(text, "t", slop=slop): [
                    i for i, has in split.items() if has_phrase(has, words, slop)
                ],
            }
            for query, ids in expected.items():
                found = table.to_table(["id"], full_text_query=query)["id"].to_pylist()
                assert sorted(found) == sorted(ids), query.inner
                best = table.to_table(["id"], full_text_query=query, limit=2)
                assert best["id"].to_pylist() == found[:2]
