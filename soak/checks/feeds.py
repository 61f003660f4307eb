"""Check the change feed against the row-level differences between versions.

A row keeps its id when it changes, and no operation changes a key: so what the feed pairs by id are
images of one key. Only a restore may take one row away and bring back another with the same key.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from soak.checks.finding import Finding, Wrong
from soak.history import Change, Feed, History, Row, Rows

_INSERT, _DELETE = "insert", "delete"
_BEFORE, _AFTER = "update_preimage", "update_postimage"
_KINDS = {(_INSERT,), (_DELETE,), (_BEFORE, _AFTER)}
"""What can happen to a key in a version, in this order."""
_REPLACED = (_DELETE, _INSERT)


def wrong_feeds(history: History) -> Iterator[Finding]:
    """Yield changes that do not lead from one version to the next."""
    states = history.states
    restores = {c.version for c in history.commits.values() if c.kind == "Restore"}
    for feed in history.feeds:
        yield from _wrong_in(feed, states, restores)


def _wrong_in(feed: Feed, states: dict[int, Rows], restores: set[int]) -> Iterator[Finding]:
    outside = {c.version for c in feed.changes if not feed.begin < c.version <= feed.end}
    if outside:
        message = f"the feed of {feed.begin} to {feed.end} has versions {sorted(outside)[:4]}"
        yield Finding(wrong=Wrong.WRONG_FEED, message=message)
    for version in range(feed.begin + 1, feed.end + 1):
        if version in states and version - 1 in states:
            changes = [change for change in feed.changes if change.version == version]
            kinds = _KINDS | ({_REPLACED} if version in restores else set())
            problem = _problem(changes, states[version - 1], states[version], kinds)
            if problem is not None:
                message = f"{problem}, says {feed.process} of {feed.begin} to {feed.end}"
                yield Finding(wrong=Wrong.WRONG_FEED, version=version, message=message)


def _problem(
    changes: Iterable[Change], before: Rows, after: Rows, kinds: set[tuple[str, ...]]
) -> str | None:
    """Return what is wrong with the changes of one version."""
    listed: defaultdict[int, list[Change]] = defaultdict(list)
    for change in changes:
        listed[change.key].append(change)
    for key, found in listed.items():
        if tuple(change.kind for change in found) not in kinds:
            return f"row {key} has {', '.join(change.kind for change in found)}"
        for change in found:
            if change.row != _image(change, before, after):
                return f"{change.kind} of row {key}, which is not like that"
        if (found[0].kind == _INSERT) != (key not in before):
            return f"{found[0].kind} of row {key}, which was there before"
        if (found[-1].kind == _DELETE) != (key not in after):
            return f"{found[-1].kind} of row {key}, which is there afterwards"
    others = (before.keys() | after.keys()) - listed.keys()
    silent = sorted(key for key in others if before.get(key) != after.get(key))
    return f"no changes are listed for rows {silent[:4]}" if silent else None


def _image(change: Change, before: Rows, after: Rows) -> Row | None:
    """Return the row as it was, or as it became."""
    return (before if change.kind in (_DELETE, _BEFORE) else after).get(change.key)
