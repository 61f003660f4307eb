"""Record batches: their size, their order, and arrays of the same values in another type."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from enum import Enum
from typing import Literal, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lancelake.errors import CorruptTableError, InvalidRequestError, SchemaMismatchError
from lancelake.format import jsonb
from lancelake.format.schema import Field, quote_segment
from lancelake.threads import Ahead

# Minimum and maximum that is passed to the codec at once.
LEAST_BYTES = 1024 * 1024
PIECE_BYTES = 32 * 1024 * 1024


def rebatched(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the same rows in batches of `rows`, except for the last."""
    waiting: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        waiting.append(batch)
        size += batch.num_rows
        if size < rows:
            continue
        whole = pa.concat_batches(waiting)
        start = 0
        while size - start >= rows:
            yield whole.slice(start, rows)
            start += rows
        waiting, size = [whole.slice(start)], size - start
    if size:
        yield pa.concat_batches(waiting)


def joined_up_to(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """Join small batches into batches of limited size."""
    waiting: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        if waiting and size + batch.num_rows > rows:
            yield pa.concat_batches(waiting) if len(waiting) > 1 else waiting[0]
            waiting, size = [], 0
        waiting.append(batch)
        size += batch.num_rows
    if waiting:
        yield pa.concat_batches(waiting) if len(waiting) > 1 else waiting[0]


def gathered(
    batches: Iterable[pa.RecordBatch], least_bytes: int = LEAST_BYTES
) -> Iterator[pa.RecordBatch]:
    """Join batches smaller than this, because each batch has a fixed cost in the codec."""
    waiting: list[pa.RecordBatch] = []
    held_bytes = 0
    for batch in batches:
        waiting.append(batch)
        held_bytes += batch.nbytes
        if held_bytes >= least_bytes:
            yield pa.concat_batches(waiting) if len(waiting) > 1 else batch
            waiting, held_bytes = [], 0
    if waiting:
        yield pa.concat_batches(waiting)


def pieces(batch: pa.RecordBatch, limit_bytes: int = PIECE_BYTES) -> Iterator[pa.RecordBatch]:
    """Split a batch into parts of about this size."""
    size = batch.nbytes
    if size <= limit_bytes:
        yield batch
        return
    rows = max(1, batch.num_rows * limit_bytes // size)
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


Mask = npt.NDArray[np.bool_]


def differing(one: pa.Array, other: pa.Array) -> Mask:
    """Return true for the rows whose values are not the same."""
    if isinstance(one, pa.ExtensionArray):
        return differing(one.storage, other.storage)
    if pa.types.is_dictionary(one.type):
        return differing(one.dictionary_decode(), other.dictionary_decode())
    if pa.types.is_null(one.type):
        return np.zeros(len(one), dtype=np.bool_)
    valid, other_valid = (_valid(array) for array in (one, other))
    differs: Mask = (valid != other_valid) | (valid & other_valid & _values(one, other))
    return differs


def _values(one: pa.Array, other: pa.Array) -> Mask:
    """Compare values; the result is undefined where one is null."""
    dtype = one.type
    if pa.types.is_struct(dtype):
        differs = np.zeros(len(one), dtype=np.bool_)
        for i in range(dtype.num_fields):
            differs |= differing(pc.struct_field(one, i), pc.struct_field(other, i))
        return differs
    if pa.types.is_fixed_size_list(dtype):
        return _fixed_lists(one, other)
    if pa.types.is_nested(dtype):
        return _lists(one, other)
    if pa.types.is_floating(dtype):
        return _floats(one, other)
    return _mask(pc.fill_null(pc.not_equal(one, other), False))


def _floats(one: pa.Array, other: pa.Array) -> Mask:
    a, b = (array.to_numpy(zero_copy_only=False) for array in (one, other))
    differs: Mask = (a != b) & ~(np.isnan(a) & np.isnan(b))
    return differs


def _fixed_lists(one: pa.Array, other: pa.Array) -> Mask:
    size = one.type.list_size
    a, b = (array.values.slice(array.offset * size, len(array) * size) for array in (one, other))
    differs: Mask = np.logical_or.reduce(differing(a, b).reshape(len(one), size), axis=1)
    return differs


def _lists(one: pa.Array, other: pa.Array) -> Mask:
    """Compare lists of the same length item by item."""
    lengths, other_lengths = (_lengths(array) for array in (one, other))
    differs: Mask = np.not_equal(lengths, other_lengths)
    rows = np.flatnonzero(~differs & (lengths > 0))
    if not len(rows):
        return differs
    indices = pa.array(rows)
    a, b = (_items(array.take(indices)) for array in (one, other))
    starts = np.concatenate(([0], np.cumsum(lengths[rows])[:-1]))
    differs[rows] = np.logical_or.reduceat(differing(a, b), starts)
    return differs


def _items(array: pa.Array) -> pa.Array:
    if pa.types.is_map(array.type):
        first, last = array.offsets[0].as_py(), array.offsets[-1].as_py()
        fields = [array.type.key_field, array.type.item_field]
        entries = pa.StructArray.from_arrays([array.keys, array.items], fields=fields)
        return entries.slice(first, last - first)
    return array.flatten()


def _lengths(array: pa.Array) -> npt.NDArray[np.int64]:
    offsets = array.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    # Values below a null list are ignored.
    return np.where(_valid(array), np.diff(offsets), 0)


def _valid(array: pa.Array) -> Mask:
    return _mask(array.is_valid())


def _mask(array: pa.Array) -> Mask:
    mask: Mask = array.to_numpy(zero_copy_only=False)
    return mask


def search_sorted(
    ordered: pa.Array, values: pa.Array, *, side: Literal["left", "right"]
) -> pa.Array:
    """Return where each value would be inserted into ascending values; null for a null.

    That is before values equal to it on the left side, and behind them on the right.
    """
    if hasattr(pc, "search_sorted"):  # since pyarrow 26
        return pc.search_sorted(ordered, values, side=side)
    # The sort is stable: of equal values, those that come first stay first.
    parts = [values, ordered] if side == "left" else [ordered, values]
    order = pc.sort_indices(pa.concat_arrays(parts)).to_numpy()
    start = 0 if side == "left" else len(ordered)
    is_value = (order >= start) & (order < start + len(values))
    places = np.zeros(len(values), dtype=np.uint64)
    places[order[is_value] - start] = np.cumsum(~is_value)[is_value]
    return pa.array(places, mask=values.is_null().to_numpy(zero_copy_only=False))


_HELD = 2
# Starting a thread takes longer than reading them.
_FEW_ROWS = 1 << 10

Item = TypeVar("Item")


def read_ahead(
    items: Iterator[Item], *, held: int = _HELD, rows: int | None = None
) -> Generator[Item, None, None]:
    """Yield the same items; prefetch up to `held` of them, unless they are only a few rows.

    Closing the generator stops the prefetch.
    """
    if rows is not None and rows <= _FEW_ROWS:
        yield from items
        return
    ahead = Ahead(lambda: items, held=held)
    try:
        yield from ahead
    finally:
        ahead.stop()
        ahead.wait()


class InvalidText(Enum):
    """Handling of strings with invalid UTF-8."""

    REFUSE = "error"
    REPLACE = "replace"
    """Replace each invalid sequence by U+FFFD."""

    TRUST = "trust"
    """Do not check values of data files, which readers have checked."""


def chosen_text(name: str, option: str, table: str | None = None) -> InvalidText:
    """Parse the value of an option."""
    kinds = {kind.value: kind for kind in (InvalidText.REFUSE, InvalidText.REPLACE)}
    if name not in kinds:
        msg = f"{option} must be one of {', '.join(kinds)}, not {name!r}"
        raise InvalidRequestError(msg, table=table, found=name)
    return kinds[name]


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


def retype(array: pa.Array, target: pa.DataType, *, raw_text: bool = False) -> pa.Array:
    """Return `array` as `target`, sharing its buffers; leaves are cast where they differ.

    With `raw_text`, bytes become strings without a check that they are UTF-8.
    """
    if array.type.equals(target, check_metadata=True):
        return array
    if isinstance(target, pa.BaseExtensionType):
        storage = retype(array, target.storage_type, raw_text=raw_text)
        return pa.ExtensionArray.from_storage(target, storage)
    if isinstance(array, pa.ExtensionArray):
        return retype(array.storage, target, raw_text=raw_text)
    ensure_same_kind(array.type, target)
    if pa.types.is_struct(target):
        return _struct(array, target, raw_text=raw_text)
    if pa.types.is_map(target):
        return _map(array, target, raw_text=raw_text)
    if pa.types.is_list(target) or pa.types.is_large_list(target):
        return _from_buffers(array, target, array.buffers()[:2], raw_text=raw_text)
    if pa.types.is_fixed_size_list(target):
        return _from_buffers(array, target, array.buffers()[:1], raw_text=raw_text)
    if _is_list_of_bytes(array.type):
        array = _binary(array)
    if raw_text and is_text(target):
        return unchecked_text(array, target)
    return array if array.type.equals(target) else array.cast(target)


def retype_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch with the types of a schema, column by column."""
    columns = [retype(c, f.type) for c, f in zip(batch.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _binary(array: pa.ListArray | pa.LargeListArray) -> pa.Array:
    """Return lists of bytes as binary values."""
    is_large = pa.types.is_large_list(array.type)
    # The buffers of a slice start before its values.
    values = pa.concat_arrays([array.values]) if array.values.offset else array.values
    return pa.Array.from_buffers(
        pa.large_binary() if is_large else pa.binary(),
        len(array),
        [*array.buffers()[:2], values.buffers()[1]],
        array.null_count,
        array.offset,
    )


def ensure_same_kind(dtype: pa.DataType, target: pa.DataType) -> None:
    """Raise when values would have another meaning with another type."""
    if not pa.types.is_nested(target):
        fits = not pa.types.is_nested(dtype) or _is_list_of_bytes(dtype)
    elif pa.types.is_struct(target):
        fits = pa.types.is_struct(dtype) and dtype.num_fields >= target.num_fields
    elif pa.types.is_fixed_size_list(target):
        fits = pa.types.is_fixed_size_list(dtype) and dtype.list_size == target.list_size
    else:
        fits = dtype.id == target.id
    if not fits:
        raise CorruptTableError(f"a column has type {dtype}, and {target} in the table")


def _is_list_of_bytes(dtype: pa.DataType) -> bool:
    is_list = pa.types.is_list(dtype) or pa.types.is_large_list(dtype)
    return bool(is_list and pa.types.is_uint8(dtype.value_type))


def _struct(array: pa.StructArray, target: pa.StructType, *, raw_text: bool) -> pa.Array:
    fields = list(target)
    children = [retype(array.field(i), f.type, raw_text=raw_text) for i, f in enumerate(fields)]
    return struct_of(children, fields, array)


def struct_of(children: list[pa.Array], fields: list[pa.Field], like: pa.Array) -> pa.StructArray:
    """Build a struct of these children that is null where `like` is null."""
    if not fields:
        validity = like.is_valid().buffers()[1] if like.null_count else None
        return pa.Array.from_buffers(pa.struct([]), len(like), [validity])
    mask = like.is_null() if like.null_count else None
    return pa.StructArray.from_arrays(children, fields=fields, mask=mask)


def _map(array: pa.MapArray, target: pa.MapType, *, raw_text: bool) -> pa.Array:
    entries = pa.StructArray.from_arrays(
        [
            retype(array.keys, target.key_type, raw_text=raw_text),
            retype(array.items, target.item_type, raw_text=raw_text),
        ],
        fields=[target.key_field, target.item_field],
    )
    return pa.Array.from_buffers(
        target,
        len(array),
        array.buffers()[:2],
        array.null_count,
        array.offset,
        [entries],
    )


def _from_buffers(
    array: pa.Array, target: pa.DataType, buffers: list[pa.Buffer], *, raw_text: bool
) -> pa.Array:
    values = retype(array.values, target.value_type, raw_text=raw_text)
    return pa.Array.from_buffers(
        target, len(array), buffers, array.null_count, array.offset, [values]
    )


def to_public(field: Field, array: pa.Array, target: pa.DataType) -> pa.Array:
    """Return the values of a field as the type that users see."""
    if array.type.equals(target, check_metadata=True):
        return array
    if not any(node.is_json for node in field.walk()):
        return retype(array, target)
    if field.is_json:
        return retype(jsonb.decode_array(retype(array, pa.large_binary())), target)
    if pa.types.is_struct(target):
        children = [
            to_public(child, array.field(i), target.field(i).type)
            for i, child in enumerate(field.children)
        ]
        return struct_of(children, list(target), array)
    if pa.types.is_map(target):
        return _map_public(field, array, target)
    values = to_public(field.children[0], array.values, target.value_type)
    count = 1 if pa.types.is_fixed_size_list(target) else 2
    return _rebuilt(array, target, count, values)


def _map_public(field: Field, array: pa.MapArray, target: pa.MapType) -> pa.Array:
    key, value = field.children[0].children
    keys = to_public(key, array.keys, target.key_type)
    items = to_public(value, array.items, target.item_type)
    fields = [target.key_field, target.item_field]
    return _rebuilt(array, target, 2, pa.StructArray.from_arrays([keys, items], fields=fields))


def _rebuilt(array: pa.Array, target: pa.DataType, count: int, values: pa.Array) -> pa.Array:
    buffers = array.buffers()[:count]
    return pa.Array.from_buffers(
        target, len(array), buffers, array.null_count, array.offset, [values]
    )
