from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancelake.errors import UnsupportedError
from lancelake.format.memwal import wal_keys

KEYS = st.lists(
    st.tuples(st.binary(max_size=4), st.integers(-(2**63), 2**63 - 1), st.booleans()), min_size=1
)


@given(keys=KEYS)
def test_index_bytes_sort_as_the_columns_do(keys: list[tuple[bytes, int, bool]]) -> None:
    columns = [pa.array(part) for part in zip(*keys, strict=True)]
    encoded = wal_keys.for_index(columns).to_pylist()
    order = sorted(range(len(keys)), key=keys.__getitem__)
    assert [encoded[i] for i in order] == sorted(encoded)
    assert len(set(encoded)) == len(set(keys))


@pytest.mark.parametrize("kind", [pa.date32(), pa.float64(), pa.decimal128(5, 2), pa.binary(4)])
def test_key_types_that_no_release_takes(kind: pa.DataType) -> None:
    assert not wal_keys.is_supported(kind)
    with pytest.raises(UnsupportedError, match="MemWAL key"):
        wal_keys.for_index([pa.nulls(1, kind), pa.array([1])])
