"""Read a table as a DataFrame without a catalog."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from lancelake.spark.jvm.gateway import is_classic, open_gateway
from lancelake.spark.jvm.relation import data_frame
from lancelake.spark.options.table_options import (
    READ_OPTIONS,
    SCAN_OPTIONS,
    ensure_known,
    open_version,
    parse,
)
from lancelake.spark.options.times import with_zones
from lancelake.spark.planning.feed_table import FeedTable
from lancelake.spark.planning.latest_table import LatestTable
from lancelake.spark.reading.change_feed import FEED, FEED_OPTIONS, versions_of
from lancelake.spark.reading.latest_plan import FRESHNESS, LATEST_OPTIONS
from lancelake.spark.reading.version_table import VersionTable


def read(spark: SparkSession, uri: str, **options: str | int | bool) -> DataFrame:
    """Return the rows of a table; filters, columns and aggregates are pushed down.

    Args:
        spark: The session.
        uri: Path or URI of the table.
        **options: Those of `spark.read.format("lance")`: `version`, `tag`, `branch`, `timestamp`,
            options of the object store; `readChangeFeed` returns row-level changes; `freshness`,
            `flushed` or `durable`, includes rows of the MemWAL.

    Returns:
        The rows.

    Raises:
        TableNotFoundError: There is no table at `uri`.
        InvalidRequestError: An option is unknown.

    Examples:
        >>> from lancelake.spark import read
        >>> [row.name for row in read(spark, path, version=1).where("score > 2").collect()]
        ['bob', 'cy']
    """
    given = {key: str(value) for key, value in options.items()}
    if not is_classic(spark):
        return spark.read.format("lance").options(**with_zones(spark, given)).load(uri)
    return read_options(spark, {**given, "path": uri})


def read_options(spark: SparkSession, options: Mapping[str, str]) -> DataFrame:
    """Return the table selected by options, as a DataFrame of a classic session."""
    gateway = open_gateway(spark)
    parsed = parse(with_zones(spark, options), (*READ_OPTIONS, *FEED_OPTIONS, FRESHNESS))
    snapshot = open_version(parsed)
    if parsed.get(FRESHNESS) is not None:
        ensure_known(parsed.rest, ("branch", *LATEST_OPTIONS), snapshot.location.uri)
        latest = LatestTable(gateway, snapshot, f"latest rows of lance.`{snapshot.location.uri}`")
        chosen = {n: value for n in LATEST_OPTIONS if (value := parsed.get(n)) is not None}
        return data_frame(gateway, latest, chosen)
    if parsed.flag(FEED, default=False):
        name = f"changes of lance.`{snapshot.location.uri}`"
        return data_frame(gateway, FeedTable(gateway, snapshot, versions_of(parsed), name))
    ensure_known(parsed.rest, READ_OPTIONS)
    table = VersionTable(gateway, snapshot, f"lance.`{snapshot.location.uri}`")
    # The version is fixed and secrets are not part of the plan.
    rest = {name: value for name in SCAN_OPTIONS if (value := parsed.get(name)) is not None}
    return data_frame(gateway, table, rest)
