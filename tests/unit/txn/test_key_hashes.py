from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lancelake.format.ids import FieldId
from lancelake.txn import key_bloom
from lancelake.txn.key_bloom import InsertedKeys

KEY = (FieldId(0),)
KEYS = st.lists(st.one_of(st.none(), st.integers(-50, 50)), max_size=30)


def _collected(*batches: list[int | None]) -> InsertedKeys:
    return key_bloom.collected(KEY, [[pa.array(batch, pa.int64())] for batch in batches])


def _hashed(keys: list[int | None]) -> np.ndarray:
    return key_bloom.hashed(KEY, [pa.array(keys, pa.int64())])


@given(inserted=KEYS, added=KEYS)
def test_hashes_contain_exactly_the_keys_that_were_inserted(
    inserted: list[int | None], added: list[int | None]
) -> None:
    hashes = _collected(inserted).hashes
    assert hashes is not None
    shared = (set(inserted) & set(added)) - {None}
    assert hashes.contains_any(_hashed(added)) == bool(shared)


@given(inserted=KEYS, added=KEYS)
def test_the_recorded_filter_may_contain_every_key_that_was_inserted(
    inserted: list[int | None], added: list[int | None]
) -> None:
    recorded = _collected(inserted).recorded
    if (set(inserted) & set(added)) - {None}:
        assert key_bloom.may_contain(recorded, _hashed(added))
    assert recorded == key_bloom.build(KEY, [[pa.array(inserted, pa.int64())]])


@given(first=KEYS, second=KEYS)
def test_parts_united_are_the_same_as_all_at_once(
    first: list[int | None], second: list[int | None]
) -> None:
    united = key_bloom.united([_collected(first), _collected(second)])
    whole = _collected(first, second)
    assert united.recorded == whole.recorded
    assert united.hashes is not None and whole.hashes is not None
    assert np.array_equal(united.hashes.hashes, whole.hashes.hashes)


def test_too_many_keys_are_not_held(monkeypatch) -> None:
    monkeypatch.setattr(key_bloom, "MOST_KEYS", 3)
    assert _collected([1, 2, 3]).hashes is not None
    assert _collected([1, 2], [3, 4]).hashes is None
    assert key_bloom.united([_collected([1, 2]), _collected([3, 4])]).hashes is None
