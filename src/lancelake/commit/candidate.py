"""A commit: what is asked for, the version made of it, and what landed before it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from lancelake import errors, log
from lancelake.clock import Clock, Ids
from lancelake.commit.handler import Outcome, PublishedVersion, Unknown, taken_apart
from lancelake.commit.snapshot import CommitMetrics, Snapshot, VersionLine
from lancelake.format import index_meta, layout
from lancelake.format.layout import ManifestName, ManifestNaming, manifest_name
from lancelake.format.manifest import ManifestFile, WriterVersion, encode_manifest
from lancelake.format.operations import Overwrite, Transaction, encode_transaction
from lancelake.storage.location import Location
from lancelake.threads import Future, Pool
from lancelake.txn import migrations, rules
from lancelake.txn.key_bloom import KeyHashes
from lancelake.txn.options import BuildOptions, Facts, MissingFacts, TableState, VersionChoices

DEFAULT_RETRIES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestChoices(VersionChoices):
    """Choices for a version, and for the attempts to commit it."""

    affected_rows: rules.AffectedRows | None = None
    """Rows that the transaction deletes or moves, if known."""

    inserted_keys: KeyHashes | None = None
    """Keys that the transaction inserts, if known."""

    max_retries: int = DEFAULT_RETRIES
    """With 0 an Overwrite is strict: it becomes the next version or fails."""

    may_have_landed: bool = False
    """Whether an earlier attempt may have committed the same transaction.

    It is then never committed past versions that no longer exist, where it could be.
    """

    timeout_s: float | None = None
    """No attempt starts after this time, except for the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRequest:
    """A transaction to commit."""

    transaction: Transaction
    choices: RequestChoices

    @property
    def is_strict(self) -> bool:
        """Whether any commit in between makes the request fail."""
        return self.choices.max_retries == 0 and isinstance(self.transaction.operation, Overwrite)

    @property
    def max_attempts(self) -> int:
        """Maximum number of attempts."""
        return max(self.choices.max_retries, 1)

    @property
    def kind(self) -> str:
        """Name of the operation."""
        return type(self.transaction.operation).__name__


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitResult:
    """The version that a transaction became; `transaction` is as it was recorded."""

    snapshot: Snapshot
    transaction: Transaction
    metrics: CommitMetrics

    @property
    def version(self) -> int:
        """Number of the version."""
        return self.snapshot.version

    @property
    def state(self) -> TableState:
        """The table at the version."""
        return self.snapshot.state

    @property
    def attempts(self) -> int:
        """Number of published manifests; 0 when the transaction was committed before."""
        return self.metrics.attempts

    @property
    def milliseconds(self) -> int:
        """Duration of the commit."""
        return self.metrics.milliseconds


class FactsPort(Protocol):
    """Reads facts from files that old writers left out of manifests."""

    def learn(self, state: TableState, wanted: MissingFacts) -> Facts:
        """Return the missing facts of a version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitServices:
    """Services that a commit uses besides the version line.

    Without `keys`, rows added by concurrent commits cannot be checked for the keys of an upsert.
    """

    port: rules.RebasePort
    facts: FactsPort
    clock: Clock
    ids: Ids
    writer: WriterVersion
    keys: rules.KeyPort | None = None

    def options_for(self, choices: VersionChoices, head: TableState | None = None) -> BuildOptions:
        """Return options for a version committed now, on top of `head` or as the first one."""
        options = BuildOptions(
            timestamp_ns=self.clock.now_ns(), writer=self.writer, choices=choices
        )
        if head is None:
            return options
        corrected = choices.corrections.applied(head)
        wanted = migrations.wanted(corrected)
        return replace(options, facts=self.facts.learn(corrected, wanted)) if wanted else options


# 32 slots keep a few dozen writers apart. A writer that has lost more often than that waits less
# than those who came after it, and in the end not at all: no writer starves.
_SLOTS = (4, 8, 16, 32, 16, 8, 4, 2)
_MARGIN = 1.1
_DETACHED_FIRST_S = 0.05
_DETACHED_SPREAD_S = 0.05
_DETACHED_MOST_S = 5.0
_DETACHED_MOST_EXPONENT = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotBackoff:
    """Random backoff in slots; a slot is a little longer than one attempt."""

    attempt_s: float

    def delay_s(self, wait: int, chance: float) -> float:
        """Return wait number `wait` (from 0), a random part of its slots."""
        slots = _SLOTS[wait] if wait < len(_SLOTS) else 0
        return int(chance * slots) * _MARGIN * self.attempt_s


def redo_delay_s(attempt_s: float, chance: float, *, most_s: float) -> float:
    """Return the wait before a change is made again: shorter than the change and `most_s`."""
    return chance * max(0.0, min(attempt_s, most_s))


def detached_delay_s(wait: int, chance: float) -> float:
    """Return the wait number `wait` (from 0) of a detached commit whose number was taken."""
    full = _DETACHED_FIRST_S * 2.0 ** min(wait, _DETACHED_MOST_EXPONENT)
    spread = (2 * chance - 1) * _DETACHED_SPREAD_S
    return min(_DETACHED_MOST_S, max(0.0, full + spread))


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
    inline = encode_transaction(mine)
    return Candidate(
        transaction=mine,
        name=taken_apart(manifest_name(manifest.version, naming)),
        state=state,
        index_section=section,
        transaction_bytes=inline,
        manifest_bytes=encode_manifest(manifest, index_section=section, transaction=inline),
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
    except errors.VersionNotFoundError:
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
    except errors.VersionNotFoundError:
        return None
    except errors.LanceTableError as error:
        raise uncertain(line, candidate) from error
    if landed is None or landed.transaction is None:
        return None
    is_mine = landed.transaction.uuid == candidate.transaction.uuid
    return landed.snapshot if is_mine else None


def report_lost_reply(
    line: VersionLine, candidate: Candidate, cause: errors.StorageError, delay_s: float
) -> None:
    """Report that a candidate is looked for and published again."""
    table, version = line.location.uri, candidate.version
    reason = f"the reply to the commit of version {version} of {table} was lost: {cause}"
    log.report_retry(log.COMMIT, reason, delay_s, table=table, version=version)


def uncertain(line: VersionLine, candidate: Candidate) -> errors.UncertainCommitError:
    """Return the error for a candidate that may or may not be published."""
    uuid = candidate.transaction.uuid
    return errors.UncertainCommitError(
        f"transaction {uuid} may have become version {candidate.version}: the reply was lost",
        table=line.location.uri,
        version=candidate.version,
        uuid=uuid,
    )
