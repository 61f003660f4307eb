"""An index build that failed on executors is resumed: finished ranges are not written again."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession

import lancelake.pylance as lance
from lancelake.errors import StorageError
from lancelake.index.scalar.btree.build import WrittenPages
from lancelake.spark import LanceTable
from lancelake.spark.jobs import index_build
from lancelake.spark.jobs.index_build import _WriteRange
from tests.support.official import Official
from tests.support.scalar_index_tables import FILTERS, IndexedTable, rows
from tests.support.sound_tables import findings

LOST = 1
ASK = """
ds = lance.dataset(uri)
result = [
    text
    for text in texts
    if sorted(ds.to_table(filter=text, columns=["n"])["n"].to_pylist())
    != sorted(ds.to_table(filter=text, columns=["n"], use_scalar_index=False)["n"].to_pylist())
]
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LosesOneRange(_WriteRange):
    """Writes the file of one range, and fails before that is recorded."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> tuple[int, WrittenPages] | None:
        result = _WriteRange.__call__(self, batches)
        if result is not None and result[0] == LOST:
            self.segment.remove([f"range_{LOST}"])
            raise StorageError("the connection was lost")
        return result


@pytest.fixture(autouse=True)
def small_ranges(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let small indices be built on executors, in three ranges; executors get classes of tests."""
    monkeypatch.setattr(index_build, "EMBEDDED_ROWS", 0)
    monkeypatch.setattr(index_build, "_RANGE_ROWS", 1000)
    module = sys.modules[__name__]
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    yield
    cloudpickle.unregister_pickle_by_value(module)  # type: ignore[no-untyped-call]


@pytest.fixture
def uri(tmp_table: str) -> str:
    """Return a table of six fragments."""
    lance.write_dataset(rows(3000), tmp_table, max_rows_per_file=500, data_storage_version="2.0")
    return tmp_table


def files(uri: str) -> dict[str, int]:
    """Return the files of indices, with the times at which they were written."""
    place = Path(uri, "_indices").glob("*/*")
    return {f"{path.parent.name}/{path.name}": path.stat().st_mtime_ns for path in place}


def fail(spark: SparkSession, uri: str, column: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index_build, "_WriteRange", LosesOneRange)
        with pytest.raises(StorageError, match="the connection was lost"):
            LanceTable.forPath(spark, uri).createIndex(column)


@pytest.mark.parametrize("column", ["i", "s"])
def test_finished_ranges_are_not_written_again(
    spark: SparkSession, uri: str, column: str, official: Official
) -> None:
    fail(spark, uri, column)
    assert lance.dataset(uri).list_indices() == []
    before = {name: time for name, time in files(uri).items() if "page_data" in name}
    assert len(before) == 3

    (done,) = LanceTable.forPath(spark, uri).createIndex(column).collect()
    assert (done.rows_indexed, done.rows_not_indexed) == (3000, 0)
    after = files(uri)
    assert len(before.items() & after.items()) == 2
    # The file that was not recorded is gone.
    assert sum("page_data" in name for name in after) == 3
    indexed = IndexedTable(uri)
    assert [w for text in FILTERS[column] if (w := indexed.difference(text, column))] == []
    assert official.run(uri, ASK, texts=list(FILTERS[column])) == []
    assert findings(uri) == []


def test_a_build_of_other_rows_is_not_resumed(spark: SparkSession, uri: str) -> None:
    fail(spark, uri, "i")
    before = {name for name in files(uri) if "page_data" in name}
    lance.dataset(uri).delete("n % 7 = 3")
    LanceTable.forPath(spark, uri).createIndex("i")
    (entry,) = lance.dataset(uri).list_indices()
    assert not any(name.startswith(entry["uuid"]) for name in before)
    indexed = IndexedTable(uri)
    assert [w for text in FILTERS["i"] if (w := indexed.difference(text, "i"))] == []
