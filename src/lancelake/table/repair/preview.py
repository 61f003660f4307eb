"""Preview the version of a draft, and check it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lancelake.commit.candidate import make_candidate
from lancelake.commit.snapshot import Snapshot
from lancelake.data.commit_ports import FilesFactsPort
from lancelake.storage.table_files import FileAt
from lancelake.table.check.deletions import Deletions, Loaded
from lancelake.table.check.file_sizes import FileSizes
from lancelake.table.check.finding import Finding
from lancelake.table.check.subject import Subject
from lancelake.table.check.version import VersionChecks
from lancelake.table.publish import WRITER, new_transaction
from lancelake.table.repair.draft import Draft, DraftChange, changes
from lancelake.table.repair.row_counts import decoded
from lancelake.txn import build, migrations
from lancelake.txn.options import BuildOptions, VersionChoices
from lancelake.txn.state import TableState


def previewed(head: Snapshot, draft: Draft) -> Snapshot:
    """Build, in memory, the version that commits of the draft would create."""
    after = head
    for change in changes(head, draft):
        after = _next(after, change)
    return after


def planned_deletions(head: Snapshot, draft: Draft) -> Mapping[FileAt, Loaded]:
    """Return the deletion files that are planned but not yet written."""
    return {
        FileAt(root=head.location, path=path): decoded(path, data)
        for path, data in draft.files.items()
    }


def findings(
    snapshot: Snapshot, sizes: FileSizes, known: Mapping[FileAt, Loaded], *, data: bool
) -> tuple[Finding, ...]:
    """Check one version; neither it nor its transaction has to be stored."""
    checks = VersionChecks(data=data, deletions=Deletions(known))
    found = checks(Subject(snapshot, sizes))
    return without_duplicates(f for f in found if f.code != "transaction-file-missing")


def without_duplicates(found: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings without duplicates."""
    return tuple({(f.code, f.path, f.message): f for f in found}.values())


def _next(head: Snapshot, change: DraftChange) -> Snapshot:
    state = TableState(manifest=head.manifest, indices=head.indices)
    corrected = change.corrections.applied(state)
    facts = FilesFactsPort(root=head.location).learn(corrected, migrations.wanted(corrected))
    options = BuildOptions(
        timestamp_ns=head.manifest.timestamp_ns or 0,
        writer=WRITER,
        facts=facts,
        choices=VersionChoices(corrections=change.corrections),
    )
    mine = new_transaction(change.operation, head.version)
    after = build.next_state(mine, state, options)
    return make_candidate(mine, after, head.name.naming).as_snapshot(head.location)
