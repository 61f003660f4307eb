"""Commit loop: optimistic concurrency with conflict checks, rebase and retries."""

from __future__ import annotations

from typing import assert_never

from lancelake.commit.backoff import SlotBackoff
from lancelake.commit.candidate import Candidate, Publisher, make_candidate
from lancelake.commit.catch_up import CatchUp
from lancelake.commit.handler import PublishedVersion, Taken, Unknown
from lancelake.commit.lost_reply import look_for, uncertain
from lancelake.commit.request import CommitRequest
from lancelake.commit.result import CommitMetrics, CommitResult
from lancelake.commit.services import CommitServices
from lancelake.commit.snapshot import Snapshot
from lancelake.commit.version_hint import update_hint
from lancelake.commit.version_line import VersionLine
from lancelake.errors import (
    CommitError,
    ContentionError,
    CorruptTableError,
    LanceTableError,
    StorageError,
    StorageUnavailableError,
    VersionNotFoundError,
)
from lancelake.format.flags import ensure_writable
from lancelake.format.operations import Restore
from lancelake.format.transaction import Transaction
from lancelake.txn import build
from lancelake.txn.state import TableState

_MOST_DOUBTS = 5


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
        self._doubts = 0
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
        mine = self._catch_up.catch_up()
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
            found = look_for(self._line, candidate)
            if found is None:
                raise self._contention(candidate.version)
            return self._result(found, candidate.transaction)
        self._wait(self._lost - 1)
        return None

    def _after_lost_reply(self, candidate: Candidate, cause: StorageError) -> CommitResult | None:
        """Look the version up first: publishing again could commit the transaction twice."""
        found = look_for(self._line, candidate)
        if found is not None:
            return self._result(found, candidate.transaction)
        if not isinstance(cause, StorageUnavailableError):
            raise cause
        self._in_doubt = candidate
        self._doubts += 1
        if self._doubts > _MOST_DOUBTS:
            # The store may still execute the request.
            raise uncertain(self._line, candidate) from cause
        self._wait(self._doubts - 1)
        return None

    def _learn_pace(self, attempt_s: float) -> None:
        """Base the backoff on the fastest attempt: other load only makes attempts slower."""
        known_s = attempt_s if self._backoff is None else self._backoff.attempt_s
        self._backoff = SlotBackoff(attempt_s=min(attempt_s, known_s))

    def _wait(self, number: int) -> None:
        backoff = self._backoff or SlotBackoff(attempt_s=0.0)
        delay_s = backoff.delay_s(number, self._services.ids.random())
        limit_s = self._request.choices.timeout_s
        if limit_s is not None:
            left_s = self._started_s + limit_s - self._services.clock.monotonic_s()
            delay_s = min(delay_s, max(0.0, left_s))
        self._services.clock.sleep(delay_s)

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
            judged=self._catch_up.judged,
            rebases=self._catch_up.rebases,
            doubts=self._doubts,
            milliseconds=round(passed_s * 1000),
            manifest_bytes=snapshot.manifest_size,
        )
        return CommitResult(snapshot=snapshot, transaction=recorded, metrics=metrics)
