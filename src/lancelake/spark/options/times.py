"""Parse times as text with Spark, in the session's time zone."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from pyspark.sql import SparkSession

from lancelake.errors import InvalidRequestError

_TIME_OPTIONS = ("timestamp", "timestampasof", "startingtimestamp", "endingtimestamp")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_QUERY = "SELECT unix_micros(try_cast(:text AS TIMESTAMP)) AS micros"


def with_zones(spark: SparkSession, options: Mapping[str, str]) -> dict[str, str]:
    """Return options with time zones added to their times."""
    return {
        key: zoned(spark, value) if key.lower() in _TIME_OPTIONS else value
        for key, value in options.items()
    }


def zoned(spark: SparkSession, time: str | datetime) -> str:
    """Return a time with its time zone, as `TIMESTAMP AS OF` interprets it.

    Text without a time zone is in that of the session, and a naive datetime in that of the process,
    as everywhere in PySpark. Text that Spark cannot parse is returned unchanged.
    """
    if isinstance(time, datetime):
        return (time if time.tzinfo else time.astimezone()).isoformat()
    row = spark.sql(_QUERY, args={"text": time.strip()}).first()
    if row is None or row.micros is None:
        return time
    try:
        return (_EPOCH + timedelta(microseconds=row.micros)).isoformat()
    except OverflowError as error:
        raise InvalidRequestError(f"time {time!r} is out of range") from error
