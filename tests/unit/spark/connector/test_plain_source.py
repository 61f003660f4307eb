"""Options of the plain data source are parsed when a read is planned."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructType

import lancelake
from lancelake.errors import InvalidRequestError
from lancelake.spark.connector.plain_source import LanceDataSource, LanceReader

SCHEMA = StructType().add("id", LongType())


@pytest.mark.parametrize("option", ["useScalarIndex", "batchRows", "maxPartitionBytes"])
def test_a_value_that_does_not_fit_is_refused(tmp_path: Path, option: str) -> None:
    path = str(tmp_path / "t.lance")
    lancelake.write_dataset(pa.table({"id": [1, 2]}), path)
    assert len(LanceReader(SCHEMA, {"path": path}).partitions()) == 1
    with pytest.raises(InvalidRequestError, match=f"option {option} must be"):
        LanceReader(SCHEMA, {"path": path, option: "maybe"}).partitions()


def test_columns_are_nullable_since_older_versions_may_lack_them(tmp_path: Path) -> None:
    path = str(tmp_path / "t.lance")
    lancelake.write_dataset(pa.table({"id": [1, 2]}), path).add_columns({"n": "7"})
    assert not lancelake.dataset(path).schema.field("n").nullable
    source = LanceDataSource({"path": path, "startingVersion": "1"})
    assert source.schema()["n"].nullable


@pytest.mark.parametrize("stable", [False, True])
def test_a_stream_reads_a_column_that_a_version_lacks_as_nulls(
    tmp_path: Path, *, stable: bool
) -> None:
    path = str(tmp_path / "t.lance")
    made = lancelake.write_dataset(pa.table({"id": [1, 2]}), path, enable_stable_row_ids=stable)
    made.add_columns({"n": "7"})
    options = {"path": path, "startingVersion": "1", "skipChangeCommits": "true"}
    source = LanceDataSource(options)
    reader = source.streamReader(source.schema())
    start = reader.initialOffset()
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    rows = [
        row
        for part in reader.partitions(start, end)
        for batch in reader.read(part)
        for row in batch.to_pylist()
    ]
    assert rows == [{"id": 1, "n": None}, {"id": 2, "n": None}]
