"""Commit history: the commits after a version, with their transactions."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from lancelake.commit.lookup import taken_apart
from lancelake.commit.snapshot import Snapshot
from lancelake.commit.version_line import VersionLine
from lancelake.errors import VersionNotFoundError
from lancelake.format.names import ManifestName, manifest_name
from lancelake.format.transaction import Transaction

# Up to this many commits are read one by one; more are prefetched, this many at a time.
_FEW = 8
_AHEAD = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Landed:
    """A commit of any writer: the version it made, and its transaction if that was recorded."""

    snapshot: Snapshot
    transaction: Transaction | None


def landed_at(line: VersionLine, name: ManifestName) -> Landed:
    """Read the commit that made a version."""
    loaded = line.load(name)
    return Landed(snapshot=loaded, transaction=loaded.transaction_in(line.store))


def commits_after(line: VersionLine, seen: ManifestName, newest: ManifestName) -> Iterator[Landed]:
    """Yield the commits after `seen` up to `newest`, oldest first.

    Raises `VersionNotFoundError` when a version between the two was cleaned up.
    """
    between = range(seen.version + 1, newest.version)
    if len(between) > _FEW:
        yield from _read_ahead(line, between, newest)
    else:
        for version in between:
            yield _landed_between(line, version, newest)
    if newest.version > seen.version:
        yield landed_at(line, newest)


def _read_ahead(line: VersionLine, versions: range, newest: ManifestName) -> Iterator[Landed]:
    """Yield the commits in order while the next ones are prefetched."""
    pending: deque[Future[Landed]] = deque()
    with ThreadPoolExecutor(_AHEAD, thread_name_prefix="catch-up") as pool:
        try:
            for version in versions:
                if len(pending) == _AHEAD:
                    yield pending.popleft().result()
                pending.append(pool.submit(_landed_between, line, version, newest))
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()


def _landed_between(line: VersionLine, version: int, newest: ManifestName) -> Landed:
    """Read a version, whose name likely has the same scheme as the newest."""
    try:
        return landed_at(line, taken_apart(manifest_name(version, newest.naming)))
    except VersionNotFoundError:
        found = line.handler.find(version)
        if found is None:
            raise
        return landed_at(line, found)
