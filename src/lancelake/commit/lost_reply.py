"""Lookup of a commit whose reply was lost."""

from __future__ import annotations

from lancelake.commit.candidate import Candidate
from lancelake.commit.history import landed_at
from lancelake.commit.snapshot import Snapshot
from lancelake.commit.version_line import VersionLine
from lancelake.errors import LanceTableError, UncertainCommitError, VersionNotFoundError


def look_for(line: VersionLine, candidate: Candidate) -> Snapshot | None:
    """Return the version if it is the candidate's, None if it is free or another writer's.

    Raises `UncertainCommitError` when the lookup fails too.
    """
    try:
        name = line.handler.find(candidate.version)
        landed = None if name is None else landed_at(line, name)
    except VersionNotFoundError:
        return None
    except LanceTableError as error:
        raise uncertain(line, candidate) from error
    if landed is None or landed.transaction is None:
        return None
    is_mine = landed.transaction.uuid == candidate.transaction.uuid
    return landed.snapshot if is_mine else None


def uncertain(line: VersionLine, candidate: Candidate) -> UncertainCommitError:
    """Return the error for a candidate that may or may not be published."""
    uuid = candidate.transaction.uuid
    return UncertainCommitError(
        f"transaction {uuid} may have become version {candidate.version}: the reply was lost",
        table=line.location.uri,
        version=candidate.version,
        uuid=uuid,
    )
