"""Parameters of a full text index: how text becomes terms, and what is stored of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from lancelake.errors import CorruptTableError, InvalidRequestError, UnsupportedError, suggestion
from lancelake.format.frozen import parse
from lancelake.format.index_meta import IndexDetails
from lancelake.index.kind import Parameters
from lancelake.index.text import stop_words as built_in
from lancelake.proto import index_pb2

KIND = "INVERTED"
TYPE_URL = "/lance.table.InvertedIndexDetails"
FORMAT_VERSION = "format_version"
BLOCK_DOCS = 128
"""Documents per block of a posting list that is written."""
BLOCK_SIZES = (BLOCK_DOCS, 256)
"""Documents per block of posting lists that are read."""

NGRAM = "ngram"
CODE = "code"
_BY_UNICODE = ("icu", "icu/split")
BASE_TOKENIZERS = ("simple", "whitespace", "raw", NGRAM, *_BY_UNICODE, CODE)
LANGUAGES = (
    "Arabic",
    "Danish",
    "Dutch",
    "English",
    "Finnish",
    "French",
    "German",
    "Greek",
    "Hungarian",
    "Italian",
    "Norwegian",
    "Portuguese",
    "Romanian",
    "Russian",
    "Spanish",
    "Swedish",
    "Tamil",
    "Turkish",
)
# Options of a build that change neither its terms nor its files here.
_TUNING = ("memory_limit", "worker_memory_limit_mb", "num_workers", "skip_merge")
_ROW = "row"
_WRITTEN_LAYOUTS = (1, "1", "v1")
_LAYOUTS = (*_WRITTEN_LAYOUTS, 2, 3, "2", "3", "v2", "v3")
_MAX_LENGTH = (1 << 32) - 1
_OPERATORS = "index_operators"
_OF_CODE = ("split_identifiers", "split_on_numerics", "preserve_original")


@dataclass(frozen=True, slots=True, kw_only=True)
class TextParameters:
    """How text is divided into terms, and whether their positions are stored."""

    base_tokenizer: str = "simple"
    language: str = "English"
    with_position: bool = False
    max_token_length: int | None = 40
    lower_case: bool = True
    stem: bool = True
    remove_stop_words: bool = True
    custom_stop_words: tuple[str, ...] | None = None
    ascii_folding: bool = True
    min_ngram_length: int = 3
    max_ngram_length: int = 3
    prefix_only: bool = False
    split_identifiers: bool = False
    """Whether the words of an identifier of code are terms."""
    split_on_numerics: bool = False
    """Whether they end at numbers."""
    preserve_original: bool = False
    """Whether an identifier with several words is a term, too."""
    has_old_folding: bool = False
    """Whether characters are folded to ASCII ones as in release 4."""

    def __post_init__(self) -> None:
        _ensure_one_of("base tokenizer", self.base_tokenizer, BASE_TOKENIZERS)
        _ensure_one_of("language", self.language, LANGUAGES)
        if self.base_tokenizer != CODE and any(getattr(self, name) for name in _OF_CODE):
            raise InvalidRequestError(f"only the tokenizer {CODE!r} has {', '.join(_OF_CODE)}")
        if not 0 < self.min_ngram_length <= self.max_ngram_length:
            raise InvalidRequestError(
                f"n-grams cannot have {self.min_ngram_length} to {self.max_ngram_length} characters"
            )
        longest = max(self.max_token_length or 0, self.max_ngram_length)
        if longest > _MAX_LENGTH:
            raise InvalidRequestError(f"words cannot have {longest} characters")

    @staticmethod
    def requested(given: Parameters) -> TextParameters:
        """Return the parameters of a new index; those that were not given have their defaults."""
        values = {name: value for name, value in given.items() if name not in _TUNING}
        _ensure_written_layout(values)
        for name in values:
            if name not in NAMES:
                advice = suggestion(name, sorted(NAMES), "parameters")
                raise InvalidRequestError(f"{KIND} has no parameter {name!r}", action=advice)
        values = {**defaults(values.get("base_tokenizer")), **values}
        return _check_types(values)._with_list(is_current=True)

    @staticmethod
    def stored(text: str, *, is_current: bool, path: str) -> TextParameters:
        """Read the parameters of an index file, written by a current or an older release."""
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict):
            raise CorruptTableError(f"index file {path} has no valid parameters", path=path)
        if document.get("lance_tokenizer") not in (None, "text"):
            kind = document["lance_tokenizer"]
            raise UnsupportedError(f"text indices of {kind!r} documents are not supported")
        if document.get(_OPERATORS):
            raise UnsupportedError(f"text indices with {_OPERATORS} are not supported")
        parameters = _check_types(
            {name: value for name, value in document.items() if name in NAMES}
        )
        parameters = replace(
            parameters, has_old_folding=parameters.ascii_folding and not is_current
        )
        return parameters._with_list(is_current=is_current)

    def _with_list(self, *, is_current: bool) -> TextParameters:
        """Return parameters that list their stop words.

        A built-in list differs between releases. Only current ones have the tokenizers of Unicode.
        """
        is_listed = self.custom_stop_words is not None or self.base_tokenizer in _BY_UNICODE
        if not self.remove_stop_words or is_listed:
            return self
        words = built_in.of_language(self.language, is_current=is_current)
        return replace(self, custom_stop_words=words)

    @property
    def stop_words(self) -> tuple[str, ...]:
        """The words that are dropped."""
        if not self.remove_stop_words:
            return ()
        if self.custom_stop_words is not None:
            return self.custom_stop_words
        if self.base_tokenizer in _BY_UNICODE:
            return built_in.of_all_languages()
        return built_in.of_language(self.language, is_current=True)

    def document(self) -> dict[str, Any]:
        """Return the parameters as official releases store and show them."""
        words = self.custom_stop_words
        return {
            **(self._of_code if self.base_tokenizer == CODE else {}),
            "lance_tokenizer": "text",
            **self._of_all,
            "custom_stop_words": None if words is None else list(words),
        }

    def given(self) -> dict[str, Any]:
        """Return the parameters as a request for the same index names them."""
        unnamed = ("lance_tokenizer", "block_size", _OPERATORS)
        return {name: value for name, value in self.document().items() if name not in unnamed}

    @property
    def _of_all(self) -> dict[str, Any]:
        """The parameters that every tokenizer has."""
        return {name: getattr(self, name) for name in _OF_ALL}

    @property
    def _of_code(self) -> dict[str, Any]:
        """The parameters that only the tokenizer of code has."""
        settings: dict[str, Any] = {name: getattr(self, name) for name in _OF_CODE}
        return {"block_size": BLOCK_DOCS, _OPERATORS: False, **settings}

    @property
    def index_version(self) -> int:
        """Version of an index that is written; 3 for code, which official releases require."""
        return 3 if self.base_tokenizer == CODE else 1

    @property
    def layout_metadata(self) -> dict[str, str]:
        """What the metadata of an index states about its version, which tells how it was folded."""
        return {} if self.has_old_folding else {FORMAT_VERSION: str(self.index_version)}

    def details(self) -> IndexDetails:
        """Encode the details of an index entry."""
        shown = {**self._of_all, "language": json.dumps(self.language)}
        del shown["custom_stop_words"]
        message = index_pb2.InvertedIndexDetails(**shown)
        if self.base_tokenizer == CODE:
            for name in _OF_CODE:
                setattr(message.code_config, name, getattr(self, name))
            message.posting_format_version = self.index_version
        value = message.SerializeToString(deterministic=True)
        return IndexDetails(type_url=TYPE_URL, value=value)


# What requests and index files name.
NAMES = {field.name for field in fields(TextParameters)} - {"has_old_folding"}
_OF_ALL = [each.name for each in fields(TextParameters) if each.name in NAMES - {*_OF_CODE}]


def defaults(base_tokenizer: object) -> dict[str, Any]:
    """Return parameters that are not given, where those of a tokenizer differ from others."""
    if base_tokenizer not in (NGRAM, CODE):
        return {}
    # Stems and stop words of parts of words or of identifiers mean nothing.
    of_code = {"split_on_numerics": True, "preserve_original": True}
    plain = {"stem": False, "remove_stop_words": False}
    return {**plain, **of_code} if base_tokenizer == CODE else plain


def unsupported(details: IndexDetails) -> str | None:
    """Return what the details of an entry ask for that is not done here; None if there is none."""
    message = index_pb2.InvertedIndexDetails()
    try:
        parse(message, details.value, what="index details")
    except CorruptTableError:
        return None  # the files of the index have all parameters
    tokenizer = message.base_tokenizer or BASE_TOKENIZERS[0]
    if tokenizer not in BASE_TOKENIZERS:
        return f"the tokenizer {tokenizer!r}"
    if message.code_config.index_operators:
        return f"the tokenizer {tokenizer!r} and {_OPERATORS}"
    if message.document_granularity != index_pb2.InvertedIndexDetails.ROW:
        return "list elements as documents"
    if message.block_size not in (0, *BLOCK_SIZES):
        return f"posting blocks of {message.block_size} documents"
    return None


def _check_types(values: Mapping[str, Any]) -> TextParameters:
    """Return parameters whose values have the right types."""
    for name, value in values.items():
        if name in ("base_tokenizer", "language"):
            is_right = isinstance(value, str)
        elif name in ("min_ngram_length", "max_ngram_length"):
            is_right = _is_count(value)
        elif name == "max_token_length":
            is_right = value is None or _is_count(value)
        elif name == "custom_stop_words":
            is_right = value is None or _are_words(value)
        else:
            is_right = isinstance(value, bool)
        if not is_right:
            raise InvalidRequestError(f"{name} of {KIND} cannot be {value!r}")
    words = values.get("custom_stop_words")
    given = dict(values)
    if words is not None:
        given["custom_stop_words"] = tuple(words)
    return TextParameters(**given)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _are_words(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(word, str) for word in value)


def _ensure_one_of(what: str, value: str, names: tuple[str, ...]) -> None:
    if value not in names:
        advice = suggestion(value, names, what + "s")
        raise InvalidRequestError(f"unknown {what} {value}", action=advice)


def _ensure_written_layout(values: dict[str, Any]) -> None:
    """Remove options of the layout from parameters; raise for a layout that is not written."""
    block, layout = values.pop("block_size", None), values.pop("format_version", None)
    granularity = values.pop("document_granularity", None)
    if block not in (None, BLOCK_DOCS):
        raise UnsupportedError(f"posting blocks of {block!r} documents are not written")
    if layout not in (None, *_LAYOUTS):
        raise InvalidRequestError(f"unsupported FTS format version: {layout!r}")
    if layout not in (None, *_WRITTEN_LAYOUTS):
        raise UnsupportedError(
            f"format version {layout!r} of text indices is not written",
            action="Omit format_version: all releases read version 1.",
        )
    if granularity not in (None, _ROW):
        raise UnsupportedError("text indices of list elements are not supported")
