"""BM25: lengths of documents that scores round."""

from __future__ import annotations

import numpy as np
import pytest

from lancelake.index.text.bm25 import rounded_lengths


@pytest.mark.parametrize(
    ("length", "rounded"),
    [(0, 0), (1, 1), (15, 15), (17, 16), (31, 30), (100, 96), (2047, 1920), (2**32 - 1, 15 << 28)],
)
def test_lengths_keep_their_four_highest_bits(length: int, rounded: int) -> None:
    assert rounded_lengths(np.array([length], np.uint32)).tolist() == [rounded]
