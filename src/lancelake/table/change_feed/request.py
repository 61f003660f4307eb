"""Options of a change feed, and the columns it adds to those of the table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

import pyarrow as pa

from lancelake.errors import InvalidRequestError
from lancelake.expr.predicate import Filter


class ChangeKind(Enum):
    """Kind of change of a row in the feed; the value is the one written to the change column."""

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
    """Columns of the last version, a filter on rows of the feed, and the kinds of changes.

    `is_net` requests the net difference between the first and the last version.
    """

    columns: tuple[str, ...] | None = None
    filter: Filter | None = None
    kinds: frozenset[ChangeKind] = ALL_KINDS
    batch_rows: int | None = None
    is_net: bool = False


def parse_kinds(names: str | Iterable[str] | None) -> frozenset[ChangeKind]:
    """Parse kinds of changes; "update" selects both images, None selects all kinds."""
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
        problem = f"unknown kind of change {name!r}; valid kinds: {known}"
        raise InvalidRequestError(problem, kind=name) from error
