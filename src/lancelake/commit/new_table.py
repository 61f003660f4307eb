"""First version of a new table or a clone."""

from __future__ import annotations

from lancelake.commit.candidate import Candidate, Publisher, make_candidate
from lancelake.commit.fixed_version import publish_single
from lancelake.commit.lost_reply import look_for
from lancelake.commit.request import CommitRequest
from lancelake.commit.result import CommitMetrics, CommitResult
from lancelake.commit.services import CommitServices
from lancelake.commit.snapshot import Snapshot
from lancelake.commit.version_hint import update_hint
from lancelake.commit.version_line import VersionLine
from lancelake.errors import AlreadyExistsError
from lancelake.format.names import ManifestNaming
from lancelake.txn import build
from lancelake.txn.state import TableState


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
