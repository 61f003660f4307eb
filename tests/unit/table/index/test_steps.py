"""An index that is built in steps answers as one that is built at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import InvalidRequestError
from lancelake.pylance.file import LanceFileReader
from lancelake.pylance.indices import IndicesBuilder, IvfModel, PqModel

ROWS, DIMENSION, PARTITIONS = 900, 16, 4
MATRIX = np.random.default_rng(3).standard_normal((ROWS, DIMENSION)).astype(np.float32)
METRICS = ("l2", "cosine", "dot")


def vectors(matrix: np.ndarray) -> pa.FixedSizeListArray:
    return pa.FixedSizeListArray.from_arrays(pa.array(matrix.reshape(-1)), DIMENSION)


@pytest.fixture(params=[False, True], ids=["addresses", "stable ids"])
def written(request: pytest.FixtureRequest, tmp_table: str) -> lance.LanceDataset:
    rows = pa.table({"id": range(ROWS), "v": vectors(MATRIX)})
    stable = bool(request.param)
    return lance.write_dataset(rows, tmp_table, max_rows_per_file=300, enable_stable_row_ids=stable)


def models(builder: IndicesBuilder, metric: str = "l2") -> tuple[IvfModel, PqModel]:
    ivf = builder.train_ivf(PARTITIONS, sample_rate=16, distance_type=metric)
    return ivf, builder.train_pq(ivf, 4, sample_rate=2)


def loaded(builder: IndicesBuilder, folder: Path, *given: Any, metric: str = "l2") -> None:
    """Build an index in steps, each list of fragments in a file of its own."""
    ivf, pq = models(builder, metric)
    names = [f"part {number}.lance" for number in range(len(given))]
    for name, fragments in zip(names, given, strict=True):
        builder.transform_vectors(ivf, pq, str(folder / name), fragments=fragments)
    grouped = builder.shuffle_transformed_vectors(names, str(folder), ivf)
    builder.load_shuffled_vectors(grouped, str(folder), ivf, pq)


def found(uri: str, metric: str = "l2") -> list[tuple[list[int], list[float]]]:
    table = lance.dataset(uri)
    answers = []
    for query in MATRIX[:5]:
        near = {"column": "v", "q": query, "k": 20, "nprobes": PARTITIONS, "metric": metric}
        rows = table.to_table(["id", "_distance"], nearest=near)
        answers.append((rows["id"].to_pylist(), rows["_distance"].to_pylist()))
    return answers


@pytest.mark.parametrize("metric", METRICS)
def test_the_index_equals_one_built_at_once(
    written: lance.LanceDataset, tmp_path: Path, metric: str
) -> None:
    builder = IndicesBuilder(written, "v")
    fragments = written.get_fragments()
    loaded(builder, tmp_path, fragments[:1], fragments[1:], metric=metric)
    mine = found(written.uri, metric)
    ivf, pq = models(builder, metric)
    lance.dataset(written.uri).create_index(
        "v",
        "IVF_PQ",
        metric=metric,
        num_partitions=PARTITIONS,
        num_sub_vectors=4,
        ivf_centroids=ivf.centroids,
        pq_codebook=pq.codebook,
        replace=True,
    )
    assert mine == found(written.uri, metric)


def test_only_encoded_fragments_are_covered(written: lance.LanceDataset, tmp_path: Path) -> None:
    builder = IndicesBuilder(written, "v")
    loaded(builder, tmp_path, written.get_fragments()[1:2])
    table = lance.dataset(written.uri)
    (index,) = table.describe_indices()
    assert [sorted(segment.fragment_ids) for segment in index.segments] == [[1]]
    near = {"column": "v", "q": MATRIX[0], "k": 1, "nprobes": PARTITIONS}
    assert table.to_table(["id"], nearest=near)["id"].to_pylist() == [0]


def test_rows_that_change_between_the_steps_have_their_new_vectors(
    written: lance.LanceDataset, tmp_path: Path
) -> None:
    builder = IndicesBuilder(written, "v")
    ivf, pq = models(builder)
    builder.transform_vectors(ivf, pq, str(tmp_path / "rows.lance"))
    changed = pa.table({"id": [5], "v": vectors(MATRIX[5:6] + 100)})
    lance.dataset(written.uri).merge_insert("id").when_matched_update_all().execute(changed)
    later = IndicesBuilder(lance.dataset(written.uri), "v")
    grouped = later.shuffle_transformed_vectors(["rows.lance"], str(tmp_path), ivf)
    later.load_shuffled_vectors(grouped, str(tmp_path), ivf, pq)
    table = lance.dataset(written.uri)
    near = {"column": "v", "q": MATRIX[5] + 100, "k": 1, "nprobes": PARTITIONS}
    assert table.to_table(["id"], nearest=near)["id"].to_pylist() == [5]
    near = {"column": "v", "q": MATRIX[5], "k": 3, "nprobes": PARTITIONS}
    assert 5 not in table.to_table(["id"], nearest=near)["id"].to_pylist()


def test_fragments_that_a_compaction_replaced_are_refused(
    written: lance.LanceDataset, tmp_path: Path
) -> None:
    builder = IndicesBuilder(written, "v")
    ivf, pq = models(builder)
    builder.transform_vectors(ivf, pq, str(tmp_path / "rows.lance"))
    grouped = builder.shuffle_transformed_vectors(["rows.lance"], str(tmp_path), ivf)
    lance.dataset(written.uri).optimize.compact_files()
    later = IndicesBuilder(lance.dataset(written.uri), "v")
    with pytest.raises(InvalidRequestError, match="fragment 0 is not part of version"):
        later.load_shuffled_vectors(grouped, str(tmp_path), ivf, pq)


def test_assigned_partitions_are_used(written: lance.LanceDataset, tmp_path: Path) -> None:
    builder = IndicesBuilder(written, "v")
    ivf, pq = models(builder)
    ids = written.to_table([], with_row_id=True)["_rowid"].slice(0, ROWS - 1)
    numbers = pa.array(range(ROWS - 1), pa.uint32()).cast(pa.int64()).to_numpy() % PARTITIONS
    assigned = pa.table({"row_id": ids, "partition": pa.array(numbers, pa.uint32())})
    lance.write_dataset(assigned, str(tmp_path / "assigned.lance"))
    target = str(tmp_path / "rows.lance")
    builder.transform_vectors(ivf, pq, target, partition_ds_uri=str(tmp_path / "assigned.lance"))
    rows = LanceFileReader(target).read_all().to_table()
    assert rows["_rowid"].to_pylist() == ids.to_pylist()
    assert rows["__ivf_part_id"].to_pylist() == numbers.tolist()


def test_what_cannot_be_a_step_is_refused(written: lance.LanceDataset, tmp_path: Path) -> None:
    builder = IndicesBuilder(written, "v")
    ivf, pq = models(builder)
    folder: Any = str(tmp_path)
    with pytest.raises(ValueError, match="non-empty list"):
        builder.transform_vectors(ivf, pq, f"{folder}/rows.lance", fragments=[])
    names: Any = "rows.lance"
    with pytest.raises(ValueError, match="list of strings"):
        builder.shuffle_transformed_vectors(names, folder, ivf)
    with pytest.raises(ValueError, match="list of strings"):
        builder.load_shuffled_vectors(names, folder, ivf, pq)
    assert builder.shuffle_transformed_vectors([], folder, ivf) == []
