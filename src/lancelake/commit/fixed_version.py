"""Publishing of a version whose number is fixed."""

from __future__ import annotations

from typing import assert_never

from lancelake.commit.backoff import detached_delay_s
from lancelake.commit.candidate import Candidate, Publisher
from lancelake.commit.handler import Outcome, PublishedVersion, Taken, Unknown
from lancelake.commit.lost_reply import look_for, uncertain
from lancelake.commit.services import CommitServices
from lancelake.commit.snapshot import Snapshot
from lancelake.commit.version_line import VersionLine
from lancelake.errors import LanceTableError, StorageUnavailableError

_MOST_DOUBTS = 5


def publish_single(
    line: VersionLine, candidate: Candidate, publisher: Publisher, services: CommitServices
) -> Snapshot | None:
    """Publish a candidate; return None when another writer has the version.

    After a lost reply the version is looked up, and published again while it is free.
    """
    for doubts in range(_MOST_DOUBTS + 1):
        outcome = _published(line, candidate, publisher, is_in_doubt=doubts > 0)
        match outcome:
            case PublishedVersion():
                return candidate.as_snapshot(line.location)
            case Taken():
                return look_for(line, candidate)
            case Unknown(cause):
                found = look_for(line, candidate)
                if found is not None:
                    return found
                if not isinstance(cause, StorageUnavailableError) and not doubts:
                    raise cause
            case _:
                assert_never(outcome)
        services.clock.sleep(detached_delay_s(doubts, services.ids.random()))
    raise uncertain(line, candidate)


def _published(
    line: VersionLine, candidate: Candidate, publisher: Publisher, *, is_in_doubt: bool
) -> Outcome:
    try:
        return publisher.publish(candidate)
    except LanceTableError as error:
        if is_in_doubt:
            raise uncertain(line, candidate) from error
        raise
