"""Key filters are read with their defaults and written in full."""

from __future__ import annotations

import pytest

from lancelake.errors import CorruptTableError
from lancelake.format import operations as ops
from lancelake.format.ids import FieldId
from lancelake.format.operations import BloomKeys, ExactKeys, KeyExistenceFilter
from lancelake.proto.transaction_pb2 import Transaction


def test_zeros_stand_for_the_defaults_of_the_format():
    message = Transaction.KeyExistenceFilter(bloom=Transaction.BloomFilter(bitmap=b"\1"))
    keys = ops.decode_keys(message).keys

    assert isinstance(keys, BloomKeys)
    assert (keys.number_of_items, keys.probability) == (8192, 0.00057)


def test_a_set_without_keys_is_still_a_set():
    empty = KeyExistenceFilter(field_ids=(FieldId(1),), keys=ExactKeys(key_hashes=()))

    assert ops.decode_keys(ops.encode_keys(empty)) == empty


def test_a_filter_without_bits_is_still_a_filter():
    empty = KeyExistenceFilter(field_ids=(), keys=BloomKeys(bitmap=b"", num_bits=0))

    assert ops.decode_keys(ops.encode_keys(empty)) == empty


def test_a_filter_without_keys_is_damage():
    with pytest.raises(CorruptTableError):
        ops.decode_keys(Transaction.KeyExistenceFilter(field_ids=[1]))
