from __future__ import annotations

import numpy as np
import pytest

from lancelake.format import hashing

# Published values of XXH64 with seed 0.
KNOWN = {
    b"": 0xEF46DB3751D8E999,
    b"a": 0xD24EC4F1A98C6E5B,
    b"abc": 0x44BC2CF5AD770999,
    b"xxhash": 0x32DD38952C4BC720,
    b"Nobody inspects the spammish repetition": 0xFBCEA83C8A378BF1,
}


@pytest.mark.parametrize("text", KNOWN)
def test_hashes_are_those_that_are_published(text: bytes) -> None:
    rows = np.frombuffer(text, dtype=np.uint8).reshape(1, len(text))
    assert int(hashing.hash_rows(rows)[0]) == KNOWN[text]


@pytest.mark.parametrize("length", [1, 4, 8, 31, 32, 33, 64, 100])
def test_rows_are_hashed_one_by_one(length: int) -> None:
    rows = (np.arange(3 * length) % 251).astype(np.uint8).reshape(3, length)
    alone = [int(hashing.hash_rows(rows[n : n + 1])[0]) for n in range(3)]
    assert [int(h) for h in hashing.hash_rows(rows)] == alone


def test_slices_are_hashed_in_their_order() -> None:
    texts = [b"abc", b"", b"a", b"xxhash", b"", b"abc"]
    data = np.frombuffer(b"".join(texts), dtype=np.uint8)
    offsets = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    assert hashing.hash_slices(data, offsets).tolist() == [KNOWN[text] for text in texts]
