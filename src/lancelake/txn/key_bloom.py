"""Bloom filters over the keys that upserts insert, for conflict detection."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from lancelake.errors import InvalidRequestError
from lancelake.format import split_block, xxh64
from lancelake.format.ids import FieldId
from lancelake.format.key_filter import (
    DEFAULT_ITEMS,
    DEFAULT_PROBABILITY,
    BloomKeys,
    ExactKeys,
    KeyExistenceFilter,
)
from lancelake.format.split_block import Blocks
from lancelake.txn import key_bytes

FILTER_BYTES = 32768
_EPSILON = float(np.finfo(np.float64).eps)


def build(
    field_ids: Sequence[FieldId], batches: Iterable[Sequence[pa.Array]]
) -> KeyExistenceFilter:
    """Record the keys of inserted rows; each batch has one array per field of the key."""
    return of_hashes(field_ids, (hashed(field_ids, columns) for columns in batches))


def of_hashes(field_ids: Sequence[FieldId], hashes: Iterable[xxh64.U64]) -> KeyExistenceFilter:
    """Record keys by their hashes."""
    blocks = split_block.empty(FILTER_BYTES)
    for part in hashes:
        split_block.insert(blocks, part)
    return _filter(tuple(field_ids), blocks)


def hashed(field_ids: Sequence[FieldId], columns: Sequence[pa.Array]) -> xxh64.U64:
    """Hash the keys of rows, given as one array per field; keys with a null are left out."""
    if len(columns) != len(field_ids):
        msg = f"{len(columns)} columns for a key of {len(field_ids)} fields"
        raise InvalidRequestError(msg)
    return _hashes(key_bytes.encoded(columns))


def merged(filters: Sequence[KeyExistenceFilter]) -> KeyExistenceFilter:
    """Merge filters of the same kind, each over a part of the inserted rows."""
    field_ids = filters[0].field_ids
    blocks = split_block.empty(FILTER_BYTES)
    for each in filters:
        keys = each.keys
        if isinstance(keys, ExactKeys) or each.field_ids != field_ids:
            raise InvalidRequestError("key filters over different keys cannot be merged")
        if len(keys.bitmap) != FILTER_BYTES:
            raise InvalidRequestError("key filters of different sizes cannot be merged")
        blocks |= _blocks(keys)
    return _filter(field_ids, blocks)


def may_intersect(one: KeyExistenceFilter, other: KeyExistenceFilter) -> bool:
    """Whether both may have a key in common; true also when they cannot be compared.

    A key sets one bit in every word of its block, so two filters that share a key share a bit
    in every word of some block.
    """
    if one.field_ids != other.field_ids:
        return True
    mine, theirs = one.keys, other.keys
    if isinstance(mine, ExactKeys) and isinstance(theirs, ExactKeys):
        return not set(mine.key_hashes).isdisjoint(theirs.key_hashes)
    if isinstance(mine, ExactKeys) or isinstance(theirs, ExactKeys):
        return True
    if not _comparable(mine, theirs):
        return True
    shared = _blocks(mine) & _blocks(theirs)
    return bool(np.any(np.all(shared != 0, axis=1)))


def may_contain(keys: KeyExistenceFilter, hashes: xxh64.U64) -> bool:
    """Whether one of these hashed keys may be recorded; true when that is unknown."""
    if isinstance(keys.keys, ExactKeys) or not _comparable(keys.keys, keys.keys):
        return True
    blocks = _blocks(keys.keys)
    return bool(split_block.contains(blocks, hashes).any())


def is_empty(keys: KeyExistenceFilter) -> bool:
    """Whether no key was recorded."""
    if isinstance(keys.keys, ExactKeys):
        return not keys.keys.key_hashes
    return not any(keys.keys.bitmap)


def _comparable(one: BloomKeys, other: BloomKeys) -> bool:
    return (
        one.number_of_items == other.number_of_items
        and abs(one.probability - other.probability) < _EPSILON
        and len(one.bitmap) == len(other.bitmap)
        and len(one.bitmap) % split_block.BLOCK_BYTES == 0
    )


def _filter(field_ids: tuple[FieldId, ...], blocks: Blocks) -> KeyExistenceFilter:
    keys = BloomKeys(
        bitmap=split_block.encode(blocks),
        num_bits=FILTER_BYTES * 8,
        number_of_items=DEFAULT_ITEMS,
        probability=DEFAULT_PROBABILITY,
    )
    return KeyExistenceFilter(field_ids=field_ids, keys=keys)


def _blocks(keys: BloomKeys) -> Blocks:
    return split_block.decode(keys.bitmap)


def _hashes(keys: pa.Array) -> xxh64.U64:
    """Hash all keys that are not null."""
    present = keys.drop_null()
    if len(present) == 0:
        return np.array([], dtype=np.uint64)
    offsets = np.frombuffer(present.buffers()[1], dtype=np.int64)
    offsets = offsets[present.offset : present.offset + len(present) + 1]
    data = np.frombuffer(present.buffers()[2] or b"", dtype=np.uint8)
    return xxh64.hash_slices(data, offsets)
