"""Tables that no writer leaves are read, or refused with an error of ours."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from lancelake.errors import LanceTableError
from lancelake.spark import LanceTable, error_of
from tests.support.tampered_tables import TAMPERINGS, built

ACTIONS: dict[str, Callable[[SparkSession, str], object]] = {
    "read": lambda spark, path: spark.read.format("lance").load(path).collect(),
    "delete": lambda spark, path: LanceTable.forPath(spark, path).delete("id = 1"),
}


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("case", TAMPERINGS)
def test_action_succeeds_or_names_the_problem(
    spark: SparkSession, tmp_path: Path, case: str, action: str
) -> None:
    root, tampering = built(tmp_path / "t.lance"), TAMPERINGS[case]
    tampering.apply(root)
    problem = tampering.read if action == "read" else tampering.delete
    if problem is None:
        ACTIONS[action](spark, str(root))
        return
    with pytest.raises(Exception, match=problem) as caught:
        ACTIONS[action](spark, str(root))
    # Spark itself refuses a column name that is ambiguous.
    error = error_of(caught.value) or caught.value
    assert isinstance(error, LanceTableError | AnalysisException)


def test_files_behind_a_link_outlive_a_dropped_table(
    spark: SparkSession, warehouse: Path, tmp_path: Path
) -> None:
    victim = built(tmp_path / "victim.lance")
    before = {path for path in victim.rglob("*") if path.is_file()}
    spark.sql("CREATE TABLE lance.linked AS SELECT 1 AS id")
    root = warehouse / "linked.lance"
    (root / "data" / "sub").symlink_to(victim)
    (root / "tree").symlink_to(victim)
    spark.sql("DROP TABLE lance.linked")
    assert not root.exists()
    assert {path for path in victim.rglob("*") if path.is_file()} == before
