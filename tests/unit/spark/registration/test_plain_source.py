"""Options of the plain data source are parsed when a read is planned."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructType

import lancelake
from lancelake.errors import InvalidRequestError
from lancelake.spark.registration.plain_source import LanceReader

SCHEMA = StructType().add("id", LongType())


@pytest.mark.parametrize("option", ["useScalarIndex", "batchRows", "maxPartitionBytes"])
def test_a_value_that_does_not_fit_is_refused(tmp_path: Path, option: str) -> None:
    path = str(tmp_path / "t.lance")
    lancelake.write_dataset(pa.table({"id": [1, 2]}), path)
    assert len(LanceReader(SCHEMA, {"path": path}).partitions()) == 1
    with pytest.raises(InvalidRequestError, match=f"option {option} must be"):
        LanceReader(SCHEMA, {"path": path, option: "maybe"}).partitions()
