"""Small programs for pylance's helpers return the same with our import."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import lance as official
import numpy as np
import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.pylance.dataset import VectorIndexReader
from lancelake.pylance.vector import vec_to_table
from tests.support.official import Official

ROWS = 400
WIDTH = 4
PROGRAMS = {
    "tokens": "[[t.text, t.position] for t in lance.tokenize('The quick Foxes, running')]",
    "tokens as they are": (
        "[[t.text, t.position] for t in lance.tokenize('The Foxes', stem=False, "
        "lower_case=False, remove_stop_words=False)]"
    ),
    "n-grams": "[t.text for t in lance.tokenize('hello', base_tokenizer='ngram')]",
    "counters": "[lance.bytes_read_counter() >= 0, lance.iops_counter() >= 0]",
    "files": "lance.dataset(uri).new_file_session().contains('nothing')",
}


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a table with an index of vectors, built by official Lance."""
    path = tmp_path_factory.mktemp("calls") / "t"
    values = np.random.default_rng(11).random((ROWS, WIDTH), dtype=np.float32)
    rows = vec_to_table(values, names="v").append_column("id", pa.array(range(ROWS)))
    made = official.write_dataset(rows, path, data_storage_version="2.1")
    made.create_index("v", "IVF_PQ", num_partitions=2, num_sub_vectors=2)
    return path


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_call_returns_the_same(official_14: Official, indexed: Path, name: str) -> None:
    theirs = official_14.run(str(indexed), f"result = {PROGRAMS[name]}")
    names: dict[str, Any] = {"lance": lance, "uri": str(indexed)}
    assert eval(PROGRAMS[name], names) == theirs  # the programs above


@pytest.mark.parametrize("with_vector", [False, True])
def test_partitions_are_read_as_official_lance_reads_them(indexed: Path, with_vector: bool) -> None:
    ours = VectorIndexReader(lance.dataset(indexed), "v_idx")
    reader = import_module("lance.dataset").VectorIndexReader(official.dataset(indexed), "v_idx")
    assert ours.num_partitions() == reader.num_partitions()
    for number in range(ours.num_partitions()):
        found = ours.read_partition(number, with_vector=with_vector)
        expected = reader.read_partition(number, with_vector=with_vector)
        assert found.to_pydict() == expected.to_pydict()


def test_a_partition_must_exist(indexed: Path) -> None:
    reader = VectorIndexReader(lance.dataset(indexed), "v_idx")
    with pytest.raises(IndexError, match="Partition id 9 is out of range"):
        reader.read_partition(9)


def test_another_kind_of_index_has_no_partitions(tmp_path: Path) -> None:
    made = lance.write_dataset(pa.table({"a": range(10)}), tmp_path / "t")
    made.create_scalar_index("a", "BTREE")
    with pytest.raises(ValueError, match="is not vector index"):
        VectorIndexReader(made, "a_idx")


def test_addresses_follow_recorded_compactions(official_14: Official, tmp_path: Path) -> None:
    made = official.write_dataset(pa.table({"a": range(40)}), tmp_path / "t", max_rows_per_file=10)
    made.create_scalar_index("a", "BTREE")
    made.delete("a = 3")
    made.optimize.compact_files(target_rows_per_fragment=1000, defer_index_remap=True)
    asked = [0, 3, (1 << 32) + 2, (3 << 32) + 9, None]
    code = (
        f"result = lance.dataset(uri).remap_row_addrs(pa.array({asked}, pa.uint64())).to_pylist()"
    )
    theirs = official_14.run(str(tmp_path / "t"), code)
    ours = lance.dataset(tmp_path / "t").remap_row_addrs(pa.array(asked, pa.uint64()))
    assert ours is not None
    assert ours.to_pylist() == theirs


def test_without_recorded_compactions_there_are_no_other_addresses(tmp_path: Path) -> None:
    made = lance.write_dataset(pa.table({"a": [1]}), tmp_path / "t")
    assert made.remap_row_addrs(pa.array([0], pa.uint64())) is None
