"""Models of vector indices: trained, saved, loaded and used by builds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import UnsupportedError
from lancelake.pylance.indices import IndicesBuilder, IvfModel, PqModel
from lancelake.pylance.vector import train_ivf_centroids_on_accelerator, vec_to_table
from tests.support.official import Official

ROWS, DIMENSION = 1000, 16
MATRIX = np.random.default_rng(3).standard_normal((ROWS, DIMENSION)).astype(np.float32)


@pytest.fixture
def table(tmp_path: Path) -> lance.LanceDataset:
    values = vec_to_table(MATRIX, "v").append_column("id", pa.array(range(ROWS)))
    return lance.write_dataset(values, str(tmp_path / "t.lance"), max_rows_per_file=500)


def test_models_of_a_builder_are_those_of_an_index(table: lance.LanceDataset) -> None:
    builder = IndicesBuilder(table, "v")
    ivf = builder.train_ivf(4, sample_rate=32)
    pq = builder.train_pq(ivf, 4, sample_rate=2)
    assert (ivf.num_partitions, ivf.distance_type) == (4, "l2")
    assert (pq.num_subvectors, pq.dimension, len(pq.codebook)) == (4, DIMENSION, 256)
    given = {"ivf_centroids": ivf.centroids, "pq_codebook": pq.codebook}
    table.create_index("v", "IVF_PQ", num_sub_vectors=4, num_partitions=4, **given)
    assert table.centroids(column="v") == ivf.centroids
    near = {"column": "v", "q": MATRIX[7], "k": 1, "nprobes": 4}
    assert table.to_table(["id"], nearest=near)["id"].to_pylist() == [7]


def test_segments_of_one_model_are_merged(table: lance.LanceDataset) -> None:
    builder = IndicesBuilder(table, "v")
    models = builder.prepare_global_ivf_pq(2, 4, sample_rate=2)
    parts = [
        table.create_index_uncommitted(
            "v", "IVF_PQ", name="v_idx", num_sub_vectors=4, fragment_ids=[number], **models
        )
        for number in (0, 1)
    ]
    merged = table.merge_existing_index_segments(parts)
    table.commit_existing_index_segments("v_idx", "v", [merged])
    (segment,) = table.stats.index_stats("v_idx")["indices"]
    assert sum(part["size"] for part in segment["partitions"]) == ROWS


def test_models_are_saved_and_loaded(table: lance.LanceDataset, tmp_path: Path) -> None:
    ivf = IndicesBuilder(table, "v").train_ivf(4, distance_type="cosine", sample_rate=32)
    ivf.save(str(tmp_path / "ivf.lance"))
    found = IvfModel.load(str(tmp_path / "ivf.lance"))
    assert (found.centroids, found.distance_type) == (ivf.centroids, "cosine")
    pq = IndicesBuilder(table, "v").train_pq(ivf, 8, sample_rate=4, num_bits=4)
    pq.save(str(tmp_path / "pq.lance"))
    loaded = PqModel.load(str(tmp_path / "pq.lance"))
    assert (loaded.codebook, loaded.num_subvectors, loaded.num_bits) == (pq.codebook, 8, 4)


def test_another_model_at_the_same_place_is_loaded(tmp_path: Path) -> None:
    place = str(tmp_path / "ivf")
    for values in (MATRIX[:2], MATRIX[2:5]):
        model = IvfModel(pa.FixedSizeListArray.from_arrays(values.reshape(-1), DIMENSION), "l2")
        model.save(place)
        assert IvfModel.load(place).centroids == model.centroids


def test_official_releases_load_saved_models_and_the_other_way_round(
    official_14: Official, table: lance.LanceDataset, tmp_path: Path
) -> None:
    ours, theirs = str(tmp_path / "ours.lance"), str(tmp_path / "theirs.lance")
    ivf = IndicesBuilder(table, "v").train_ivf(4, sample_rate=32)
    ivf.save(ours)
    code = """
from lance.indices import IvfModel
model = IvfModel.load(ours)
model.save(theirs)
result = [model.distance_type, len(model.centroids)]
"""
    assert official_14.run(table.uri, code, ours=ours, theirs=theirs) == ["l2", 4]
    assert IvfModel.load(theirs).centroids == ivf.centroids


@pytest.mark.parametrize(
    ("act", "problem"),
    [
        (lambda b: b.train_ivf(100), "not enough rows"),
        (lambda b: b.train_ivf(4, sample_rate=1), "sample_rate must be"),
        (lambda b: b.train_ivf(4, distance_type="other", sample_rate=2), "not supported"),
        (lambda b: b.train_ivf(4, sample_rate=2, fragment_ids=[9]), "Fragment id does not exist"),
        (lambda b: b.train_ivf(4, sample_rate=2, accelerator="tpu"), "'cuda' or 'mps'"),
    ],
)
def test_impossible_trainings_are_refused(
    table: lance.LanceDataset, act: Any, problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        act(IndicesBuilder(table, "v"))


def test_columns_without_vectors_have_no_models(table: lance.LanceDataset) -> None:
    with pytest.raises(TypeError, match="must have vectors"):
        IndicesBuilder(table, "id")
    with pytest.raises(KeyError, match="nothing"):
        IndicesBuilder(table, "nothing")


def test_training_without_a_gpu_says_what_is_missing(table: lance.LanceDataset) -> None:
    with pytest.raises((UnsupportedError, ImportError), match="cuda"):
        train_ivf_centroids_on_accelerator(table, "v", 2, "l2", "cuda", sample_rate=4)


def test_vectors_become_tables() -> None:
    assert vec_to_table({"a": [1, 2], "b": [3, 4]}).to_pylist() == [
        {"id": "a", "vector": [1, 2]},
        {"id": "b", "vector": [3, 4]},
    ]
    assert vec_to_table([[1.0, 2.0]], names="x").column_names == ["x"]
    with pytest.raises(ValueError, match="Expected 2 dimensions but got 1"):
        vec_to_table([[1, 2], [3]])
    with pytest.raises(ValueError, match="set ndim"):
        vec_to_table([])
