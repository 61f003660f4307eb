"""Commit loop: build, publish, and rebase on what others have committed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import assert_never

from lancelake import log
from lancelake.commit.candidate import (
    Candidate,
    CommitRequest,
    CommitResult,
    CommitServices,
    Landed,
    Publisher,
    SlotBackoff,
    commits_after,
    detached_delay_s,
    look_for,
    make_candidate,
    report_lost_reply,
    uncertain,
)
from lancelake.commit.handler import Outcome, PublishedVersion, Taken, Unknown
from lancelake.commit.snapshot import CommitMetrics, Snapshot, VersionLine, update_hint
from lancelake.errors import (
    AlreadyExistsError,
    CommitError,
    ConflictError,
    ContentionError,
    CorruptTableError,
    IncompatibleConflictError,
    InvalidRequestError,
    LanceTableError,
    RetryableConflictError,
    StorageError,
    StorageUnavailableError,
    TableNotFoundError,
    UnsupportedError,
    VersionNotFoundError,
)
from lancelake.format.ids import Version
from lancelake.format.layout import DETACHED_BIT, ManifestName, ManifestNaming, is_detached
from lancelake.format.manifest import ensure_writable
from lancelake.format.operations import Restore, Transaction
from lancelake.txn import build
from lancelake.txn.options import TableState
from lancelake.txn.rules import Compatible, Context, Incompatible, Retryable

_MOST_RETRIES = 5


def publish_single(
    line: VersionLine, candidate: Candidate, publisher: Publisher, services: CommitServices
) -> Snapshot | None:
    """Publish a candidate; return None when another writer has the version.

    After a lost reply the version is looked up, and published again while it is free.
    """
    for retry in range(_MOST_RETRIES + 1):
        outcome = _published(line, candidate, publisher, is_retry=retry > 0)
        match outcome:
            case PublishedVersion():
                return candidate.as_snapshot(line.location)
            case Taken():
                return look_for(line, candidate)
            case Unknown(cause):
                landed = look_for(line, candidate)
                if landed is not None:
                    return landed
                if not isinstance(cause, StorageUnavailableError) and not retry:
                    raise cause
            case _:
                assert_never(outcome)
        delay_s = detached_delay_s(retry, services.ids.random())
        report_lost_reply(line, candidate, cause, delay_s)
        services.clock.sleep(delay_s)
    raise uncertain(line, candidate)


def _published(
    line: VersionLine, candidate: Candidate, publisher: Publisher, *, is_retry: bool
) -> Outcome:
    try:
        return publisher.publish(candidate)
    except LanceTableError as error:
        if is_retry:
            raise uncertain(line, candidate) from error
        raise


def create_table(
    line: VersionLine,
    request: CommitRequest,
    services: CommitServices,
    *,
    naming: ManifestNaming = ManifestNaming.V2,
) -> CommitResult:
    """Publish version 1 of a table, or raise `AlreadyExistsError`."""
    options = services.options_for(request.choices)
    state = build.create(request.transaction, options)
    return _publish_first(line, services, make_candidate(request.transaction, state, naming))


def clone_table(
    line: VersionLine,
    request: CommitRequest,
    services: CommitServices,
    *,
    source: TableState,
    source_uri: str,
    naming: ManifestNaming = ManifestNaming.V2,
) -> CommitResult:
    """Publish the first version of a clone, which has the number of the version it copies."""
    options = services.options_for(request.choices)
    state = build.clone(request.transaction, source, source_uri, options)
    return _publish_first(line, services, make_candidate(request.transaction, state, naming))


def _publish_first(
    line: VersionLine, services: CommitServices, candidate: Candidate
) -> CommitResult:
    started_s = services.clock.monotonic_s()
    loaded = _landed_or_published(line, services, candidate)
    update_hint(line, loaded.version)
    metrics = CommitMetrics(
        attempts=1,
        milliseconds=round((services.clock.monotonic_s() - started_s) * 1000),
        manifest_bytes=loaded.manifest_size,
    )
    return CommitResult(snapshot=loaded, transaction=candidate.transaction, metrics=metrics)


def _landed_or_published(
    line: VersionLine, services: CommitServices, candidate: Candidate
) -> Snapshot:
    # The first version of an old table may be cleaned up, so any version counts.
    if line.handler.latest() is not None:
        loaded = look_for(line, candidate)
    else:
        loaded = publish_single(line, candidate, Publisher(line), services)
    if loaded is None:
        uri = line.location.uri
        raise AlreadyExistsError(f"Dataset already exists: {uri}", table=uri)
    return loaded


def commit_detached(
    line: VersionLine, request: CommitRequest, services: CommitServices, *, base: Snapshot
) -> CommitResult:
    """Publish a transaction as a detached version based on `base`, under a random number."""
    if base.name.naming is not ManifestNaming.V2:
        raise UnsupportedError(
            "detached commits cannot be made on a table with v1 manifest paths",
            table=line.location.uri,
            action="Migrate the manifest paths to V2 first.",
        )
    ensure_writable(base.state.manifest.writer_feature_flags)
    started_s = services.clock.monotonic_s()
    publisher = Publisher(line)
    for attempt in range(request.max_attempts):
        candidate = _candidate(request, services, base)
        loaded = publish_single(line, candidate, publisher, services)
        if loaded is not None:
            metrics = CommitMetrics(
                attempts=attempt + 1,
                milliseconds=round((services.clock.monotonic_s() - started_s) * 1000),
                manifest_bytes=loaded.manifest_size,
            )
            return CommitResult(snapshot=loaded, transaction=candidate.transaction, metrics=metrics)
        services.clock.sleep(detached_delay_s(attempt, services.ids.random()))
    raise ContentionError(
        f"Failed to commit the transaction after {request.choices.max_retries} retries. "
        "No free version was found",
        table=line.location.uri,
    )


def _candidate(request: CommitRequest, services: CommitServices, base: Snapshot) -> Candidate:
    version = Version(services.ids.random_u64() | DETACHED_BIT)
    options = replace(services.options_for(request.choices, base.state), version=version)
    state = build.next_state(request.transaction, base.state, options)
    return make_candidate(request.transaction, state, ManifestNaming.V2)


_UNRECORDED = "unknown"
# Reading so few commits takes no longer than an attempt, which finds newer commits as well.
_FEW = 2


class CatchUp:
    """A change between the version it was made from and the newest one.

    Each commit of another writer is checked for conflicts once.
    """

    def __init__(
        self,
        line: VersionLine,
        request: CommitRequest,
        services: CommitServices,
        base: Snapshot | None = None,
    ) -> None:
        """Start from `base`, or load the version that was read."""
        self._line = line
        self._request = request
        self._services = services
        self._needs_rebase = False
        self._fitted: Transaction | None = request.transaction
        # A version before the one that is judged, which was cleaned up.
        self._gone: int | None = None
        self.concurrent_commits = 0
        self.rebases = 0
        self.base = base or self._load_base()
        self.head = self.base
        self.head_kind = _UNRECORDED

    def catch_up(self, *, is_in_doubt: bool = False) -> Landed | None:
        """Check all commits since the base; return the transaction's own if it is among them.

        With `is_in_doubt`, or if an earlier attempt may have landed, its own may be among those
        that no longer exist: then `VersionNotFoundError` is raised.

        A strict request is not checked: any commit in between makes it fail. More commits may
        land while many are read; those are read as well, because an attempt would fail.
        """
        while True:
            seen = self.head.version
            mine = self._caught_up_once(is_in_doubt=is_in_doubt)
            if mine is not None or self.head.version - seen <= _FEW:
                return mine

    def _caught_up_once(self, *, is_in_doubt: bool) -> Landed | None:
        conflict: ConflictError | None = None
        for landed in self._commits(is_in_doubt=is_in_doubt):
            theirs = landed.transaction
            if theirs is not None and theirs.uuid == self._request.transaction.uuid:
                return landed
            if conflict is None and not self._request.is_strict:
                # The own commit may follow, made by an attempt that was further along.
                conflict = self._judged(landed)
            self.head = landed.snapshot
            self._fitted = None if self._needs_rebase else self._request.transaction
        if conflict is not None:
            raise conflict
        return None

    def fitted(self) -> Transaction:
        """Return the change rebased onto the newest version; computed once per version."""
        if self._fitted is None:
            self._fitted = self._rebased()
        return self._fitted

    def _load_base(self) -> Snapshot:
        """Load the version that was read; 0 means the newest."""
        version = self._request.transaction.read_version
        if is_detached(version):
            problem = "a commit to the main line cannot be based on a detached version"
            raise InvalidRequestError(problem, table=self._line.location.uri, version=version)
        newest = self._line.load(self._newest())
        if version in (0, newest.version):
            return newest
        name = self._line.handler.find(version)
        if name is None:
            problem = f"version {version} was not found; the latest is {newest.version}"
            raise VersionNotFoundError(problem, table=self._line.location.uri, version=version)
        return self._line.load(name)

    def _newest(self) -> ManifestName:
        name = self._line.handler.latest()
        if name is None:
            uri = self._line.location.uri
            raise TableNotFoundError(f"Dataset at path {uri} was not found", table=uri)
        return name

    def _commits(self, *, is_in_doubt: bool) -> Iterator[Landed]:
        newest = self._newest()
        try:
            yield from commits_after(self._line, self.head.name, newest)
        except VersionNotFoundError as error:
            if is_in_doubt:
                raise
            self._gone = error.version
            yield Landed(snapshot=self._line.load(newest), transaction=None)

    def _judged(self, landed: Landed) -> ConflictError | None:
        theirs, version = landed.transaction, landed.snapshot.version
        if theirs is None:
            return self._unseen(landed.snapshot)
        self.concurrent_commits += 1
        self.head_kind = type(theirs.operation).__name__
        mine = self._request.transaction.operation
        verdict = build.conflicts(mine, theirs.operation, self._context(landed.snapshot))
        match verdict:
            case Compatible(needs_rebase):
                self._needs_rebase = self._needs_rebase or needs_rebase
                return None
            case Retryable(reason):
                return self._conflict(RetryableConflictError, version, reason)
            case Incompatible(reason):
                return self._conflict(IncompatibleConflictError, version, reason)
            case _:
                assert_never(verdict)

    def _rebased(self) -> Transaction:
        self.rebases += 1
        fitted = build.rebase(
            self._request.transaction,
            self.head.state,
            base=self.base.state,
            affected_rows=self._request.choices.affected_rows,
            port=self._services.port,
        )
        if isinstance(fitted, Retryable):
            raise self._conflict(RetryableConflictError, self.head.version, fitted.reason)
        return fitted

    def _context(self, after: Snapshot) -> Context:
        return Context(
            base=self.base.state,
            theirs_after=after.state,
            affected_rows=self._request.choices.affected_rows,
            fragment_reuse=self._request.choices.fragment_reuse,
            inserted_keys=self._request.choices.inserted_keys,
            key_port=self._services.keys,
        )

    def _unseen(self, after: Snapshot) -> ConflictError | None:
        """Check the change against the state after commits whose transactions are not known."""
        self.head_kind = _UNRECORDED
        version, self._gone = self._gone or after.version, None
        problem = (
            f"Dataset version {version} does not have a transaction file"
            if version == after.version
            else f"version {version} no longer exists"
        )
        if self._request.choices.may_have_landed:
            return self._conflict(RetryableConflictError, version, problem)
        verdict = build.unseen(self._request.transaction.operation, self._context(after))
        match verdict:
            case Compatible():
                return None
            case Retryable(reason):
                return self._conflict(RetryableConflictError, version, f"{problem}: {reason}")
            case Incompatible(reason):
                return self._conflict(IncompatibleConflictError, version, f"{problem}: {reason}")
            case _:
                assert_never(verdict)

    def _conflict(self, kind: type[ConflictError], version: int, reason: str) -> ConflictError:
        error = kind.between(
            mine=self._request.kind, theirs=self.head_kind, version=version, reason=reason
        )
        error.at(self._line.location.uri, version)
        return error


_MOST_LOST_REPLIES = 5


def commit(
    line: VersionLine,
    request: CommitRequest,
    services: CommitServices,
    *,
    base: Snapshot | None = None,
) -> CommitResult:
    """Publish a transaction exactly once, or raise with nothing of it visible.

    A transaction that was committed before is found by its uuid and not published again. `base`
    is the version that was read, if the caller has loaded it. Only after an
    `UncertainCommitError` is it unknown whether the commit succeeded.
    """
    return _Loop(line, request, services, base).run()


class _Loop:
    """State of one commit over its attempts."""

    def __init__(
        self,
        line: VersionLine,
        request: CommitRequest,
        services: CommitServices,
        base: Snapshot | None,
    ) -> None:
        self._line = line
        self._request = request
        self._services = services
        self._started_s = services.clock.monotonic_s()
        self._backoff: SlotBackoff | None = None
        self._publisher = Publisher(line)
        self._catch_up = CatchUp(line, request, services, base)
        self._attempts = 0
        self._lost = 0
        self._lost_replies = 0
        self._in_doubt: Candidate | None = None

    def run(self) -> CommitResult:
        try:
            while True:
                done = self._landed_before()
                if done is None:
                    self._ensure_time()
                    done = self._attempt()
                if done is not None:
                    return done
        except LanceTableError as error:
            if self._in_doubt is None or isinstance(error, CommitError):
                raise
            raise uncertain(self._line, self._in_doubt) from error

    def _landed_before(self) -> CommitResult | None:
        seen = self._catch_up.head
        mine = self._catch_up.catch_up(is_in_doubt=self._in_doubt is not None)
        if mine is not None and mine.transaction is not None:
            return self._result(mine.snapshot, mine.transaction)
        if self._catch_up.head is not seen:
            # The uncertain version belongs to another writer.
            self._in_doubt = None
            if self._request.is_strict:
                raise self._contention(seen.version + 1)
        return None

    def _ensure_time(self) -> None:
        """Raise when the commit timeout has passed."""
        limit_s = self._request.choices.timeout_s
        passed_s = self._services.clock.monotonic_s() - self._started_s
        if limit_s is None or not self._attempts or passed_s < limit_s:
            return
        if self._in_doubt is not None:
            raise uncertain(self._line, self._in_doubt)
        problem = f"the commit timed out after {limit_s:g} seconds of contention with other writers"
        raise ContentionError(problem, table=self._line.location.uri)

    def _attempt(self) -> CommitResult | None:
        """Try to publish the version after the newest; None when another attempt is needed."""
        begun_s = self._services.clock.monotonic_s()
        self._attempts += 1
        candidate = self._candidate()
        outcome = self._publisher.publish(candidate)
        self._learn_pace(self._services.clock.monotonic_s() - begun_s)
        match outcome:
            case PublishedVersion():
                return self._result(
                    candidate.as_snapshot(self._line.location), candidate.transaction
                )
            case Taken():
                return self._after_lost_race(candidate)
            case Unknown(cause):
                return self._after_lost_reply(candidate, cause)
            case _:
                assert_never(outcome)

    def _candidate(self) -> Candidate:
        head = self._catch_up.head
        if head.version < head.name.version:
            # The next version may exist already and would be tried forever.
            problem = f"the manifest of version {head.name.version} states version {head.version}"
            raise CorruptTableError(
                problem, table=self._line.location.uri, version=head.name.version
            )
        ensure_writable(head.state.manifest.writer_feature_flags)
        mine = self._catch_up.fitted()
        options = self._services.options_for(self._request.choices, head.state)
        state = build.next_state(mine, head.state, options, restored=self._restored(mine))
        return make_candidate(mine, state, head.name.naming)

    def _restored(self, mine: Transaction) -> TableState | None:
        if not isinstance(mine.operation, Restore):
            return None
        version = mine.operation.version
        name = self._line.handler.find(version)
        if name is None:
            problem = f"version {version} to restore was not found"
            raise VersionNotFoundError(problem, table=self._line.location.uri, version=version)
        return self._line.load(name).state

    def _after_lost_race(self, candidate: Candidate) -> CommitResult | None:
        self._lost += 1
        if self._lost >= self._request.max_attempts:
            landed = look_for(self._line, candidate)
            if landed is None:
                raise self._contention(candidate.version)
            return self._result(landed, candidate.transaction)
        version, table = candidate.version, self._line.location.uri
        reason = f"another writer committed version {version} of {table} first"
        delay_s = self._delay_s(self._lost - 1)
        log.report_retry(log.COMMIT, reason, delay_s, table=table, version=version)
        self._services.clock.sleep(delay_s)
        return None

    def _after_lost_reply(self, candidate: Candidate, cause: StorageError) -> CommitResult | None:
        """Look the version up first: publishing again could commit the transaction twice."""
        landed = look_for(self._line, candidate)
        if landed is not None:
            return self._result(landed, candidate.transaction)
        if not isinstance(cause, StorageUnavailableError):
            raise cause
        self._in_doubt = candidate
        self._lost_replies += 1
        if self._lost_replies > _MOST_LOST_REPLIES:
            # The store may still execute the request.
            raise uncertain(self._line, candidate) from cause
        delay_s = self._delay_s(self._lost_replies - 1)
        report_lost_reply(self._line, candidate, cause, delay_s)
        self._services.clock.sleep(delay_s)
        return None

    def _learn_pace(self, attempt_s: float) -> None:
        """Base the backoff on the fastest attempt: other load only makes attempts slower."""
        known_s = attempt_s if self._backoff is None else self._backoff.attempt_s
        self._backoff = SlotBackoff(attempt_s=min(attempt_s, known_s))

    def _delay_s(self, number: int) -> float:
        backoff = self._backoff or SlotBackoff(attempt_s=0.0)
        delay_s = backoff.delay_s(number, self._services.ids.random())
        limit_s = self._request.choices.timeout_s
        if limit_s is None:
            return delay_s
        left_s = self._started_s + limit_s - self._services.clock.monotonic_s()
        return min(delay_s, max(0.0, left_s))

    def _contention(self, version: int) -> ContentionError:
        return ContentionError(
            f"Commit conflict for version {version}: Failed to commit the transaction after "
            f"{self._request.choices.max_retries} retries. Other writers committed first",
            table=self._line.location.uri,
            version=version,
        )

    def _result(self, snapshot: Snapshot, recorded: Transaction) -> CommitResult:
        update_hint(self._line, snapshot.version)
        passed_s = self._services.clock.monotonic_s() - self._started_s
        metrics = CommitMetrics(
            attempts=self._attempts,
            concurrent_commits=self._catch_up.concurrent_commits,
            rebases=self._catch_up.rebases,
            lost_replies=self._lost_replies,
            milliseconds=round(passed_s * 1000),
            manifest_bytes=snapshot.manifest_size,
        )
        return CommitResult(snapshot=snapshot, transaction=recorded, metrics=metrics)
