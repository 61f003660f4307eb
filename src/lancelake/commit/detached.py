"""Detached commits: versions outside the main line."""

from __future__ import annotations

from dataclasses import replace

from lancelake.commit.backoff import detached_delay_s
from lancelake.commit.candidate import Candidate, Publisher, make_candidate
from lancelake.commit.fixed_version import publish_single
from lancelake.commit.request import CommitRequest
from lancelake.commit.result import CommitMetrics, CommitResult
from lancelake.commit.services import CommitServices
from lancelake.commit.snapshot import Snapshot
from lancelake.commit.version_line import VersionLine
from lancelake.errors import ContentionError, UnsupportedError
from lancelake.format.flags import ensure_writable
from lancelake.format.ids import DETACHED_BIT, Version
from lancelake.format.names import ManifestNaming
from lancelake.txn import build


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
