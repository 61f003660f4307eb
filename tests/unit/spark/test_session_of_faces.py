"""Every face takes time and ids from the session of its tables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow.csv import write_csv
from pyspark.sql import types as t
from typer.testing import CliRunner

import lancelake.pylance as lance
from lancelake.cli.group import app
from lancelake.clock import SystemIds
from lancelake.spark.jobs.write_plan import SaveMode, commit_plan, plan_write, written
from lancelake.spark.values.options import TableOptions
from lancelake.storage.location import Location, Session
from lancelake.table.history import history
from tests.support.set_clock import ManualClock

ROWS = pa.table({"id": list(range(1000))})


def ours(root: Path) -> None:
    """Write by the Python face."""
    table = lance.write_dataset(ROWS, root)
    table.delete("id = 1")
    table.create_scalar_index("id", "BTREE")
    table.optimize.compact_files()


def by_command(root: Path) -> None:
    """Write by the command line."""
    rows = root.parent / "rows.csv"
    write_csv(ROWS, rows)
    for command in (
        ["write", rows, root],
        ["write", rows, root, "--mode", "append"],
        ["compact", root],
    ):
        result = CliRunner().invoke(app, [str(each) for each in command])
        assert result.exit_code == 0, result.output


def as_spark_driver(root: Path) -> None:
    """Write as the driver of Spark does, with tasks in this process."""
    schema = t.StructType([t.StructField("id", t.LongType())])
    for _ in range(2):
        options = TableOptions(location=Location.parse(root), rest={})
        plan = plan_write(options, schema, SaveMode.APPEND)
        assert plan is not None
        commit_plan(plan, written(plan.task, iter(ROWS.to_batches())))


@pytest.mark.parametrize("write", [ours, by_command, as_spark_driver])
def test_each_face_takes_time_and_ids_from_the_session(
    write: Callable[[Path], None], tmp_path: Path
) -> None:
    def make(name: str) -> tuple[list[int | None], list[str]]:
        (tmp_path / name).mkdir()
        root = tmp_path / name / "t.lance"
        with Session(clock=ManualClock(), ids=SystemIds(seed=7), after=()).as_default():
            write(root)
        times = [version.manifest.timestamp_ns for version in history(Location.parse(root))]
        paths = (path for path in root.rglob("*") if path.is_file())
        return times, sorted(str(path.relative_to(root)) for path in paths)

    times, files = make("one")
    assert set(times) == {ManualClock().ns}
    assert make("two") == (times, files)
