"""Builds of text and vector indices on executors, parts of which are killed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import lancelake.pylance as lance

ROWS, FRAGMENT_ROWS, DIMENSION = 1200, 300, 8
QUERIES = np.random.default_rng(8).random((10, DIMENSION), dtype=np.float32)
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "IVF_PQ": ("v", {"num_partitions": 4, "num_sub_vectors": 4}),
    "IVF_HNSW_SQ": ("v", {"num_partitions": 2}),
    "INVERTED": ("t", {"with_position": True}),
}


def write_rows(place: Path, name: str) -> str:
    """Write a table of several fragments."""
    chance = np.random.default_rng(4)
    values = chance.random((ROWS, DIMENSION), dtype=np.float32)
    words = [" ".join(f"w{n}" for n in chance.integers(0, 30, 6)) for _ in range(ROWS)]
    lists = pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), DIMENSION)
    table = pa.table({"id": range(ROWS), "v": lists, "t": words})
    uri = str(place / f"{name}.lance")
    lance.write_dataset(table, uri, max_rows_per_file=FRAGMENT_ROWS)
    return uri


def build(spark: Any, uri: str, kind: str) -> None:
    """Build an index on executors, however small it is."""
    from lancelake.spark import LanceTable
    from lancelake.spark.jobs import index_build

    index_build.EMBEDDED_ROWS = 0
    column, parameters = KINDS[kind]
    LanceTable.forPath(spark, uri).createIndex(column, kind, **parameters).collect()


def answers(uri: str, kind: str) -> list[list[Any]]:
    """Return what searches of an index find."""
    table = lance.dataset(uri)
    assert [index["type"] for index in table.list_indices()]
    if kind == "INVERTED":
        texts = ["w1 w2", '"w3 w4"', "w5"]
        found = [table.search(text, k=ROWS, columns=["id"]) for text in texts]
        return [sorted(part["id"].to_pylist()) for part in found]
    near = {"column": "v", "k": 10, "nprobes": 2}
    found = [table.to_table(["id"], nearest={**near, "q": query}) for query in QUERIES]
    return [part["id"].to_pylist() for part in found]
