"""Candidate for the next version: written, published, or found published after a lost reply."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from lancelake import log
from lancelake.commit.handler import Outcome, PublishedVersion, Unknown, taken_apart
from lancelake.commit.snapshot import Snapshot
from lancelake.commit.versions import VersionLine
from lancelake.errors import (
    LanceTableError,
    StorageError,
    UncertainCommitError,
    VersionNotFoundError,
)
from lancelake.format import index_meta, layout, manifest_codec, transaction
from lancelake.format.layout import ManifestName, ManifestNaming, manifest_name
from lancelake.format.manifest_codec import ManifestFile
from lancelake.format.transaction import Transaction
from lancelake.storage.location import Location
from lancelake.threads import Future, Pool
from lancelake.txn.options import TableState


@dataclass(slots=True)
class Tally:
    """Numbers of versions; `in_doubt` are those without a reply of the store.

    `lost` replies are counted for ever, also if the version was found later.
    """

    published: int = 0
    in_doubt: int = 0
    lost: int = 0

    def begin(self) -> None:
        """Count an attempt, of which nothing is known yet."""
        self.in_doubt += 1

    def end(self, outcome: Outcome) -> None:
        """Count the outcome of an attempt."""
        if isinstance(outcome, Unknown):
            self.lost += 1
        else:
            self.in_doubt -= 1
        self.published += isinstance(outcome, PublishedVersion)


tally = Tally()


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A version that is ready to be published."""

    transaction: Transaction
    name: ManifestName
    state: TableState
    index_section: bytes | None
    transaction_bytes: bytes
    manifest_bytes: bytes

    @property
    def version(self) -> int:
        """Number of the version."""
        return self.name.version

    @property
    def transaction_path(self) -> str | None:
        """Path of the transaction file."""
        name = self.state.manifest.transaction_file
        return layout.transaction(name) if name else None

    def as_snapshot(self, location: Location) -> Snapshot:
        """Return the version as a reader would load it."""
        file = ManifestFile(
            manifest=self.state.manifest,
            index_section=self.index_section,
            inline_transaction=self.transaction_bytes,
        )
        return Snapshot.of_state(location, self.name, file, len(self.manifest_bytes), self.state)


def make_candidate(mine: Transaction, state: TableState, naming: ManifestNaming) -> Candidate:
    """Encode a version with its transaction inline."""
    manifest = state.manifest
    section = index_meta.encode_section(state.indices) if state.indices else None
    inline = transaction.encode(mine)
    return Candidate(
        transaction=mine,
        name=taken_apart(manifest_name(manifest.version, naming)),
        state=state,
        index_section=section,
        transaction_bytes=inline,
        manifest_bytes=manifest_codec.encode(manifest, index_section=section, transaction=inline),
    )


class Publisher:
    """Publishes the candidates of one transaction; writes each transaction file once."""

    __slots__ = ("_line", "_stored")

    def __init__(self, line: VersionLine) -> None:
        """Create a publisher for a version line."""
        self._line = line
        self._stored: tuple[str, bytes] | None = None

    def publish(self, candidate: Candidate) -> Outcome:
        """Write the transaction file, then the manifest if its version is free."""
        path, data = candidate.transaction_path, candidate.transaction_bytes
        if path is not None and (path, data) != self._stored:
            # The manifest has a copy, so this file may be lost when a machine stops.
            self._line.store.put(path, data, durable=False)
            self._stored = (path, data)
        tally.begin()
        outcome = self._line.handler.create(
            candidate.version, candidate.name.name, candidate.manifest_bytes
        )
        tally.end(outcome)
        return outcome


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
    with Pool(_AHEAD) as pool:
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
        name = line.handler.find(version)
        if name is None:
            raise
        return landed_at(line, name)


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


def report_lost_reply(
    line: VersionLine, candidate: Candidate, cause: StorageError, delay_s: float
) -> None:
    """Report that a candidate is looked for and published again."""
    table, version = line.location.uri, candidate.version
    reason = f"the reply to the commit of version {version} of {table} was lost: {cause}"
    log.report_retry(log.COMMIT, reason, delay_s, table=table, version=version)


def uncertain(line: VersionLine, candidate: Candidate) -> UncertainCommitError:
    """Return the error for a candidate that may or may not be published."""
    uuid = candidate.transaction.uuid
    return UncertainCommitError(
        f"transaction {uuid} may have become version {candidate.version}: the reply was lost",
        table=line.location.uri,
        version=candidate.version,
        uuid=uuid,
    )
