"""The pages of the reference list what the code has."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

from lancelake.maintenance.optimize import OptimizeSettings
from lancelake.spark.streaming.sink import SINK_OPTIONS
from lancelake.spark.streaming.stream_source import STREAM_OPTIONS
from lancelake.spark.streaming.upserts import BATCH_OPTIONS
from lancelake.spark.tasks.change_feed import FEED_OPTIONS
from lancelake.spark.tasks.latest_plan import LATEST_OPTIONS
from lancelake.spark.values.options import CONFINE_TO, READ_OPTIONS, WRITE_OPTIONS

REPO = Path(__file__).parents[2]
OPTIONS = (REPO / "docs" / "reference" / "options.md").read_text(encoding="utf-8")
SPARK_OPTIONS = {
    *READ_OPTIONS,
    *WRITE_OPTIONS,
    *FEED_OPTIONS,
    *LATEST_OPTIONS,
    *STREAM_OPTIONS,
    *SINK_OPTIONS,
    *BATCH_OPTIONS,
    CONFINE_TO,
}
OTHER_NAMES = {"versionAsOf", "timestampAsOf", "storage.<key>"}


def test_the_page_of_spark_sql_is_current() -> None:
    spec = importlib.util.spec_from_file_location("page", REPO / "scripts" / "sql_page.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.PAGE.read_text(encoding="utf-8") == module.page(), "run scripts/sql_page.py"


def test_every_option_of_spark_is_listed_and_no_other() -> None:
    listed = OPTIONS.partition("## Spark settings")[0]
    names = {
        name
        for row in re.findall(r"^\| (`.*?) \|", listed, re.MULTILINE)
        for name in re.findall(r"`([^`]+)`", row)
    }
    assert names == SPARK_OPTIONS | OTHER_NAMES


def test_every_threshold_of_optimize_is_listed() -> None:
    for name in ("compact", "cleanup", "min_fragments_saved", "min_versions"):
        assert hasattr(OptimizeSettings(), name)
        assert f"`lancelake.optimize.{name}`" in OPTIONS
