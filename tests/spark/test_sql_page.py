"""The SQL on the documentation page runs."""

from __future__ import annotations

import re
from pathlib import Path

from pyspark.sql import SparkSession

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "sql.md"
BLOCK = re.compile(r"^```sql\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def test_the_statements_of_the_page_run(spark: SparkSession) -> None:
    blocks = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    assert blocks
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lance.db")
    try:
        for statement in ";".join(blocks).split(";"):
            spark.sql(statement).collect()
    finally:
        spark.sql("DROP TABLE IF EXISTS lance.db.customers")
