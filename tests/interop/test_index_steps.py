"""Steps of an IVF_PQ build are taken by us and by releases in turns."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.pylance.indices import IndicesBuilder, IvfModel, PqModel
from tests.support.official import Official

# Releases lose rows in the second step if there are fewer than about 1,000.
ROWS, DIMENSION, PARTITIONS = 2048, 16, 4
MATRIX = np.random.default_rng(3).standard_normal((ROWS, DIMENSION)).astype(np.float32)
STEPS = list(product((False, True), repeat=3))[1:-1]
THEIRS = """
from lance.indices import IndicesBuilder, IvfModel, PqModel
builder = IndicesBuilder(lance.dataset(uri), "v")
ivf, pq = IvfModel.load(folder + "/ivf.lance"), PqModel.load(folder + "/pq.lance")
if step == 0:
    result = builder.transform_vectors(ivf, pq, folder + "/rows.lance")
elif step == 1:
    result = builder.shuffle_transformed_vectors(["rows.lance"], folder, ivf)
else:
    result = builder.load_shuffled_vectors(["sorted_0.lance"], folder, ivf, pq)
"""
SEARCH = """
near = dict(column="v", q=query, k=10, nprobes=partitions)
result = lance.dataset(uri).to_table(["id", "_distance"], nearest=near)["id"].to_pylist()
"""


def take(step: int, builder: IndicesBuilder, ivf: IvfModel, pq: PqModel, folder: str) -> None:
    if step == 0:
        builder.transform_vectors(ivf, pq, f"{folder}/rows.lance")
    elif step == 1:
        builder.shuffle_transformed_vectors(["rows.lance"], folder, ivf)
    else:
        builder.load_shuffled_vectors(["sorted_0.lance"], folder, ivf, pq)


@pytest.mark.parametrize(
    "ours", STEPS, ids=["".join("o" if ours else "t" for ours in each) for each in STEPS]
)
def test_each_step_reads_what_the_other_wrote(
    official: Official, tmp_table: str, tmp_path: Path, ours: tuple[bool, ...]
) -> None:
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(MATRIX.reshape(-1)), DIMENSION)
    rows = pa.table({"id": range(ROWS), "v": vectors})
    table = lance.write_dataset(rows, tmp_table, max_rows_per_file=700)
    builder, folder = IndicesBuilder(table, "v"), str(tmp_path)
    ivf = builder.train_ivf(PARTITIONS, sample_rate=16)
    pq = builder.train_pq(ivf, 4, sample_rate=2)
    ivf.save(f"{folder}/ivf.lance")
    pq.save(f"{folder}/pq.lance")
    for step, is_ours in enumerate(ours):
        if is_ours:
            take(step, builder, ivf, pq, folder)
        else:
            official.run(tmp_table, THEIRS, step=step, folder=folder)
    query = MATRIX[7].tolist()
    theirs = official.run(tmp_table, SEARCH, query=query, partitions=PARTITIONS)
    assert theirs[0] == 7
    found = lance.dataset(tmp_table)
    (index,) = found.describe_indices()
    assert [sorted(segment.fragment_ids) for segment in index.segments] == [[0, 1, 2]]
    # Releases write the last step in the legacy format of indices, which only they search.
    if ours[-1]:
        near = {"column": "v", "q": query, "k": 10, "nprobes": PARTITIONS}
        mine = found.to_table(["id", "_distance"], nearest=near)["id"].to_pylist()
        assert mine == theirs
