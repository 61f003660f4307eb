"""Stop words, stems and folding in each language are those of the release that built an index.

`LANCELAKE_WORDS` names a file of more words, one per line, which are compared too.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancelake.pylance as ours
import lancelake.pylance.query as q
from lancelake.commit.snapshot import Latest, Snapshot, open_snapshot
from lancelake.errors import UnsupportedError
from lancelake.index.stored_segment import StoredIndices
from lancelake.index.text.analyzer import ensure_known
from lancelake.index.text.kind import TextSegment
from lancelake.index.text.parameters import LANGUAGES
from lancelake.index.text.stop_words import of_language
from lancelake.storage.location import Location
from tests.support.official import RELEASES, Official, OfficialPool

ONLY_CURRENT = ("Arabic", "Greek", "Romanian", "Tamil", "Turkish")
MORE = os.environ.get("LANCELAKE_WORDS")
LISTED = {w for name in LANGUAGES for e in (0, 1) for w in of_language(name, is_current=bool(e))}
INFLECTED = "Häuser 1º ƒ ½ gehende running Gynecologists chevaux κόσμους рабочих şehirler кот's"
WORDS = sorted({*LISTED, *INFLECTED.split(), *(Path(MORE).read_text().split() if MORE else ())})
WHOLE = {"base_tokenizer": "whitespace", "max_token_length": None}
AS_THEY_ARE = {**WHOLE, "lower_case": False, "stem": False, "ascii_folding": False}

BUILD = """
table = lance.dataset(uri)
for language in languages:
    table.create_scalar_index(language, "INVERTED", language=language, **options)
result = None
"""
TOKENIZE = """
result = [
    [[e.text, e.position] for e in lance.tokenize(text, language=each, **options)]
    for each in languages
]
"""


def newest(uri: str) -> Snapshot:
    return open_snapshot(Location.parse(uri), Latest())


def segment_of(uri: str, column: str) -> TextSegment:
    segments = StoredIndices(newest(uri)).segments(f"{column}_idx")
    opened = segments[0].open()
    assert isinstance(opened, TextSegment)
    return opened


@pytest.mark.parametrize("release", RELEASES)
def test_the_stop_words_of_each_language(
    officials: OfficialPool, tmp_table: str, release: str
) -> None:
    is_current = release == "14.0.2"
    languages = [each for each in LANGUAGES if is_current or each not in ONLY_CURRENT]
    official = officials(release)
    official.write(tmp_table, pa.table(dict.fromkeys(languages, WORDS)))
    official.run(tmp_table, BUILD, languages=languages, options=AS_THEY_ARE)
    for language in languages:
        (partition,) = segment_of(tmp_table, language).partitions
        found = set(partition.documents.row_ids[partition.documents.lengths > 0].tolist())
        dropped = tuple(word for row, word in enumerate(WORDS) if row not in found)
        assert dropped == of_language(language, is_current=is_current), language


@pytest.mark.parametrize(
    "options",
    [WHOLE, {**WHOLE, "stem": False}, {**WHOLE, "ascii_folding": False}, AS_THEY_ARE],
    ids=["all filters", "not stemmed", "not folded", "stop words"],
)
def test_words_become_the_terms_of_release_14(
    official_14: Official, options: dict[str, Any]
) -> None:
    text = " ".join(["first", *WORDS])
    arguments = {"text": text, "options": options, "languages": LANGUAGES}
    theirs = official_14.run("", TOKENIZE, **arguments)
    for language, expected in zip(LANGUAGES, theirs, strict=True):
        mine = ours.tokenize(text, language=language, **options)
        assert [[e.text, e.position] for e in mine] == expected, language


@pytest.mark.parametrize("tokenizer", ["icu", "icu/split"])
def test_the_stop_words_of_the_tokenizers_of_unicode(official_14: Official, tokenizer: str) -> None:
    words = [word for word in WORDS if _is_european(word)]
    options = {**AS_THEY_ARE, "base_tokenizer": tokenizer}
    arguments = {"text": " , ".join(words), "options": options, "languages": ["English"]}
    (theirs,) = official_14.run("", TOKENIZE, **arguments)
    assert [[e.text, e.position] for e in ours.tokenize(arguments["text"], **options)] == theirs


def _is_european(word: str) -> bool:
    try:
        ensure_known(word)
    except UnsupportedError:
        return False
    return True


def test_characters_are_folded_as_the_release_that_built_the_index(
    official: Official, tmp_table: str
) -> None:
    characters = [chr(code) for code in range(0xA1, 0x3000) if chr(code).isalnum()]
    official.write(tmp_table, pa.table({"t": [f"x{char}x" for char in characters]}))
    options = {**AS_THEY_ARE, "ascii_folding": True, "remove_stop_words": False}
    official.create_scalar_index(tmp_table, "t", "INVERTED", **options)
    segment = segment_of(tmp_table, "t")
    (partition,) = segment.partitions
    expected = {
        term.text for word in characters for term in segment.analyzer.query_terms(f"x{word}x")
    }
    assert set(partition.terms.words.to_pylist()) == expected


TEXTS = {
    "Arabic": ["الكتب والأقلام", "في البيت الكبير"],
    "Greek": ["τα βιβλία και τα σπίτια", "κόσμος"],
    "Romanian": ["copiii și cărțile", "casele din sat"],
    "Tamil": ["புத்தகங்கள் அந்த வீடுகள்", "மரங்கள்"],
    "Turkish": ["kitaplar ve evler", "çocuklar için"],
    "German": ["nicht die Häuser", "ohne dass Häuser"],
}
ASK = """
import lance.query as q
query = q.MatchQuery(text, "t", operator=q.FullTextOperator.AND)
result = sorted(lance.dataset(uri).to_table(["id"], full_text_query=query)["id"].to_pylist())
"""


def found_by_us(uri: str, text: str) -> list[int]:
    query = q.MatchQuery(text, "t", operator=q.FullTextOperator.AND)
    found = ours.dataset(uri).to_table(["id"], full_text_query=query)["id"].to_pylist()
    return sorted(found)


@pytest.mark.parametrize("builder", ["ours", "14.0.2"])
@pytest.mark.parametrize("language", TEXTS)
def test_an_index_is_searched_and_refreshed_by_both(
    official_14: Official, tmp_table: str, language: str, builder: str
) -> None:
    texts = TEXTS[language]
    rows = pa.table({"id": range(2), "t": texts})
    official_14.write(tmp_table, rows)
    if builder == "ours":
        ours.dataset(tmp_table).create_scalar_index("t", "INVERTED", language=language)
    else:
        official_14.create_scalar_index(tmp_table, "t", "INVERTED", language=language)
    official_14.append(tmp_table, pa.table({"id": range(2, 4), "t": texts}))
    questions = [*texts, *" ".join(texts).split()]
    expected = [official_14.run(tmp_table, ASK, text=text) for text in questions]
    assert [0, 2] in expected
    assert [found_by_us(tmp_table, text) for text in questions] == expected
    ours.dataset(tmp_table).optimize.optimize_indices()
    assert [found_by_us(tmp_table, text) for text in questions] == expected
    assert [official_14.run(tmp_table, ASK, text=text) for text in questions] == expected


def test_segments_of_releases_with_different_stop_words_are_searched_by_their_own(
    official_4: Official, official_14: Official, tmp_table: str
) -> None:
    official_4.write(tmp_table, pa.table({"id": range(2), "t": TEXTS["German"]}))
    official_4.create_scalar_index(tmp_table, "t", "INVERTED", language="German")
    official_14.append(tmp_table, pa.table({"id": range(2, 4), "t": TEXTS["German"]}))
    append = "lance.dataset(uri).optimize.optimize_indices(num_indices_to_merge=0)\nresult = None"
    official_14.run(tmp_table, append)
    assert len(StoredIndices(newest(tmp_table)).segments("t_idx")) == 2
    assert found_by_us(tmp_table, "nicht Häuser") == [0, 1, 2]
    assert found_by_us(tmp_table, "dass Häuser") == [1, 2, 3]
    ours.dataset(tmp_table).optimize.optimize_indices()
    assert len(StoredIndices(newest(tmp_table)).segments("t_idx")) == 1
    assert found_by_us(tmp_table, "nicht Häuser") == [0, 1, 2, 3]
