"""A version and its differences from another one, as documents of bounded size."""

from __future__ import annotations

from dataclasses import fields

from lancelake.commit.snapshot import Snapshot
from lancelake.commit.versions import list_versions
from lancelake.table.check.refs import CheckedRefs
from lancelake.table.describe.documents import Json, document
from lancelake.table.describe.log import line_entries, log_document, tags_of_versions
from lancelake.table.diff import diff

_MOST_ITEMS = 200


def commit_document(snapshot: Snapshot) -> Json:
    """Return a version with its transaction, and the versions before and after it."""
    names = list_versions(snapshot.location)
    tagged = tags_of_versions(snapshot, CheckedRefs.load(snapshot.main_location).tags)
    older = [name for name in names if name.version < snapshot.version]
    entry = next(iter(line_entries(snapshot.location, [snapshot.name, *older[-1:]], tagged)))
    done = entry.transaction
    return {
        **log_document(entry),
        "branch": snapshot.branch,
        "previous": older[-1].version if older else None,
        "next": min((n.version for n in names if n.version > snapshot.version), default=None),
        "manifest": {"name": snapshot.name.name, "size_bytes": snapshot.manifest_size},
        "transaction": None if done is None else done.uuid,
    }


def diff_document(before: Snapshot, after: Snapshot) -> Json:
    """Return the differences of two versions, of each kind the first and their number."""
    found = diff(before, after)
    body: dict[str, Json] = {
        "before": {"version": before.version, "branch": before.branch},
        "after": {"version": after.version, "branch": after.branch},
        "is_empty": found.is_empty,
        "totals": {},
    }
    for field in fields(found):
        value = getattr(found, field.name)
        if isinstance(value, tuple):
            body["totals"][field.name] = len(value)
            value = value[:_MOST_ITEMS]
        body[field.name] = document(value)
    return body
