"""Versions in the history of a table."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from typing import TypedDict

from lancelake.clock import utc_from_ns
from lancelake.table.history import VersionFacts, VersionSummary

VERSION_HEADER = ("version", "time", "rows", "fragments", "data files")
_TOTALS = sorted(name for name in dir(VersionSummary) if name.startswith("total_"))
_SHOWN = ("total_rows", "total_fragments", "total_data_files")


class Version(TypedDict):
    """A version in the table's history."""

    version: int
    timestamp: datetime
    metadata: dict[str, str]


class VersionRef(TypedDict):
    """Number of a version."""

    version: int


def version_of(facts: VersionFacts) -> Version:
    """Describe a version."""
    # pylance returns local times without a time zone.
    written = utc_from_ns(facts.timestamp_ns or 0).astimezone().replace(tzinfo=None)
    metadata = dict(_totals(facts.summary))
    return Version(version=facts.version, timestamp=written, metadata=metadata)


def version_cells(version: Version) -> tuple[object, ...]:
    """Return a version for a table in a notebook."""
    counts = (version["metadata"][name] for name in _SHOWN)
    time = version["timestamp"].isoformat(" ", "seconds")
    return (version["version"], time, *(f"{int(count):,}" for count in counts))


@lru_cache(maxsize=4096)
def _totals(summary: VersionSummary) -> tuple[tuple[str, str], ...]:
    return tuple((name, str(getattr(summary, name))) for name in _TOTALS)
