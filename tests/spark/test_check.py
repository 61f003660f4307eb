"""Values of a table are checked on executors."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

import lancelake.pylance as lance
from lancelake.maintenance.check.run import check
from lancelake.spark.jobs.engine import SparkEngine
from lancelake.storage.location import Location


def test_damage_is_found_on_executors(spark: SparkSession, tmp_path: Path) -> None:
    root = tmp_path / "table.lance"
    lance.write_dataset(pa.table({"a": range(30)}), root, max_rows_per_file=10)
    engine = SparkEngine(spark)
    assert list(check(Location.parse(root), data=True, engine=engine)) == []
    path = next((root / "data").glob("*.lance"))
    path.write_bytes(path.read_bytes()[:-100] + bytes(100))
    result = list(check(Location.parse(root), data=True, engine=engine))
    assert "data-file-damaged" in {finding.code for finding in result}
