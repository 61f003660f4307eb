"""`tokenize`: the terms of a full text query, as in pylance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lancelake.errors import UnsupportedError
from lancelake.index.text.analyzer import Analyzer
from lancelake.index.text.parameters import TextParameters


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
    """Divide a query into terms as an index with these options does; None is the default."""
    for name, value in (
        ("analyzer", analyzer),
        ("split_identifiers", split_identifiers),
        ("split_on_numerics", split_on_numerics),
        ("preserve_original", preserve_original),
        ("index_operators", index_operators),
    ):
        if value not in (None, False, "default"):
            raise UnsupportedError(f"tokenize({name}={value!r}) is not supported", option=name)
    chosen = {
        "base_tokenizer": base_tokenizer,
        "language": language,
        "lower_case": lower_case,
        "stem": stem,
        "remove_stop_words": remove_stop_words,
        "custom_stop_words": None if custom_stop_words is None else tuple(custom_stop_words),
        "ascii_folding": ascii_folding,
        "min_ngram_length": min_ngram_length,
        "max_ngram_length": max_ngram_length,
        "prefix_only": prefix_only,
    }
    options: dict[str, Any] = {name: value for name, value in chosen.items() if value is not None}
    if max_token_length is not ...:
        options["max_token_length"] = max_token_length
    found = Analyzer(TextParameters(**options)).query_terms(query)
    return [FtsToken(term, position) for term, position in found]
