"""Texts become the terms that the tokenizer library finds, with their positions."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
import tantivy

from lancelake.errors import InvalidRequestError, MissingPackageError, UnsupportedError
from lancelake.index.text.analyzer import Analyzer
from lancelake.index.text.parameters import TextParameters
from lancelake.index.text.stop_words import of_language

TEXTS = [
    "The quick, brown-fox; JUMPS over\tthe lazy dogs!",
    "",
    " \n ",
    "x_y a1b2 " + "z" * 39 + " " + "z" * 40,
    "Die Straße, naïve café über 日本語 ½ ⅷ हिन्दी",
    "running runner ran",
    "ends with word",
    "starts here",
]
CHOICES: list[dict[str, Any]] = [
    {},
    {"base_tokenizer": "whitespace", "stem": False},
    {"base_tokenizer": "raw"},
    {"base_tokenizer": "ngram", "min_ngram_length": 2, "max_ngram_length": 3},
    {"base_tokenizer": "ngram", "prefix_only": True},
    {"lower_case": False, "ascii_folding": False},
    {"remove_stop_words": False, "max_token_length": None},
    {"custom_stop_words": ["quick", "fox"]},
    {"language": "German"},
]


def reference(parameters: TextParameters) -> tantivy.TextAnalyzer:
    """Return the analyzer that the library builds of the same filters in one chain."""
    kinds = {
        "simple": tantivy.Tokenizer.simple,
        "whitespace": tantivy.Tokenizer.whitespace,
        "raw": tantivy.Tokenizer.raw,
        "ngram": lambda: tantivy.Tokenizer.ngram(
            parameters.min_ngram_length, parameters.max_ngram_length, parameters.prefix_only
        ),
    }
    builder = tantivy.TextAnalyzerBuilder(kinds[parameters.base_tokenizer]())
    if parameters.max_token_length is not None:
        builder = builder.filter(tantivy.Filter.remove_long(parameters.max_token_length))
    if parameters.lower_case:
        builder = builder.filter(tantivy.Filter.lowercase())
    if parameters.stem:
        builder = builder.filter(tantivy.Filter.stemmer(parameters.language.lower()))
    if parameters.remove_stop_words:
        words = parameters.custom_stop_words
        language = parameters.language.lower()
        stop = tantivy.Filter.stopword(language) if words is None else None
        builder = builder.filter(stop or tantivy.Filter.custom_stopword(list(words or ())))
    if parameters.ascii_folding:
        builder = builder.filter(tantivy.Filter.ascii_fold())
    return builder.build()


def expected(parameters: TextParameters, text: str) -> list[tuple[str, int]]:
    tokens = reference(parameters).pre_tokenize(text).tokens
    return [(token.text, token.position) for token in tokens]


@pytest.mark.parametrize("choice", CHOICES, ids=str)
@pytest.mark.parametrize("are_ascii", [True, False], ids=["ASCII", "any"])
def test_texts_become_the_terms_of_the_library(choice: dict[str, Any], are_ascii: bool) -> None:
    chosen = [text for text in TEXTS if text.isascii() or not are_ascii]
    parameters = TextParameters.requested(choice)
    # The library folds as release 4 does.
    parameters = replace(parameters, has_old_folding=parameters.ascii_folding)
    analyzer = Analyzer(parameters)
    found = analyzer.occurrences(pa.array(["left out", *chosen], pa.string()).slice(1))
    terms = analyzer.terms
    mine: list[list[tuple[str, int]]] = [[] for _ in chosen]
    for term, text, position in zip(
        found.terms.tolist(), found.texts.tolist(), found.positions.tolist(), strict=True
    ):
        mine[text].append((terms[term], position))
    assert mine == [expected(parameters, text) for text in chosen]


def test_positions_of_a_query_start_with_its_first_term() -> None:
    found = Analyzer(TextParameters.requested({})).query_terms("the quick and the dead")
    assert found == [("quick", 0), ("dead", 3)]


@pytest.mark.parametrize("language", ["English", "German", "Tamil"])
def test_built_in_stop_words_are_stored_explicitly(language: str) -> None:
    found = TextParameters.requested({"language": language}).custom_stop_words
    assert found == of_language(language, is_current=True)


@pytest.mark.parametrize("language", ["English", "German"])
def test_an_index_has_the_stop_words_of_the_release_that_built_it(language: str) -> None:
    text = json.dumps({"base_tokenizer": "simple", "language": language})
    found = [TextParameters.stored(text, is_current=each, path="p") for each in (False, True)]
    lists = [of_language(language, is_current=each) for each in (False, True)]
    assert [parameters.custom_stop_words for parameters in found] == lists


@pytest.mark.parametrize("is_current", [False, True])
def test_an_index_folds_as_the_release_that_built_it(is_current: bool) -> None:
    found = TextParameters.stored("{}", is_current=is_current, path="p")
    assert Analyzer(found).query_terms("1º ƒé") == (
        [("1o", 0), ("ƒe", 1)] if is_current else [("1º", 0), ("fe", 1)]
    )


def test_stored_parameters_are_read_back() -> None:
    before = TextParameters.requested({"with_position": True, "custom_stop_words": ["x"]})
    text = json.dumps(before.document())
    assert TextParameters.stored(text, is_current=True, path="p") == before
    assert before.layout_metadata == {"format_version": "1"}


def test_an_index_that_is_folded_as_by_an_old_release_is_written_as_such() -> None:
    found = TextParameters.stored("{}", is_current=False, path="p")
    assert found.layout_metadata == {}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"base_tokenizer": "jieba"}, "base tokenizer"),
        ({"language": "Klingon"}, "language"),
        ({"steam": True}, "steam"),
        ({"split_identifiers": True}, "only the tokenizer 'code'"),
        ({"stem": "yes"}, "stem"),
        ({"max_token_length": -1}, "max_token_length"),
        ({"custom_stop_words": "the"}, "custom_stop_words"),
        ({"min_ngram_length": 4}, "n-gram"),
    ],
)
def test_wrong_parameters_are_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidRequestError, match=words):
        TextParameters.requested(given)


@pytest.mark.parametrize(
    "given", [{"block_size": 256}, {"format_version": 3}, {"document_granularity": "list_element"}]
)
def test_a_layout_that_is_not_written_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedError):
        TextParameters.requested(given)


@pytest.mark.parametrize("tokenizer", ["icu", "icu/split"])
def test_tokenizers_of_unicode_drop_stop_words_of_all_languages(tokenizer: str) -> None:
    analyzer = Analyzer(TextParameters.requested({"base_tokenizer": tokenizer, "stem": False}))
    found = analyzer.query_terms("the der они war cat")
    assert [term.text for term in found] == ["war", "cat"]


def test_stored_operators_of_code_are_refused() -> None:
    text = json.dumps({"base_tokenizer": "code", "index_operators": True})
    with pytest.raises(UnsupportedError, match="index_operators"):
        TextParameters.stored(text, is_current=True, path="p")


def test_words_of_an_identifier_have_positions_of_their_own() -> None:
    parameters = TextParameters.requested({"base_tokenizer": "code", "split_identifiers": True})
    analyzer = Analyzer(parameters)
    expected = [("getuser2", 0), ("get", 0), ("user", 1), ("2", 2), ("foo", 3)]
    assert analyzer.query_terms("getUser2(foo)") == expected
    found = analyzer.occurrences(pa.array(["getUser2(foo)"]))
    terms = [analyzer.terms[number] for number in found.terms]
    assert list(zip(terms, found.positions.tolist(), strict=True)) == expected


@pytest.mark.parametrize(
    ("tokenizer", "terms"),
    [
        ("icu", ["don't", "foo_bar", "3.14", "café", "x"]),
        ("icu/split", ["don", "t", "foo", "bar", "3", "14", "café", "x"]),
        ("code", ["don", "t", "foo_bar", "3", "14", "café", "x"]),
    ],
)
def test_words_of_other_tokenizers(tokenizer: str, terms: list[str]) -> None:
    options = {"stem": False, "remove_stop_words": False, "ascii_folding": False}
    analyzer = Analyzer(TextParameters.requested({"base_tokenizer": tokenizer, **options}))
    text = "don't (foo_bar) 3.14 café x"
    assert [term.text for term in analyzer.query_terms(text)] == terms
    found = analyzer.occurrences(pa.array([text, "foo_bar"]))
    assert [analyzer.terms[number] for number in found.terms[: len(terms)]] == terms


def test_code_is_written_in_the_version_that_official_releases_require() -> None:
    found = TextParameters.requested({"base_tokenizer": "code"})
    assert (found.index_version, found.layout_metadata) == (3, {"format_version": "3"})
    assert TextParameters.requested(found.given()) == found


def test_without_the_extra_its_name_is_in_the_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tantivy", None)
    with pytest.raises(MissingPackageError, match=r"lancelake\[search\]"):
        Analyzer(TextParameters.requested({})).query_terms("fox")
