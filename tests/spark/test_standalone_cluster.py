"""Lance tables on a cluster: executors have an interpreter of their own, with or without us."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import lancelake
from tests.support.front_doors import run_sql, standalone_cluster

SCRIPT = """
CREATE NAMESPACE lance.db;
CREATE TABLE lance.db.t AS SELECT id, concat('v', id) AS v FROM range(0, 1000, 1, 4);
MERGE INTO lance.db.t t USING (SELECT id, 'm' AS v FROM range(999, 1005)) s
    ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
DELETE FROM lance.db.t WHERE id < 10;
OPTIMIZE lance.db.t;
SELECT 'rows', count(*), max(id), count_if(v = 'm') FROM lance.db.t WHERE id >= 500;
"""


def test_tasks_of_a_cluster(tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare], check=True)
    with standalone_cluster(tmp_path) as master:

        def run(script: str, python: str) -> subprocess.CompletedProcess[str]:
            conf = {"spark.master": master, "spark.pyspark.python": python}
            return run_sql(tmp_path, script, **conf, **{"spark.driver.host": "127.0.0.1"})

        done = run(SCRIPT, sys.executable)
        assert done.returncode == 0, done.stderr
        assert "rows\t505\t1004\t6" in done.stdout
        assert lancelake.dataset(tmp_path / "tables/db/t.lance").count_rows() == 995

        refused = run("SELECT max(v) FROM lance.db.t", str(bare / "bin/python"))
        assert refused.returncode != 0
        said = f"run {bare}/bin/python on {platform.node()}, which does not have lancelake, pyarrow"
        assert said in refused.stderr, refused.stderr
