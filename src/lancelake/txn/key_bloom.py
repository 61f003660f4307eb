"""Keys as bytes, hashes and Bloom filters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lancelake.errors import InvalidRequestError, UnsupportedError
from lancelake.format import hashing
from lancelake.format import operations as ops
from lancelake.format.hashing import U64, Blocks
from lancelake.format.ids import FieldId

_SEPARATOR = b"\x00"
_INT64_BYTES = 8

# Logical types for which official releases record keys as well.
_RECORDED_BY_ALL = frozenset(
    {
        "int32",
        "int64",
        "uint32",
        "uint64",
        "string",
        "large_string",
        "binary",
        "large_binary",
    }
)


def encoded(columns: Sequence[pa.Array]) -> pa.Array:
    """Return the bytes of each row's key; a key of several parts ends each with a zero byte."""
    parts = [_encoded(c.combine_chunks() if isinstance(c, pa.ChunkedArray) else c) for c in columns]
    if len(parts) == 1:
        return parts[0]
    end = pa.scalar(b"", pa.large_binary())
    separator = pa.scalar(_SEPARATOR, pa.large_binary())
    return pc.binary_join_element_wise(*parts, end, separator)


def recorded_by_all(logical_type: str) -> bool:
    """Whether official releases record keys of this type as well."""
    return logical_type in _RECORDED_BY_ALL


def _encoded(column: pa.Array) -> pa.Array:
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        return _encoded(column.storage)
    if pa.types.is_dictionary(kind):
        return _encoded(column.dictionary_decode())
    if _is_text_or_bytes(kind):
        return column.cast(pa.large_binary())
    if pa.types.is_fixed_size_binary(kind) or pa.types.is_decimal(kind):
        return _fixed_width(column, kind.byte_width)
    if pa.types.is_floating(kind):
        return _from_words(_plain_floats(column), column)
    if pa.types.is_boolean(kind):
        return _from_words(_filled(column.cast(pa.uint8())).astype(np.uint64), column)
    if pa.types.is_integer(kind):
        wide = pa.int64() if pa.types.is_signed_integer(kind) else pa.uint64()
        return _from_words(_filled(column.cast(wide)), column)
    if pa.types.is_temporal(kind) and kind.bit_width in (32, 64):
        return _from_words(_filled(column.view(f"int{kind.bit_width}").cast(pa.int64())), column)
    msg = f"a key of type {kind} cannot be recorded"
    raise UnsupportedError(msg, type=str(kind), action="Use a key of another type.")


def _is_text_or_bytes(kind: pa.DataType) -> bool:
    checks = (
        pa.types.is_string,
        pa.types.is_large_string,
        pa.types.is_string_view,
        pa.types.is_binary,
        pa.types.is_large_binary,
        pa.types.is_binary_view,
    )
    return any(check(kind) for check in checks)


def _filled(column: pa.Array) -> np.ndarray:
    zero = pa.scalar(0, column.type)
    return np.asarray(pc.fill_null(column, zero).to_numpy(zero_copy_only=False))


def _plain_floats(column: pa.Array) -> np.ndarray:
    """Normalize equal numbers to equal bits: one zero, one NaN."""
    values = _filled(column.cast(pa.float64())) + 0.0
    values[np.isnan(values)] = np.nan
    return np.asarray(values.view(np.uint64))


def _from_words(words: np.ndarray, column: pa.Array) -> pa.Array:
    data = words.astype("<i8" if words.dtype.kind == "i" else "<u8").tobytes()
    return _from_bytes(data, _INT64_BYTES, column)


def _fixed_width(column: pa.Array, width: int) -> pa.Array:
    buffer = column.buffers()[1]
    start = column.offset * width
    data = b"" if buffer is None else buffer.to_pybytes()[start : start + len(column) * width]
    return _from_bytes(data, width, column)


def _from_bytes(data: bytes, width: int, column: pa.Array) -> pa.Array:
    offsets = np.arange(len(column) + 1, dtype=np.int64) * width
    buffers = [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(data)]
    plain = pa.Array.from_buffers(pa.large_binary(), len(column), buffers)
    if not column.null_count:
        return plain
    return pc.if_else(column.is_valid(), plain, pa.scalar(None, pa.large_binary()))


FILTER_BYTES = 32768
_EPSILON = float(np.finfo(np.float64).eps)


def build(
    field_ids: Sequence[FieldId], batches: Iterable[Sequence[pa.Array]]
) -> ops.KeyExistenceFilter:
    """Record the keys of inserted rows; each batch has one array per field of the key."""
    return of_hashes(field_ids, (hashed(field_ids, columns) for columns in batches))


def of_hashes(
    field_ids: Sequence[FieldId], hashes: Iterable[hashing.U64]
) -> ops.KeyExistenceFilter:
    """Record keys by their hashes."""
    blocks = hashing.empty(FILTER_BYTES)
    for part in hashes:
        hashing.insert(blocks, part)
    return _filter(tuple(field_ids), blocks)


def hashed(field_ids: Sequence[FieldId], columns: Sequence[pa.Array]) -> hashing.U64:
    """Hash the keys of rows, given as one array per field; keys with a null are left out."""
    if len(columns) != len(field_ids):
        msg = f"{len(columns)} columns for a key of {len(field_ids)} fields"
        raise InvalidRequestError(msg)
    return _hashes(encoded(columns))


def merged(filters: Sequence[ops.KeyExistenceFilter]) -> ops.KeyExistenceFilter:
    """Merge filters of the same kind, each over a part of the inserted rows."""
    field_ids = filters[0].field_ids
    blocks = hashing.empty(FILTER_BYTES)
    for each in filters:
        keys = each.keys
        if isinstance(keys, ops.ExactKeys) or each.field_ids != field_ids:
            raise InvalidRequestError("key filters over different keys cannot be merged")
        if len(keys.bitmap) != FILTER_BYTES:
            raise InvalidRequestError("key filters of different sizes cannot be merged")
        blocks |= _blocks(keys)
    return _filter(field_ids, blocks)


def may_intersect(one: ops.KeyExistenceFilter, other: ops.KeyExistenceFilter) -> bool:
    """Whether both may have a key in common; true also when they cannot be compared.

    A key sets one bit in every word of its block, so two filters that share a key share a bit
    in every word of some block.
    """
    if one.field_ids != other.field_ids:
        return True
    mine, theirs = one.keys, other.keys
    if isinstance(mine, ops.ExactKeys) and isinstance(theirs, ops.ExactKeys):
        return not set(mine.key_hashes).isdisjoint(theirs.key_hashes)
    if isinstance(mine, ops.ExactKeys) or isinstance(theirs, ops.ExactKeys):
        return True
    if not _comparable(mine, theirs):
        return True
    shared = _blocks(mine) & _blocks(theirs)
    return bool(np.any(np.all(shared != 0, axis=1)))


def may_contain(keys: ops.KeyExistenceFilter, hashes: hashing.U64) -> bool:
    """Whether one of these hashed keys may be recorded; true when that is unknown."""
    if isinstance(keys.keys, ops.ExactKeys) or not _comparable(keys.keys, keys.keys):
        return True
    blocks = _blocks(keys.keys)
    return bool(hashing.contains(blocks, hashes).any())


def is_empty(keys: ops.KeyExistenceFilter) -> bool:
    """Whether no key was recorded."""
    if isinstance(keys.keys, ops.ExactKeys):
        return not keys.keys.key_hashes
    return not any(keys.keys.bitmap)


def _comparable(one: ops.BloomKeys, other: ops.BloomKeys) -> bool:
    return (
        one.number_of_items == other.number_of_items
        and abs(one.probability - other.probability) < _EPSILON
        and len(one.bitmap) == len(other.bitmap)
        and len(one.bitmap) % hashing.BLOCK_BYTES == 0
    )


def _filter(field_ids: tuple[FieldId, ...], blocks: Blocks) -> ops.KeyExistenceFilter:
    keys = ops.BloomKeys(
        bitmap=hashing.encode(blocks),
        num_bits=FILTER_BYTES * 8,
        number_of_items=ops.DEFAULT_ITEMS,
        probability=ops.DEFAULT_PROBABILITY,
    )
    return ops.KeyExistenceFilter(field_ids=field_ids, keys=keys)


def _blocks(keys: ops.BloomKeys) -> Blocks:
    return hashing.decode(keys.bitmap)


def _hashes(keys: pa.Array) -> hashing.U64:
    """Hash all keys that are not null."""
    present = keys.drop_null()
    if len(present) == 0:
        return np.array([], dtype=np.uint64)
    offsets = np.frombuffer(present.buffers()[1], dtype=np.int64)
    offsets = offsets[present.offset : present.offset + len(present) + 1]
    data = np.frombuffer(present.buffers()[2] or b"", dtype=np.uint8)
    return hashing.hash_slices(data, offsets)


MOST_KEYS = 4 << 20
"""Limit of hashes in memory; above it, only the recorded filter is used."""


@dataclass(frozen=True, slots=True, eq=False)
class KeyHashes:
    """Hashes in ascending order, without repeats."""

    hashes: U64

    def __len__(self) -> int:
        return len(self.hashes)

    @staticmethod
    def of(parts: Iterable[U64 | None]) -> KeyHashes | None:
        """Merge parts; None when a part is unknown or when there are too many keys."""
        hashes_of: list[U64] = [np.array([], dtype=np.uint64)]
        count = 0
        for part in parts:
            count += 0 if part is None else len(part)
            if part is None or count > MOST_KEYS:
                return None
            hashes_of.append(part)
        # np.unique hashes the numbers before it sorts them, which takes ten times as long.
        ordered = np.sort(np.concatenate(hashes_of))
        is_first = np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]
        return KeyHashes(ordered[is_first])

    def contains_any(self, hashes: U64) -> bool:
        """Whether one of these keys is inserted."""
        if not len(self.hashes):
            return False
        places = np.searchsorted(self.hashes, hashes)
        places[places == len(self.hashes)] = 0
        return bool((self.hashes[places] == hashes).any())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class InsertedKeys:
    """Keys of new rows; `hashes` is None when there are too many to keep in memory."""

    recorded: ops.KeyExistenceFilter
    hashes: KeyHashes | None


def collected(field_ids: Sequence[FieldId], batches: Iterable[Sequence[pa.Array]]) -> InsertedKeys:
    """Collect the keys of new rows; each batch has one array per field of the key."""
    parts: list[U64] | None = []
    count = 0

    def hash_batches() -> Iterator[U64]:
        nonlocal parts, count
        for columns in batches:
            hashes = hashed(field_ids, columns)
            count += len(hashes)
            parts = None if parts is None or count > MOST_KEYS else [*parts, hashes]
            yield hashes

    recorded = of_hashes(field_ids, hash_batches())
    return InsertedKeys(recorded=recorded, hashes=None if parts is None else KeyHashes.of(parts))


def united(parts: Sequence[InsertedKeys]) -> InsertedKeys:
    """Merge the keys of several parts of the new rows."""
    hashes = KeyHashes.of(None if p.hashes is None else p.hashes.hashes for p in parts)
    return InsertedKeys(recorded=merged([p.recorded for p in parts]), hashes=hashes)
