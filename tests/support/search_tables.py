"""A table with texts and vectors to search."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

import lancelake

ROWS = 60
DIMENSION = 4
_WORDS = ("fox", "harbour", "lantern", "meadow", "river", "stone")


def article_rows(rows: int = ROWS) -> pa.Table:
    """Return rows with a text of some words, a vector and a topic."""
    matrix = article_vectors(rows)
    texts = [
        " ".join(word for place, word in enumerate(_WORDS) if number % (place + 2) == 0)
        for number in range(rows)
    ]
    return pa.table(
        {
            "id": pa.array(range(rows), pa.int64()),
            "topic": [("north", "south")[number % 2] for number in range(rows)],
            "text": texts,
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(matrix.reshape(-1)), DIMENSION),
        }
    )


def article_vectors(rows: int = ROWS) -> np.ndarray:
    """Return the vectors of the rows."""
    return np.random.default_rng(3).random((rows, DIMENSION), dtype=np.float32)


def write_articles(path: Path, rows: int = ROWS) -> lancelake.LanceDataset:
    """Write the rows as three fragments, with an index of the texts."""
    made = lancelake.write_dataset(
        article_rows(rows), str(path), max_rows_per_file=max(1, rows // 3)
    )
    made.create_scalar_index("text", "INVERTED", with_position=True)
    return made
