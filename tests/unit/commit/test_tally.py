from __future__ import annotations

from lancelake.commit.candidate import Tally
from lancelake.commit.handler import PublishedVersion, Taken, Unknown
from lancelake.errors import StorageUnavailableError


def test_a_version_is_in_doubt_until_the_store_replies() -> None:
    tally = Tally()
    tally.begin()
    assert (tally.published, tally.in_doubt) == (0, 1)
    tally.end(PublishedVersion())
    assert (tally.published, tally.in_doubt) == (1, 0)


def test_a_version_of_another_writer_is_not_counted() -> None:
    tally = Tally()
    tally.begin()
    tally.end(Taken())
    assert (tally.published, tally.in_doubt) == (0, 0)


def test_a_lost_reply_leaves_a_version_in_doubt() -> None:
    tally = Tally()
    tally.begin()
    tally.end(Unknown(StorageUnavailableError("no reply")))
    assert (tally.published, tally.in_doubt, tally.lost) == (0, 1, 1)
