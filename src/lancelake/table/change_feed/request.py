"""What a change feed is asked for, and the columns it adds to those of the table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

import pyarrow as pa

from lancelake.errors import InvalidRequestError
from lancelake.expr.predicate import Filter


class ChangeKind(Enum):
    """What a row of the feed says; the value is what it says it with."""

    INSERT = "insert"
    UPDATE_BEFORE = "update_preimage"
    UPDATE_AFTER = "update_postimage"
    DELETE = "delete"


ALL_KINDS = frozenset(ChangeKind)
_UPDATES = frozenset({ChangeKind.UPDATE_BEFORE, ChangeKind.UPDATE_AFTER})

ROW_ID = "_rowid"
CHANGE_TYPE = "_change_type"
COMMIT_VERSION = "_commit_version"
COMMIT_TIMESTAMP = "_commit_timestamp"
FEED_FIELDS = (
    pa.field(ROW_ID, pa.uint64()),
    pa.field(CHANGE_TYPE, pa.string()),
    pa.field(COMMIT_VERSION, pa.uint64()),
    pa.field(COMMIT_TIMESTAMP, pa.timestamp("us", "UTC")),
)
FEED_NAMES = tuple(field.name for field in FEED_FIELDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRequest:
    """Columns of the last version, a filter on rows of the feed, and which kinds of changes.

    `is_net` asks for what differs between the first and the last version, whatever came between.
    """

    columns: tuple[str, ...] | None = None
    filter: Filter | None = None
    kinds: frozenset[ChangeKind] = ALL_KINDS
    batch_rows: int | None = None
    is_net: bool = False


def parse_kinds(names: str | Iterable[str] | None) -> frozenset[ChangeKind]:
    """Understand the kinds a user names; "update" stands for both images, None for all."""
    if names is None:
        return ALL_KINDS
    found: set[ChangeKind] = set()
    for name in (names,) if isinstance(names, str) else names:
        if name == "update":
            found |= _UPDATES
        else:
            found.add(_kind(name))
    return frozenset(found)


def _kind(name: str) -> ChangeKind:
    try:
        return ChangeKind(name)
    except ValueError as error:
        known = ", ".join(["update", *(kind.value for kind in ChangeKind)])
        problem = f"{name!r} is no kind of change; there are: {known}"
        raise InvalidRequestError(problem, kind=name) from error
