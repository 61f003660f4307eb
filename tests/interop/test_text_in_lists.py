"""Text indices on strings of structs in lists, such as `d.t`: release 14 and we find the same."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import lancelake.pylance as ours
import lancelake.pylance.query as q  # noqa: F401  # of the functions below
from tests.support.official import Official
from tests.support.text_tables import ASK_OFFICIAL, BUILD, ensure_same

exec(BUILD)  # the same functions run in official processes

_PART = pa.struct([("t", pa.string()), ("n", pa.int32()), ("u", pa.list_(pa.string()))])
SCHEMA = pa.schema(
    [("id", pa.int64()), ("d", pa.list_(_PART)), ("s", pa.struct([("l", pa.list_(_PART))]))]
)
PARTS: list[list[dict[str, Any] | None] | None] = [
    [{"t": "red fox", "n": 1, "u": ["quick fox"]}, {"t": "green frog", "n": 2, "u": []}],
    [{"t": "red panda", "n": 1, "u": ["lazy", None, "dog red"]}, None],
    [],
    None,
    [{"t": None, "n": 3, "u": None}, {"t": "frog red", "n": 4, "u": ["frog"]}],
]
COLUMNS = ("d.t", "s.l.t", "d.u")
WORDS = ("red", "frog", "fox green", "lazy dog")
QUESTIONS: list[list[Any]] = [
    [[*kind, column, *options], {}]
    for column in COLUMNS
    for word in WORDS
    for kind, options in ((["match", word], [{}]), (["phrase", word], [0]))
]


def rows(first: int) -> pa.Table:
    ids = range(first, first + len(PARTS))
    structs = [None if i == 2 else {"l": part} for i, part in enumerate(PARTS)]
    return pa.table({"id": ids, "d": PARTS, "s": structs}, schema=SCHEMA)


def compare(official: Official, uri: str) -> None:
    theirs = official.run(uri, ASK_OFFICIAL, asked=QUESTIONS)
    ensure_same(QUESTIONS, globals()["ask"](ours.dataset(uri), QUESTIONS), theirs)


@pytest.mark.parametrize("builder", ["ours", "theirs"])
def test_rows_and_scores_are_those_of_release_14(
    official_14: Official, tmp_table: str, builder: str
) -> None:
    official_14.write(tmp_table, rows(0), data_storage_version="2.1")
    for column in COLUMNS:
        if builder == "ours":
            table = ours.dataset(tmp_table)
            table.create_scalar_index(column, "INVERTED", with_position=True)
        else:
            official_14.create_scalar_index(tmp_table, column, "INVERTED", with_position=True)
    compare(official_14, tmp_table)
    official_14.append(tmp_table, rows(10))
    official_14.delete(tmp_table, "id = 1")
    compare(official_14, tmp_table)
    ours.dataset(tmp_table).optimize.optimize_indices()
    ours.dataset(tmp_table).optimize.compact_files()
    compare(official_14, tmp_table)
    assert len(ours.dataset(tmp_table).to_table(full_text_query="frog")) == 4
    official_14.append(tmp_table, rows(20))
    official_14.run(tmp_table, "result = lance.dataset(uri).optimize.optimize_indices()")
    compare(official_14, tmp_table)
