"""What was committed after a version?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lancelake.commit.line import Line
from lancelake.commit.load import Loaded, load, transaction_of
from lancelake.commit.lookup import taken_apart
from lancelake.errors import VersionNotFoundError
from lancelake.format.names import ManifestName, manifest_name
from lancelake.format.transaction import Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Landed:
    """A commit of any writer: the version it made, and its transaction if that was recorded."""

    loaded: Loaded
    transaction: Transaction | None


def landed_at(line: Line, name: ManifestName) -> Landed:
    """Read the commit that made a version."""
    loaded = load(line, name)
    return Landed(loaded=loaded, transaction=transaction_of(line, loaded))


def commits_after(line: Line, seen: ManifestName, newest: ManifestName) -> Iterator[Landed]:
    """Yield the commits after `seen` up to `newest`, oldest first.

    A version between the two that is gone is a `VersionNotFoundError`.
    """
    for version in range(seen.version + 1, newest.version):
        yield _landed_between(line, version, newest)
    if newest.version > seen.version:
        yield landed_at(line, newest)


def _landed_between(line: Line, version: int, newest: ManifestName) -> Landed:
    """Read a version whose name is likely of the same scheme as the newest."""
    try:
        return landed_at(line, taken_apart(manifest_name(version, newest.naming)))
    except VersionNotFoundError:
        found = line.handler.find(version)
        if found is None:
            raise
        return landed_at(line, found)
