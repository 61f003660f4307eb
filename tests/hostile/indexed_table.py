"""A small table with indices of every family, and what a user does with them."""

from __future__ import annotations

from collections.abc import Callable, Container
from pathlib import Path

import numpy as np
import pyarrow as pa

import lancelake.pylance as lance
from lancelake.pylance.query import PhraseQuery

_ROWS = 256
_WORDS = ("red", "green", "blue", "black")
_INDICES = {
    "id": "BTREE",
    "kind": "BITMAP",
    "tags": "LABEL_LIST",
    "zone": "ZONEMAP",
    "hash": "BLOOMFILTER",
    "name": "NGRAM",
    "text": "INVERTED",
    "pq": "IVF_PQ",
    "graph": "IVF_HNSW_SQ",
}
_QUERY = [0.5] * 8


def build(root: Path, columns: Container[str] | None = None) -> Path:
    """Write the table below a folder, index some columns or all, and return its place."""
    uri = root / "indexed.lance"
    table = lance.write_dataset(rows(0, _ROWS), str(uri))
    for column, kind in _INDICES.items():
        if columns is not None and column not in columns:
            continue
        if kind.startswith("IVF"):
            options = {"num_sub_vectors": 2} if kind == "IVF_PQ" else {}
            table.create_index(column, kind, num_partitions=2, **options)
        else:
            options = {"with_position": True} if kind == "INVERTED" else {}
            table.create_scalar_index(column, kind, **options)
    return uri


def rows(first: int, last: int) -> pa.Table:
    """Return rows of the table."""
    numbers = range(first, last)
    vectors = np.random.default_rng(first).random((len(numbers), 8), np.float32)
    cells = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 8)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "kind": [_WORDS[n % 4] for n in numbers],
            "tags": [[_WORDS[n % 3], _WORDS[n % 4]] for n in numbers],
            "zone": pa.array(numbers, pa.int64()),
            "hash": pa.array(numbers, pa.int64()),
            "name": [f"name of {n}" for n in numbers],
            "text": [f"{_WORDS[n % 4]} and {_WORDS[n % 3]} number {n}" for n in numbers],
            "pq": cells,
            "graph": cells,
        }
    )


def _filtered(condition: str) -> Callable[[lance.LanceDataset], object]:
    return lambda table: table.to_table(columns=["id"], filter=condition)


def _nearest(column: str) -> Callable[[lance.LanceDataset], object]:
    request = {"column": column, "q": _QUERY, "k": 3, "nprobes": 2, "refine_factor": 2}
    return lambda table: table.to_table(columns=["id"], nearest=request)


def _statistics(table: lance.LanceDataset) -> None:
    for index in table.describe_indices():
        table.stats.index_stats(index.name)


READS: dict[str, Callable[[lance.LanceDataset], object]] = {
    "btree": _filtered("id = 7"),
    "btree range": _filtered("id > 200"),
    "bitmap": _filtered("kind = 'red'"),
    "labels": _filtered("array_has(tags, 'blue')"),
    "zones": _filtered("zone BETWEEN 3 AND 5"),
    "bloom filter": _filtered("hash = 9"),
    "ngrams": _filtered("contains(name, 'of 25')"),
    "words": lambda table: table.to_table(columns=["id"], full_text_query="red"),
    "phrase": lambda table: table.to_table(
        columns=["id"], full_text_query=PhraseQuery("red and", "text")
    ),
    "quantized": _nearest("pq"),
    "graph": _nearest("graph"),
    "indices": lambda table: table.describe_indices(),
    "statistics": _statistics,
    "count": lambda table: table.count_rows("id < 9"),
}
WRITES: dict[str, Callable[[lance.LanceDataset], object]] = {
    "append": lambda table: table.insert(rows(1_000, 1_010)),
    "delete": lambda table: table.delete("id = 7"),
    "refresh": lambda table: table.optimize.optimize_indices(),
    "compact": lambda table: table.optimize.compact_files(),
    "drop": lambda table: table.drop_index("id_idx"),
}
