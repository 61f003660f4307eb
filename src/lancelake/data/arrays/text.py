"""Strings with invalid UTF-8, which data files must not contain."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

import pyarrow as pa

from lancelake.errors import InvalidRequestError, SchemaMismatchError
from lancelake.format.column_path import quote_segment


class InvalidText(Enum):
    """Handling of strings with invalid UTF-8."""

    REFUSE = "error"
    REPLACE = "replace"
    """Replace each invalid sequence by U+FFFD."""

    TRUST = "trust"
    """Do not check values of data files, which readers have checked."""


def chosen_text(name: str, option: str, table: str | None = None) -> InvalidText:
    """Parse the value of an option."""
    known = {kind.value: kind for kind in (InvalidText.REFUSE, InvalidText.REPLACE)}
    if name not in known:
        msg = f"{option} must be one of {', '.join(known)}, not {name!r}"
        raise InvalidRequestError(msg, table=table, found=name)
    return known[name]


def is_text(dtype: pa.DataType) -> bool:
    """Whether values, or those of a dictionary, are strings."""
    if pa.types.is_dictionary(dtype):
        return is_text(dtype.value_type)
    return bool(pa.types.is_string(dtype) or pa.types.is_large_string(dtype))


def valid_text(array: pa.Array, column: str, choice: InvalidText) -> pa.Array:
    """Return strings that are UTF-8; raise for others or replace them."""
    if choice is InvalidText.TRUST:
        return array
    words = array.dictionary if pa.types.is_dictionary(array.type) else array
    try:
        words.validate(full=True)
    except pa.ArrowInvalid as error:
        if choice is InvalidText.REFUSE:
            raise SchemaMismatchError(
                f"column {column} has a string that is not UTF-8: {error}",
                path=column,
                action="Correct the string, use a binary column, or have invalid UTF-8 replaced.",
            ) from error
        valid = replaced(words)
        if words is array:
            return valid
        return pa.DictionaryArray.from_arrays(array.indices, valid)
    return array


def unchecked_text(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Return bytes as strings that share their buffers, without a check that they are UTF-8."""
    if pa.types.is_dictionary(target):
        if not pa.types.is_dictionary(array.type):
            return array.cast(target)
        words = unchecked_text(array.dictionary, target.value_type)
        return pa.DictionaryArray.from_arrays(array.indices.cast(target.index_type), words)
    is_large = pa.types.is_large_string(target)
    return array.cast(pa.large_binary() if is_large else pa.binary()).view(target)


def invalid_paths(array: pa.Array, path: str) -> Iterator[str]:
    """Yield the paths of nested values with strings that are not UTF-8."""
    dtype = array.type
    if isinstance(array, pa.ExtensionArray):
        yield from invalid_paths(array.storage, path)
    elif is_text(dtype):
        words = array.dictionary if pa.types.is_dictionary(dtype) else array
        try:
            words.validate(full=True)
        except pa.ArrowInvalid:
            yield path
    elif pa.types.is_struct(dtype):
        for position, member in enumerate(dtype):
            yield from invalid_paths(array.field(position), f"{path}.{quote_segment(member.name)}")
    elif pa.types.is_map(dtype):
        yield from invalid_paths(array.keys, f"{path}.key")
        yield from invalid_paths(array.items, f"{path}.value")
    elif pa.types.is_nested(dtype):
        yield from invalid_paths(array.values, f"{path}.item")


def replaced(array: pa.Array) -> pa.Array:
    """Return strings with invalid UTF-8 replaced by U+FFFD."""
    is_large = pa.types.is_large_string(array.type)
    values = array.view(pa.large_binary() if is_large else pa.binary()).to_pylist()
    texts = (None if value is None else value.decode(errors="replace") for value in values)
    return pa.array(texts, array.type)
