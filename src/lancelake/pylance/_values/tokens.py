"""`tokenize`: the terms of a full text query, as in pylance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lancelake.core.values.reads import Analyzer, TextParameters
from lancelake.errors import UnsupportedError
from lancelake.pylance._values.opened import given

_NOT_PARAMETERS = ("query", "analyzer", "index_operators", "max_token_length")


@dataclass(frozen=True, slots=True)
class FtsToken:
    """A term of a query, and its position after the first one."""

    text: str
    position: int


def tokenize(
    query: str,
    *,
    analyzer: str | None = None,
    base_tokenizer: str | None = None,
    language: str | None = None,
    max_token_length: Any = ...,
    lower_case: bool | None = None,
    stem: bool | None = None,
    remove_stop_words: bool | None = None,
    custom_stop_words: list[str] | None = None,
    ascii_folding: bool | None = None,
    min_ngram_length: int | None = None,
    max_ngram_length: int | None = None,
    prefix_only: bool | None = None,
    split_identifiers: bool | None = None,
    split_on_numerics: bool | None = None,
    preserve_original: bool | None = None,
    index_operators: bool | None = None,
) -> list[FtsToken]:
    """Divide a query into terms as a text index with these options does.

    Options that are not given have the defaults of an index.

    Args:
        query: The text.
        analyzer: A set of options by name.
        base_tokenizer: How text is divided into words.
        language: Language of stemming and stop words.
        max_token_length: Longest term; None for no limit.
        lower_case: Put words into lower case.
        stem: Reduce words to their stems.
        remove_stop_words: Drop frequent words.
        custom_stop_words: Words to drop, instead of those of the language.
        ascii_folding: Replace accented letters by plain ones.
        min_ngram_length: Shortest n-gram.
        max_ngram_length: Longest n-gram.
        prefix_only: Keep only n-grams at the start of words.
        split_identifiers: Divide identifiers of programs into words.
        split_on_numerics: Divide identifiers at numbers.
        preserve_original: Keep the identifier beside its words.
        index_operators: Keep operators of programs as terms.

    Returns:
        The terms with their positions.

    Examples:
        >>> [token.text for token in lance.tokenize("Red foxes")]
        ['red', 'fox']
    """
    options = given(locals(), without=_NOT_PARAMETERS)
    for name, value in {"analyzer": analyzer, "index_operators": index_operators}.items():
        if value not in (None, False, "default"):
            raise UnsupportedError(f"tokenize({name}={value!r}) is not supported", option=name)
    if max_token_length is not ...:
        options["max_token_length"] = max_token_length
    terms = Analyzer(TextParameters.requested(options)).query_terms(query)
    return [FtsToken(term, position) for term, position in terms]
