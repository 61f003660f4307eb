"""Does the change feed tell what differs between versions?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from soak.checks.finding import Finding, Wrong
from soak.history import Change, Feed, History, Rows


def wrong_feeds(history: History) -> Iterator[Finding]:
    """Yield changes that do not lead from one version to the next."""
    states = history.states
    for feed in history.feeds:
        yield from _wrong_in(feed, states)


def _wrong_in(feed: Feed, states: dict[int, Rows]) -> Iterator[Finding]:
    outside = {c.version for c in feed.changes if not feed.begin < c.version <= feed.end}
    if outside:
        message = f"the feed of {feed.begin} to {feed.end} has versions {sorted(outside)[:4]}"
        yield Finding(wrong=Wrong.WRONG_FEED, message=message)
    for version in range(feed.begin + 1, feed.end + 1):
        if version in states and version - 1 in states:
            changes = [change for change in feed.changes if change.version == version]
            problem = _problem(changes, states[version - 1], states[version])
            if problem is not None:
                message = f"{problem}, says {feed.process} of {feed.begin} to {feed.end}"
                yield Finding(wrong=Wrong.WRONG_FEED, version=version, message=message)


def _problem(changes: Iterable[Change], before: Rows, after: Rows) -> str | None:
    """Apply the changes of one version to the rows before it."""
    rows = dict(before)
    images = 0
    for change in changes:
        key, row = change.key, change.row
        match change.kind:
            case "delete" | "update_preimage":
                if before.get(key) != row:
                    return f"{change.kind} of row {key}, which was not like that"
                # What follows of the same key is an insert, or the image after the update.
                rows.pop(key, None)
                images += change.kind == "update_preimage"
            case "insert" | "update_postimage":
                rows[key] = row
                images -= change.kind == "update_postimage"
            case other:
                return f"{other} is no change"
    if images:
        return f"{images} more images before updates than after"
    wrong = {key for key in rows.keys() | after.keys() if rows.get(key) != after.get(key)}
    return f"rows {sorted(wrong)[:4]} are not as the changes leave them" if wrong else None
