"""Commits of a version that is not rebased: new tables and detached versions."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from lancelake.commit.candidate import (
    Candidate,
    Publisher,
    look_for,
    make_candidate,
    report_lost_reply,
    uncertain,
)
from lancelake.commit.handler import Outcome, PublishedVersion, Taken, Unknown
from lancelake.commit.request import (
    CommitRequest,
    CommitResult,
    CommitServices,
    detached_delay_s,
)
from lancelake.commit.snapshot import CommitMetrics, Snapshot
from lancelake.commit.versions import VersionLine, update_hint
from lancelake.errors import (
    AlreadyExistsError,
    ContentionError,
    LanceTableError,
    StorageUnavailableError,
    UnsupportedError,
)
from lancelake.format.ids import DETACHED_BIT, Version
from lancelake.format.layout import ManifestNaming
from lancelake.format.manifest import ensure_writable
from lancelake.txn import build
from lancelake.txn.options import TableState

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
