"""A text index that covers no row still states how texts become terms, as in release 14."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import lancelake.pylance as ours
import lancelake.pylance.query as q  # noqa: F401  # of the functions below
from tests.support.official import Official
from tests.support.text_tables import ASK_OFFICIAL, BUILD

exec(BUILD)  # the same functions run in official processes

ROWS = pa.table({"id": [1, 2, 3], "t": ["The Quick Foxes", "Café running", "over nicht"]})
HISTORIES: dict[str, str] = {
    "built on an empty table": """
ds = lance.write_dataset(rows.slice(0, 0), uri)
ds.create_scalar_index("t", "INVERTED", **options)
lance.write_dataset(rows, uri, mode="append")
""",
    "not trained": """
ds = lance.write_dataset(rows, uri)
ds.create_scalar_index("t", "INVERTED", train=False, **options)
""",
    "all rows updated": """
ds = lance.write_dataset(rows, uri)
ds.create_scalar_index("t", "INVERTED", **options)
ds.update({"t": "t || ''"})
""",
    "all rows merged": """
ds = lance.write_dataset(rows, uri)
ds.create_scalar_index("t", "INVERTED", **options)
ds.merge_insert("id").when_matched_update_all().execute(rows)
""",
    "all rows replaced": """
ds = lance.write_dataset(rows, uri)
ds.create_scalar_index("t", "INVERTED", **options)
ds.delete("true")
lance.write_dataset(rows, uri, mode="append")
""",
}
CHOICES: list[dict[str, Any]] = [
    {},
    {"language": "German", "with_position": True},
    {"stem": False, "lower_case": False, "ascii_folding": False},
    {"base_tokenizer": "ngram"},
]
WORDS = ("fox", "FOXES", "the", "cafe", "run", "quick", "over", "nicht")
QUESTIONS: list[list[Any]] = [
    [["match", word, "t", {}], {"fast_search": fast}] for word in WORDS for fast in (False, True)
]
QUESTIONS += [[["phrase", "quick foxes", "t", 0], {}]]
MAKE = "import pyarrow as pa\nrows = pa.table(rows)\n{}\nresult = None\n"


def sorted_ids(answers: list[Any]) -> list[list[int]]:
    return [sorted(ids) for ids, _ in answers]


def compare(official: Official, uri: str) -> None:
    theirs = official.run(uri, ASK_OFFICIAL, asked=QUESTIONS)
    mine = globals()["ask"](ours.dataset(uri), QUESTIONS)
    assert sorted_ids(mine) == sorted_ids(theirs)


@pytest.mark.parametrize("options", CHOICES, ids=str)
@pytest.mark.parametrize("builder", ["ours", "theirs"])
@pytest.mark.parametrize("history", HISTORIES)
def test_texts_become_terms_by_the_parameters_of_the_index(
    official_14: Official, tmp_table: str, history: str, builder: str, options: dict[str, Any]
) -> None:
    if builder == "ours":
        code = HISTORIES[history]
        exec(code, {"lance": ours, "rows": ROWS, "uri": tmp_table, "options": options})
    else:
        code = MAKE.format(HISTORIES[history])
        official_14.run(tmp_table, code, rows=ROWS.to_pydict(), options=options)
    compare(official_14, tmp_table)


def test_a_fast_search_of_a_column_without_an_index_finds_nothing(
    official_14: Official, tmp_table: str
) -> None:
    official_14.write(tmp_table, ROWS)
    compare(official_14, tmp_table)
