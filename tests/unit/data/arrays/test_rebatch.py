"""Batches are split and joined to a size without losing rows."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lancelake.data.arrays.batches import LEAST_BYTES, gathered, joined_up_to, pieces, rebatched

SIZES = st.lists(st.integers(0, 20), max_size=8)


def batches_of(sizes: list[int]) -> list[pa.RecordBatch]:
    """Return batches of these sizes that count up."""
    found, first = [], 0
    for size in sizes:
        found.append(pa.record_batch({"n": pa.array(range(first, first + size), pa.int64())}))
        first += size
    return found


def numbers(batches: list[pa.RecordBatch]) -> list[int]:
    """Return all values."""
    return [n for batch in batches for n in batch.column("n").to_pylist()]


@given(sizes=SIZES, rows=st.integers(1, 7))
def test_all_batches_but_the_last_have_the_size_asked_for(sizes: list[int], rows: int) -> None:
    found = list(rebatched(iter(batches_of(sizes)), rows))
    assert numbers(found) == list(range(sum(sizes)))
    assert all(batch.num_rows == rows for batch in found[:-1])


@given(sizes=SIZES)
def test_small_batches_are_joined(sizes: list[int]) -> None:
    found = list(gathered(batches_of(sizes)))
    assert numbers(found) == list(range(sum(sizes)))
    assert len(found) <= 1


def test_a_large_batch_stays_alone() -> None:
    large = pa.record_batch({"n": pa.nulls(LEAST_BYTES // 8, pa.int64())})
    assert [batch.num_rows for batch in gathered([large, large])] == [large.num_rows] * 2


@given(size=st.integers(0, 50), limit=st.integers(1, 500))
def test_a_batch_is_cut_to_bytes(size: int, limit: int) -> None:
    (batch,) = batches_of([size])
    found = list(pieces(batch, limit))
    assert numbers(found) == list(range(size))
    assert all(piece.num_rows == 1 or piece.nbytes <= limit for piece in found)


@given(sizes=st.lists(st.integers(1, 7), max_size=8))
def test_joined_batches_are_as_large_as_they_may_be(sizes: list[int]) -> None:
    found = list(joined_up_to(batches_of(sizes), 7))
    assert numbers(found) == list(range(sum(sizes)))
    lengths = [batch.num_rows for batch in found]
    assert all(length <= 7 for length in lengths)
    firsts = {sum(sizes[:n]): size for n, size in enumerate(sizes)}
    starts = [batch.column("n")[0].as_py() for batch in found[1:]]
    assert all(before + firsts[at] > 7 for before, at in zip(lengths, starts, strict=False))
