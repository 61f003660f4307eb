"""Options and columns of a stream."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from lancelake.table.change_feed.request import CHANGE_TYPE, COMMIT_TIMESTAMP, COMMIT_VERSION

LIMITS = (
    "maxBytesPerTrigger",
    "maxFilesPerTrigger",
    "maxRowsPerTrigger",
    "maxVersionsPerTrigger",
)
STREAM_OPTIONS = (
    "branch",
    *LIMITS,
    "readChangeFeed",
    "skipChangeCommits",
    "startingTimestamp",
    "startingVersion",
)
_FEED_SCHEMA = StructType(
    [
        StructField(CHANGE_TYPE, StringType()),
        StructField(COMMIT_VERSION, LongType()),
        StructField(COMMIT_TIMESTAMP, TimestampType()),
    ]
)


def feed_schema(schema: StructType, options: Mapping[str, str]) -> StructType:
    """Return the columns of a stream; with the change feed, including its metadata columns."""
    lowered = {key.lower(): value for key, value in options.items()}
    if lowered.get("readchangefeed", "false").lower() != "true":
        return schema
    # Rows of older versions lack columns that were added since.
    own = [StructField(field.name, field.dataType, True, field.metadata) for field in schema]
    return StructType([*own, *_FEED_SCHEMA.fields])
