"""Names of the compiled module of pylance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.pylance import lance as compiled
from lancelake.pylance import optimize, schema
from lancelake.pylance.lance import indices


def test_names_are_those_of_the_public_modules() -> None:
    assert compiled.Compaction is optimize.Compaction
    assert compiled.LanceSchema is schema.LanceSchema
    assert all(hasattr(compiled, name) for name in compiled.__all__)


def test_segments_of_an_rq_index_share_a_model(tmp_path: Path) -> None:
    values = np.random.default_rng(5).standard_normal((400, 16), dtype=np.float32)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), 16)
    ds = lance.write_dataset(pa.table({"v": vectors}), tmp_path, max_rows_per_file=200)
    model = indices.build_rq_model(dimension=16, num_bits=3)
    options: dict[str, Any] = {"num_partitions": 1, "num_bits": 3, "rabitq_model": model}
    options["ivf_centroids"] = np.zeros((1, 16), np.float32)
    parts = [
        ds.create_index_uncommitted("v", "IVF_RQ", "v_idx", fragment_ids=[n], **options)
        for n in (0, 1)
    ]
    ds.commit_existing_index_segments("v_idx", "v", [ds.merge_existing_index_segments(parts)])
    found = ds.to_table(nearest={"column": "v", "q": values[0], "k": 5}, with_row_id=True)
    assert found["_rowid"].to_pylist()[0] == 0


def test_a_model_must_fit_to_the_vectors(tmp_path: Path) -> None:
    vectors = pa.array([[1.0] * 16] * 20, pa.list_(pa.float32(), 16))
    ds = lance.write_dataset(pa.table({"v": vectors}), tmp_path)
    model = indices.build_rq_model(dimension=8, num_bits=1)
    with pytest.raises(ValueError, match="rabitq_model is for vectors of 8 values"):
        ds.create_index_uncommitted(
            "v", "IVF_RQ", fragment_ids=[0], num_bits=1, rabitq_model=model, num_partitions=1
        )
