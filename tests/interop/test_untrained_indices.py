"""Vector indices without files: created on an empty table, without training, or of few rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.maintenance.check.finding import Severity
from lancelake.maintenance.check.run import check
from lancelake.storage.location import Location
from tests.support.official import OfficialPool

NEW = "14.0.2"
KINDS = {"IVF_FLAT": {}, "IVF_PQ": {"num_sub_vectors": 2}, "IVF_HNSW_SQ": {"m": 12}}
STATISTICS = "result = lance.dataset(uri).stats.index_stats('v_idx')"
REFRESH = "ds = lance.dataset(uri)\nds.optimize.optimize_indices()\n"


def rows(count: int) -> pa.Table:
    vectors = np.random.default_rng(count).normal(size=(count, 8)).astype(np.float32)
    return pa.table(
        {
            "n": pa.array(range(count), pa.int64()),
            "v": pa.FixedSizeListArray.from_arrays(vectors.ravel(), 8),
        }
    )


def ensure_trained(uri: str, kind: str) -> None:
    found = lance.dataset(uri).index_statistics("v_idx")
    assert (found["index_type"], found["num_unindexed_rows"]) == (kind, 0)
    assert found["indices"][0]["metric_type"] == "cosine"


def ensure_sound(uri: str) -> None:
    found = check(Location.parse(Path(uri)), data=True)
    assert [str(each) for each in found if each.severity is Severity.ERROR] == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("before", [0, 400], ids=["empty", "not trained"])
def test_an_index_that_the_release_did_not_train_is_trained_by_a_refresh(
    before: int, kind: str, officials: OfficialPool, tmp_table: str
) -> None:
    lance.write_dataset(rows(before), tmp_table)
    options = {"metric": "cosine", "num_partitions": 2, "train": False, **KINDS[kind]}
    officials(NEW).create_index(tmp_table, "v", kind, **options)
    ds = lance.dataset(tmp_table)
    theirs = officials(NEW).run(tmp_table, STATISTICS)
    assert ds.index_statistics("v_idx") == theirs
    ensure_sound(tmp_table)
    ds.optimize.optimize_indices()
    ds.insert(rows(300))
    ds.optimize.optimize_indices()
    ensure_trained(tmp_table, kind)
    ensure_sound(tmp_table)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("before", [0, 400], ids=["empty", "not trained"])
def test_the_release_trains_an_index_that_we_did_not_train(
    before: int, kind: str, officials: OfficialPool, tmp_table: str
) -> None:
    ds = lance.write_dataset(rows(before), tmp_table)
    options = {"metric": "cosine", "num_partitions": 2, **KINDS[kind]}
    ds.create_index("v", kind, train=not before, **options)
    assert ds.index_statistics("v_idx")["num_indexed_rows"] == 0
    ds.insert(rows(300))
    nearest = {"column": "v", "q": [1.0] * 8, "k": 3}
    assert ds.to_table(nearest=nearest).num_rows == 3
    officials(NEW).run(tmp_table, REFRESH + "result = None")
    ensure_trained(tmp_table, kind)


def test_too_few_rows_leave_an_index_untrained(officials: OfficialPool, tmp_table: str) -> None:
    lance.write_dataset(rows(5), tmp_table)
    options = {"metric": "cosine", "num_partitions": 1, "num_sub_vectors": 2}
    officials(NEW).create_index(tmp_table, "v", "IVF_PQ", **options)
    ds = lance.dataset(tmp_table)
    ds.optimize.optimize_indices()
    assert ds.index_statistics("v_idx")["num_indexed_rows"] == 0
    ds.insert(rows(300))
    ds.optimize.optimize_indices()
    ensure_trained(tmp_table, "IVF_PQ")
