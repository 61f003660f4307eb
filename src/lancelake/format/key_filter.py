"""Key filters: keys that an upsert inserted, recorded for conflict checks."""

from __future__ import annotations

from dataclasses import dataclass

from lancelake.errors import CorruptTableError
from lancelake.format.ids import FieldId
from lancelake.proto.transaction_pb2 import Transaction

DEFAULT_ITEMS = 8192
DEFAULT_PROBABILITY = 0.00057


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactKeys:
    """Hashes of all keys."""

    key_hashes: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BloomKeys:
    """A split-block bloom filter over the keys."""

    bitmap: bytes
    num_bits: int
    number_of_items: int = DEFAULT_ITEMS
    probability: float = DEFAULT_PROBABILITY


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyExistenceFilter:
    """Fields of the key, and a filter of the inserted keys."""

    field_ids: tuple[FieldId, ...]
    keys: ExactKeys | BloomKeys


def decode(message: Transaction.KeyExistenceFilter) -> KeyExistenceFilter:
    """Read a filter."""
    keys: ExactKeys | BloomKeys
    match message.WhichOneof("data"):
        case "exact":
            keys = ExactKeys(key_hashes=tuple(message.exact.key_hashes))
        case "bloom":
            keys = BloomKeys(
                bitmap=message.bloom.bitmap,
                num_bits=message.bloom.num_bits,
                number_of_items=message.bloom.number_of_items or DEFAULT_ITEMS,
                probability=message.bloom.probability or DEFAULT_PROBABILITY,
            )
        case _:
            raise CorruptTableError("a key filter has no keys")
    return KeyExistenceFilter(field_ids=tuple(FieldId(f) for f in message.field_ids), keys=keys)


def encode(value: KeyExistenceFilter) -> Transaction.KeyExistenceFilter:
    """Write a filter."""
    message = Transaction.KeyExistenceFilter(field_ids=value.field_ids)
    if isinstance(value.keys, ExactKeys):
        message.exact.key_hashes.extend(value.keys.key_hashes)
        message.exact.SetInParent()
    else:
        message.bloom.bitmap = value.keys.bitmap
        message.bloom.num_bits = value.keys.num_bits
        message.bloom.number_of_items = value.keys.number_of_items
        message.bloom.probability = value.keys.probability
    return message
