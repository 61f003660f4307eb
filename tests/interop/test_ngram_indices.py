"""N-gram indices go back and forth between us and official releases."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lancelake.expr.condition import Column, TextMatch, TextTest
from lancelake.index.kind import BuildInput, IdKind
from lancelake.index.scalar.ngram import BEFORE_14, IN_ALL, NGRAM, SINCE_14, folding
from tests.support.index_laws import ensure_bounds, facts_of, new_folder
from tests.support.index_tables import ASK, add_index, entries_of, opened, rows_of
from tests.support.official import RELEASES, Official, OfficialPool

TEXTS = [
    "The quick brown fox",
    "jumps over the LAZY dog",
    None,
    "",
    "Crème brûlée, façade",
    "STRASSE Straße",
    "ĸnight and Ƙnight",
    "№ 42, ½ price, ªbc",
    "日本語 text",
    "abc123xyz",
    "tab\tand\nline",
]
PARTS = ["quick", "lazy", "LAZY", "brûl", "ème b", "raße", "RASS", "night", "ĸni", "ªbc", "123"]
PARTS += ["日本語", "zzz"]
# Release 4.0.2 finds nothing, whatever the index, when it folds no trigram out of a part.
FILTERS = {
    "4.0.2": [f"contains(t, '{part}')" for part in PARTS if part not in ("ªbc", "日本語")],
    "14.0.2": [f"contains(t, '{part}')" for part in PARTS],
}
# Since 14 patterns are served, too.
PATTERNS = ["t LIKE '%quick%fox'", "regexp_like(t, 'quick|LAZY')", "regexp_like(t, 'br.wn fox')"]
COUNT = """
shown = lance.dataset(uri).stats.index_stats("t_ngram")["indices"]
result = [segment["num_ngrams"] for segment in shown]
"""


def table() -> pa.Table:
    texts = [TEXTS[row % len(TEXTS)] for row in range(66)]
    return pa.table({"id": pa.array(range(66), pa.int64()), "t": pa.array(texts)})


def prepare(official: Official, uri: str, *, stable: bool = False) -> None:
    official.write(
        uri, table(), max_rows_per_file=30, enable_stable_row_ids=stable, data_storage_version="2.0"
    )
    official.delete(uri, "id % 9 = 0")


def ensure_found(uri: str, stored: IdKind) -> None:
    """Raise AssertionError when our search misses a row of the only index."""
    rows = rows_of(uri, "t", stored)
    segment = opened(uri, NGRAM, "t_ngram", pa.string())
    answered = 0
    for part in PARTS:
        leaf = TextMatch(
            column=Column(path=("c",), dtype=pa.string()), test=TextTest.CONTAINS, text=part
        )
        answer = segment.answer(leaf)
        if answer is not None:
            ensure_bounds(answer, leaf, rows)
            answered += 1
    assert answered > len(PARTS) // 2


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
def test_what_a_release_builds_we_search(
    officials: OfficialPool, tmp_table: str, release: str, stable: bool
):
    official = officials(release)
    prepare(official, tmp_table, stable=stable)
    official.create_scalar_index(tmp_table, "t", "NGRAM", name="t_ngram")
    ensure_found(tmp_table, IdKind.STABLE_ID if stable else IdKind.ADDRESS)
    segment = opened(tmp_table, NGRAM, "t_ngram", pa.string())
    assert official.run(tmp_table, COUNT) == [segment.statistics()["num_ngrams"]]


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
def test_what_we_build_a_release_uses(
    officials: OfficialPool, tmp_table: str, release: str, stable: bool
):
    official = officials(release)
    prepare(official, tmp_table, stable=stable)
    add_index(tmp_table, NGRAM, "t")
    filters = FILTERS[release] + (PATTERNS if release == "14.0.2" else [])
    for text, is_used, found, expected in official.run(tmp_table, ASK, filters=filters):
        assert found == expected, text
        assert is_used or text.startswith("regexp_like"), text


@pytest.mark.parametrize("release", RELEASES)
def test_a_release_extends_and_remaps_what_we_built(
    officials: OfficialPool, tmp_table: str, release: str
):
    official = officials(release)
    prepare(official, tmp_table)
    name = add_index(tmp_table, NGRAM, "t")
    official.append(tmp_table, table())
    official.run(tmp_table, "lance.dataset(uri).optimize.optimize_indices()\nresult = None")
    ensure_found(tmp_table, IdKind.ADDRESS)
    official.compact(tmp_table)
    (entry,) = [e for e in entries_of(tmp_table) if e.name == name]
    live = {int(i) >> 32 for i in rows_of(tmp_table, "t").ids}
    assert set(entry.fragments() or ()) == live
    ensure_found(tmp_table, IdKind.ADDRESS)


POINTS = """
points = [p for p in range(0x110000) if not 0xD800 <= p <= 0xDFFF]
texts = pa.array(["xy" + chr(p) + "zw" for p in points])
lance.write_dataset(pa.table({"t": texts}), uri)
lance.dataset(uri).create_scalar_index("t", "NGRAM", name="t_ngram")
result = len(points)
"""


@pytest.mark.parametrize(("release", "added"), [("4.0.2", BEFORE_14), ("14.0.2", SINCE_14)])
def test_every_character_is_folded_as_the_release_does(
    officials: OfficialPool, tmp_table: str, tmp_path: Path, release: str, added: str
):
    official = officials(release)
    official.run(tmp_table, POINTS)
    known = folding(IN_ALL, added)
    rows = rows_of(tmp_table, "t")
    theirs = dict(postings(opened(tmp_table, NGRAM, "t_ngram", pa.string())))
    folder = new_folder(tmp_path)
    batches = rows.batches(1 << 16)
    made = NGRAM.build(BuildInput(dtype=pa.string(), batches=batches), folder)
    ours = dict(postings(NGRAM.open(facts_of(made, folder, pa.string()))))
    # Ours has the trigrams of both foldings.
    assert all(not rows - ours[token] for token, rows in theirs.items())
    other = folding(SINCE_14 if added is BEFORE_14 else BEFORE_14)
    numbers = [ord(text[2]) for text in rows.values.to_pylist()]
    more = {
        numbers[int(row)]
        for token, found in ours.items()
        for row in (found - theirs.get(token, found - found)).to_array()
    }
    assert more <= other.keys()
    assert more.isdisjoint(known.keys() - other.keys())


def postings(segment):
    return ((posting.token, posting.rows) for posting in segment.postings())
