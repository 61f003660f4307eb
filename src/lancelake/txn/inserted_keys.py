"""Keys that a change inserts: the recorded bloom filter, and their exact hashes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lancelake.format.ids import FieldId
from lancelake.format.key_filter import KeyExistenceFilter
from lancelake.format.xxh64 import U64
from lancelake.txn import key_bloom
from lancelake.txn.key_hashes import MOST_KEYS, KeyHashes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class InsertedKeys:
    """Keys of new rows; `hashes` is None when there are too many to keep in memory."""

    recorded: KeyExistenceFilter
    hashes: KeyHashes | None


def collected(field_ids: Sequence[FieldId], batches: Iterable[Sequence[pa.Array]]) -> InsertedKeys:
    """Collect the keys of new rows; each batch has one array per field of the key."""
    held: list[U64] | None = []
    count = 0

    def hashed() -> Iterator[U64]:
        nonlocal held, count
        for columns in batches:
            found = key_bloom.hashed(field_ids, columns)
            count += len(found)
            held = None if held is None or count > MOST_KEYS else [*held, found]
            yield found

    recorded = key_bloom.of_hashes(field_ids, hashed())
    return InsertedKeys(recorded=recorded, hashes=None if held is None else KeyHashes.of(held))


def united(parts: Sequence[InsertedKeys]) -> InsertedKeys:
    """Merge the keys of several parts of the new rows."""
    hashes = KeyHashes.of(None if p.hashes is None else p.hashes.hashes for p in parts)
    return InsertedKeys(recorded=key_bloom.merged([p.recorded for p in parts]), hashes=hashes)
