"""Were the same keys inserted twice? Bloom filters over keys, as upserts record them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelake.errors import InvalidRequestError
from lancelake.format.ids import FieldId
from lancelake.format.key_filter import (
    DEFAULT_ITEMS,
    DEFAULT_PROBABILITY,
    BloomKeys,
    ExactKeys,
    KeyExistenceFilter,
)
from lancelake.txn import key_bytes, xxh64

FILTER_BYTES = 32768
_WORDS = 8
_WORD_BYTES = 4
_WORD_BITS = 8 * _WORD_BYTES
_BLOCKS = FILTER_BYTES // (_WORDS * _WORD_BYTES)
_SALTS = np.array(
    [
        0x47B6137B,
        0x44974D91,
        0x8824AD5B,
        0xA2B7289D,
        0x705495C7,
        0x2DF1424B,
        0x9EFC4947,
        0x5C6BFB31,
    ],
    dtype=np.uint32,
)
_EPSILON = float(np.finfo(np.float64).eps)

Blocks = npt.NDArray[np.uint32]


def build(
    field_ids: Sequence[FieldId], batches: Iterable[Sequence[pa.Array]]
) -> KeyExistenceFilter:
    """Record the keys of inserted rows; each batch has one array per field of the key."""
    return of_hashes(field_ids, (hashed(field_ids, columns) for columns in batches))


def of_hashes(field_ids: Sequence[FieldId], hashes: Iterable[xxh64.U64]) -> KeyExistenceFilter:
    """Record keys by their hashes."""
    blocks = np.zeros((_BLOCKS, _WORDS), dtype=np.uint32)
    for part in hashes:
        _insert(blocks, part)
    return _filter(tuple(field_ids), blocks)


def hashed(field_ids: Sequence[FieldId], columns: Sequence[pa.Array]) -> xxh64.U64:
    """Hash the keys of rows, given as one array per field; keys with a null are left out."""
    if len(columns) != len(field_ids):
        msg = f"{len(columns)} columns for a key of {len(field_ids)} fields"
        raise InvalidRequestError(msg)
    return _hashes(key_bytes.encoded(columns))


def merged(filters: Sequence[KeyExistenceFilter]) -> KeyExistenceFilter:
    """Unite filters of the same kind, each over a part of the inserted rows."""
    field_ids = filters[0].field_ids
    blocks = np.zeros((_BLOCKS, _WORDS), dtype=np.uint32)
    for each in filters:
        keys = each.keys
        if isinstance(keys, ExactKeys) or each.field_ids != field_ids:
            raise InvalidRequestError("key filters over different keys cannot be united")
        if len(keys.bitmap) != FILTER_BYTES:
            raise InvalidRequestError("key filters of different sizes cannot be united")
        blocks |= _blocks(keys)
    return _filter(field_ids, blocks)


def may_intersect(one: KeyExistenceFilter, other: KeyExistenceFilter) -> bool:
    """Whether both may hold the same key; true also when they cannot be compared.

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
    """Whether one of these hashed keys may be recorded; true when that cannot be told."""
    if isinstance(keys.keys, ExactKeys) or not _comparable(keys.keys, keys.keys):
        return True
    blocks = _blocks(keys.keys)
    at, bits = _places(hashes, len(blocks))
    is_set = (blocks[at] >> bits) & np.uint32(1)
    return bool(is_set.all(axis=1).any())


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
        and len(one.bitmap) % (_WORDS * _WORD_BYTES) == 0
    )


def _filter(field_ids: tuple[FieldId, ...], blocks: Blocks) -> KeyExistenceFilter:
    keys = BloomKeys(
        bitmap=blocks.astype("<u4").tobytes(),
        num_bits=FILTER_BYTES * 8,
        number_of_items=DEFAULT_ITEMS,
        probability=DEFAULT_PROBABILITY,
    )
    return KeyExistenceFilter(field_ids=field_ids, keys=keys)


def _blocks(keys: BloomKeys) -> Blocks:
    return np.frombuffer(keys.bitmap, dtype="<u4").reshape(-1, _WORDS)


def _insert(blocks: Blocks, hashes: xxh64.U64) -> None:
    at, bits = _places(hashes, len(blocks))
    words = at[:, None] * _WORDS + np.arange(_WORDS)
    is_set = np.zeros(blocks.size * _WORD_BITS, dtype=np.bool_)
    is_set[words * _WORD_BITS + bits] = True
    blocks |= np.packbits(is_set, bitorder="little").view("<u4").reshape(blocks.shape)


def _places(hashes: xxh64.U64, blocks: int) -> tuple[npt.NDArray[np.int64], Blocks]:
    """Return the block of each key, and the number of its bit in every word of the block."""
    at = ((hashes >> np.uint64(32)) * np.uint64(blocks)) >> np.uint64(32)
    low = (hashes & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    bits = (low[:, None] * _SALTS[None, :]) >> np.uint32(27)
    return at.astype(np.int64), bits


def _hashes(keys: pa.Array) -> xxh64.U64:
    """Hash all keys that are not null, those of one length together."""
    present = keys.drop_null()
    if len(present) == 0:
        return np.array([], dtype=np.uint64)
    offsets = np.frombuffer(present.buffers()[1], dtype=np.int64)
    offsets = offsets[present.offset : present.offset + len(present) + 1]
    data = np.frombuffer(present.buffers()[2] or b"", dtype=np.uint8)
    lengths = np.diff(offsets)
    hashed = []
    for length in np.unique(lengths):
        starts = offsets[:-1][lengths == length]
        hashed.append(xxh64.hash_rows(data[starts[:, None] + np.arange(length)]))
    return np.concatenate(hashed)
