"""Index descriptions match those of official releases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lancelake.format import index_meta
from lancelake.format.manifest import decode_manifest
from tests.support.official import Official

ROWS = 300
BUILD = """
import numpy as np
chance = np.random.default_rng(0)
vectors = pa.FixedSizeListArray.from_arrays(pa.array(chance.random(rows * 8, dtype=np.float32)), 8)
texts = [f"some words {i}" for i in range(rows)]
labels = [["a", str(i % 5)] for i in range(rows)]
documents = pa.array([f'{{"n": {i}}}' for i in range(rows)])
columns = {"n": list(range(rows)), "t": texts, "l": labels, "v": vectors}
json_column = pa.ExtensionArray.from_storage(pa.json_(), documents)
table = pa.table(columns).append_column("j", json_column)
ds = lance.write_dataset(table, uri, data_storage_version="2.1")
for kind, column, options in kinds:
    if kind == "JSON":
        ds.create_scalar_index(column, lance.indices.IndexConfig("json", options), name=kind)
    elif kind.startswith("IVF"):
        ds.create_index(column, kind, name=kind, num_partitions=2, num_sub_vectors=2, **options)
    else:
        ds.create_scalar_index(column, kind, name=kind, **options)
    ds = lance.dataset(uri)
result = {d.name: {"type": d.index_type, "details": d.details} for d in ds.describe_indices()}
"""
KINDS: list[tuple[str, str, dict[str, Any]]] = [
    ("BTREE", "n", {}),
    ("BITMAP", "n", {}),
    ("ZONEMAP", "n", {}),
    ("BLOOMFILTER", "n", {}),
    ("NGRAM", "t", {}),
    ("LABEL_LIST", "l", {}),
    ("INVERTED", "t", {"with_position": True, "stem": False}),
    ("JSON", "j", {"target_index_type": "btree", "path": "$.n"}),
    ("IVF_FLAT", "v", {"metric": "cosine"}),
    ("IVF_PQ", "v", {"metric": "dot"}),
    ("IVF_SQ", "v", {}),
    ("IVF_RQ", "v", {}),
    ("IVF_HNSW_PQ", "v", {}),
    ("IVF_HNSW_SQ", "v", {"m": 12}),
]
# Settings that 4.0.2 does not know, at the values that stand for it.
ADDED_SINCE_4 = {
    "block_size",
    "split_identifiers",
    "split_on_numerics",
    "preserve_original",
    "index_operators",
    "document_granularity",
}


def described(root: str) -> dict[str, tuple[str | None, dict[str, Any]]]:
    manifests = [
        decode_manifest(path.read_bytes()) for path in (Path(root) / "_versions").glob("*.manifest")
    ]
    newest = max(manifests, key=lambda found: found.manifest.version)
    assert newest.index_section is not None
    entries = index_meta.decode_section(newest.index_section)
    return {entry.name: index_meta.describe(entry.details) for entry in entries}


def build(official: Official, uri: str) -> dict[str, tuple[str, dict[str, Any]]]:
    found = official.run(uri, BUILD, rows=ROWS, kinds=KINDS)
    return {name: (body["type"], body["details"]) for name, body in found.items()}


def test_the_14_line_describes_its_indices_as_we_do(official_14, tmp_table):
    theirs = build(official_14, tmp_table)

    assert described(tmp_table) == theirs


def test_the_4_line_describes_its_indices_as_we_do_in_the_fields_that_it_has(official_4, tmp_table):
    theirs = build(official_4, tmp_table)
    mine = described(tmp_table)
    for name, (kind, details) in mine.items():
        if kind is None:
            mine[name] = (name, details)
        elif kind == "Inverted":
            mine[name] = (kind, {k: v for k, v in details.items() if k not in ADDED_SINCE_4})

    assert mine == theirs
