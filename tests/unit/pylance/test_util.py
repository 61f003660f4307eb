"""Times and durations, and the check of vector indices."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.pylance.util import sanitize_ts, td_to_micros, validate_vector_index


def test_durations_are_counted_in_microseconds() -> None:
    assert td_to_micros(timedelta(seconds=1, microseconds=5)) == 1_000_005


def test_times_are_parsed() -> None:
    assert sanitize_ts("2026-01-31 10:20:30") == datetime(2026, 1, 31, 10, 20, 30)  # local
    with pytest.raises(TypeError, match="Unrecognized version timestamp"):
        sanitize_ts(5)  # type: ignore[arg-type]  # the mistake under test


def test_a_vector_index_that_finds_its_vectors_is_valid(tmp_path: Path) -> None:
    values = np.random.default_rng(5).random(64 * 4, dtype=np.float32)
    lists = pa.FixedSizeListArray.from_arrays(pa.array(values), 4)
    made = lance.write_dataset(pa.table({"v": lists}), tmp_path / "t")
    made.create_index("v", "IVF_FLAT", num_partitions=1)
    validate_vector_index(made, "v", sample_size=8)
    with pytest.raises(ValueError, match="failed sanity check"):
        validate_vector_index(made, "v", pass_threshold=1.1)
