"""Recall of a vector index."""

from __future__ import annotations

from pathlib import Path

import pytest

from lancelake.clock import SystemIds
from lancelake.commit.snapshot import Snapshot
from lancelake.errors import InvalidRequestError
from lancelake.scan.search.recall import RecallRequest, VectorColumn, measure_recall
from tests.support.official import Official
from tests.support.read_tables import open_source
from tests.support.search_tables import ROWS, write_articles
from tests.support.set_clock import ManualClock


@pytest.fixture
def indexed(official_14: Official, tmp_path: Path) -> Snapshot:
    path = tmp_path / "t.lance"
    write_articles(path)
    official_14.create_index(path, "vector", "IVF_FLAT", num_partitions=2, metric="cosine")
    return open_source(str(path))


def test_all_partitions_have_full_recall(indexed: Snapshot) -> None:
    request = RecallRequest(column="vector", k=5, sample=15, nprobes=(1, 2))
    found = measure_recall(indexed, request, clock=ManualClock(), ids=SystemIds(1))
    assert [point.nprobes for point in found.points] == [1, 2, None]
    assert [point.recall for point in found.points[1:]] == [1.0, 1.0]
    assert found.queries == 15


def test_a_sample_is_not_larger_than_the_table(indexed: Snapshot) -> None:
    request = RecallRequest(column="vector", k=1, sample=1000, nprobes=(2,))
    assert measure_recall(indexed, request).queries == ROWS


def test_the_metric_is_that_of_the_index(indexed: Snapshot) -> None:
    found = VectorColumn.of(indexed, "vector").index_metric
    assert found is not None
    assert found.value == "cosine"


def test_a_column_without_an_index_is_refused(tmp_path: Path) -> None:
    source = open_source(write_articles(tmp_path / "t.lance").uri)
    with pytest.raises(InvalidRequestError, match="'vector' has no vector index"):
        measure_recall(source, RecallRequest(column="vector"))


@pytest.mark.parametrize("options", [{"sample": 0}, {"nprobes": ()}, {"nprobes": (0, 1)}])
def test_invalid_settings_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(InvalidRequestError):
        RecallRequest(column="vector", **options)  # type: ignore[arg-type]
