"""N-gram indices never miss a row, whatever asks for a part of a text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancelake.errors import CorruptTableError, InvalidRequestError
from lancelake.expr.condition import Column, Comparison, IsNull, Leaf, Operator, TextMatch, TextTest
from lancelake.expr.predicate import sql_condition
from lancelake.format.arrow_schema import from_arrow
from lancelake.index.kind import DROPPED, IdKind, SegmentFacts
from lancelake.index.row_sets import RowIds, U64Array
from lancelake.index.scalar import ngram
from lancelake.index.scalar.ngram import FILE, NGRAM
from tests.support.index_laws import (
    Rows,
    all_ids,
    built,
    drawn_rows,
    ensure_bounds,
    ensure_serves,
    facts_of,
    new_folder,
)

TEXT = Column(path=("c",), dtype=pa.string())
SCHEMA = pa.schema([("c", pa.string())])
WORDS = [
    "",
    "abc",
    "xabcx",
    "ABC",
    "a bc",
    "café au lait",
    "CAFÉ",
    "abcabc",
    "12345",
    "a.c",
    "ĸabª",
]
PARTS = ["abc", "ab", "bca", "CAF", "café", "fé au", "234", "zzz", ".", "ĸab", "bª"]
ROWS = Rows(
    values=pa.array(["one abc", "two", None, "ABC three", "abd"]), ids=np.arange(5, dtype=np.uint64)
)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ngrams")


def contains(text: str) -> TextMatch:
    return TextMatch(column=TEXT, test=TextTest.CONTAINS, text=text)


def in_sql(text: str) -> Leaf:
    found = sql_condition(text, from_arrow(SCHEMA), SCHEMA)
    assert isinstance(found, Leaf)
    return found


parts = st.sampled_from(PARTS)
likes = st.lists(st.one_of(parts, st.sampled_from(["%", "_", "\\%"])), min_size=1, max_size=5)
atoms = st.one_of(
    parts.map(lambda p: p.replace(".", "\\.")), st.sampled_from([".", "[a-c]", "\\d", "^", "b"])
)
regexes = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, min_size=1, max_size=3).map(lambda many: f"({'|'.join(many)})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "+?", "{2}", "{0,1}"])).map(
            lambda two: f"(?:{two[0]}){two[1]}"
        ),
        st.tuples(st.sampled_from("abc"), st.sampled_from("*+?")).map("".join),
    ),
    max_leaves=4,
)


@st.composite
def conditions(draw: st.DrawFn) -> Leaf:
    match draw(st.sampled_from(["text", "equal", "like", "regex", "both"])):
        case "text":
            test = draw(st.sampled_from(list(TextTest)))
            return TextMatch(column=TEXT, test=test, text=draw(parts))
        case "equal":
            value = pa.scalar(draw(st.sampled_from(WORDS)))
            return Comparison(column=TEXT, operator=Operator.EQUAL, value=value)
        case "like":
            return in_sql(f"c LIKE '%{''.join(draw(likes))}_%'")
        case "regex":
            return in_sql(f"regexp_like(c, '{draw(regexes)}')")
        case _:
            word = draw(st.sampled_from(["AND", "OR"]))
            first, second = draw(regexes), "".join(draw(likes))
            return in_sql(f"regexp_like(c, '{first}') {word} c LIKE '%{second}_%'")


@given(drawn_rows(pa.string(), WORDS), st.lists(conditions(), min_size=1, max_size=5))
def test_no_row_is_missed(root: Path, rows: Rows, asked: list[Leaf]) -> None:
    segment = NGRAM.open(built(NGRAM, rows, root))
    for leaf in asked:
        answer = segment.answer(leaf)
        if answer is not None:
            ensure_bounds(answer, leaf, rows)


def test_an_index_of_half_of_the_rows_is_found_out(root: Path) -> None:
    answer = NGRAM.open(built(NGRAM, ROWS.part(0, 2), root)).answer(contains("ABC"))
    assert answer is not None
    with pytest.raises(AssertionError, match="missing"):
        ensure_bounds(answer, contains("ABC"), ROWS)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (contains("abc"), [0, 3]),
        (contains("zzz"), []),
        (contains("e abc"), [0, 3]),  # trigrams across a blank are not kept
        (in_sql("c LIKE '%ab%thr_e'"), [3]),
        (in_sql("regexp_like(c, 'one|thre+')"), [0, 3]),
        (in_sql("regexp_like(c, 'abc') AND regexp_like(c, '(one|two)')"), [0]),
    ],
    ids=str,
)
def test_rows_without_the_trigrams_are_left_out(
    root: Path, condition: Leaf, expected: list[int]
) -> None:
    answer = NGRAM.open(built(NGRAM, ROWS, root)).answer(condition)
    assert answer is not None
    assert answer.maybe_true.ids.to_array().tolist() == expected


@pytest.mark.parametrize(
    "condition",
    [
        contains("ab"),
        IsNull(column=TEXT),
        in_sql("c LIKE '%ab%c_'"),
        in_sql("c ILIKE '%abc%d_'"),
        in_sql("c NOT LIKE '%abc_d%'"),
        in_sql("regexp_like(c, 'abc', 'i')"),
        in_sql("regexp_like(c, '(?i)abc')"),
        in_sql("regexp_like(c, 'abc|.')"),
        in_sql("regexp_like(c, '(abc)*')"),
    ],
    ids=str,
)
def test_conditions_that_need_no_trigram_are_left_to_a_scan(root: Path, condition: Leaf) -> None:
    assert NGRAM.open(built(NGRAM, ROWS, root)).answer(condition) is None


def test_nested_columns_are_searched(root: Path) -> None:
    schema = pa.schema([("s", pa.struct([("t", pa.string())]))])
    leaf = sql_condition("regexp_like(s.t, 'thre+')", from_arrow(schema), schema)
    answer = NGRAM.open(built(NGRAM, ROWS, root)).answer(leaf)
    assert answer is not None
    assert answer.maybe_true.ids.to_array().tolist() == [3]


def entries(facts: SegmentFacts) -> list[dict[str, object]]:
    return [row for batch in NGRAM.open(facts).entries() for row in batch.to_pylist()]


def test_what_was_put_aside_is_merged(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at_once = built(NGRAM, ROWS, root)
    monkeypatch.setattr(ngram, "PAIRS_AT_ONCE", 2)
    monkeypatch.setattr(ngram, "_ROWS_AT_ONCE", 1)
    monkeypatch.setattr(ngram, "_BYTES_AT_ONCE", 1)
    assert entries(built(NGRAM, ROWS, root)) == entries(at_once)


@given(drawn_rows(pa.string(), WORDS), st.data())
def test_a_merge_has_what_a_build_has(root: Path, rows: Rows, data: st.DataObject) -> None:
    middle = data.draw(st.integers(0, len(rows.ids)))
    first, second = rows.part(0, middle), rows.part(middle, len(rows.ids))
    folder = new_folder(root)
    old = built(NGRAM, first, root)
    merged = NGRAM.merge([(old, all_ids(first))], second.input(), folder)
    assert entries(facts_of(merged, folder, pa.string())) == entries(built(NGRAM, rows, root))


def test_rows_that_are_not_kept_are_left_out(root: Path) -> None:
    kept = RowIds.of(np.array([0, 1, 2], dtype=np.uint64))
    folder = new_folder(root)
    merged = NGRAM.merge([(built(NGRAM, ROWS, root), kept)], ROWS.part(0, 0).input(), folder)
    same = built(NGRAM, ROWS.part(0, 3), root)
    assert entries(facts_of(merged, folder, pa.string())) == entries(same)


def test_rows_that_move_are_found_where_they_went(root: Path) -> None:
    def moved(ids: U64Array) -> U64Array:
        return np.where(ids == 0, np.uint64(DROPPED), ids + np.uint64(1 << 40))

    folder = new_folder(root)
    remapped = NGRAM.remap(built(NGRAM, ROWS, root), moved, folder)
    assert remapped is not None
    there = Rows(values=ROWS.values.slice(1), ids=ROWS.ids[1:] + np.uint64(1 << 40))
    segment = NGRAM.open(facts_of(remapped, folder, pa.string()))
    ensure_serves(segment, contains("abc"), there)
    ensure_serves(segment, contains("ABC"), there)
    assert segment.answer(contains("one")) is not None
    assert not segment.answer(contains("one")).maybe_true.ids


def test_ids_that_stay_are_stored_where_there_are_any() -> None:
    assert NGRAM.stored_ids(0, has_stable_row_ids=True) is IdKind.STABLE_ID
    assert NGRAM.stored_ids(0, has_stable_row_ids=False) is IdKind.ADDRESS


def test_parameters_are_refused(root: Path) -> None:
    with pytest.raises(InvalidRequestError, match="has no parameter 'width'"):
        NGRAM.build(ROWS.input(width=4), new_folder(root))


def test_a_missing_file_is_named(root: Path) -> None:
    facts = SegmentFacts(folder=new_folder(root), dtype=pa.string(), details=None, index_version=0)
    with pytest.raises(CorruptTableError, match=FILE):
        NGRAM.open(facts).answer(contains("abc"))


def test_a_damaged_posting_list_is_named(root: Path) -> None:
    folder = new_folder(root)
    schema = pa.schema([("tokens", pa.uint32()), ("posting_list", pa.binary())])
    writer = folder.create(FILE, schema)
    abc = 15516
    damaged = [{"tokens": abc, "posting_list": b"x"}]
    writer.write(pa.RecordBatch.from_pylist(damaged, schema=schema))
    writer.finish()
    facts = SegmentFacts(folder=folder, dtype=pa.string(), details=None, index_version=0)
    with pytest.raises(CorruptTableError, match=FILE):
        NGRAM.open(facts).answer(contains("abc"))
