"""Raise an error if a version is inconsistent."""

from __future__ import annotations

from itertools import chain

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import CorruptTableError
from lancelake.table.check.counts import check_counts
from lancelake.table.check.file_sizes import FileSizes
from lancelake.table.check.finding import Severity
from lancelake.table.check.subject import Subject
from lancelake.table.check.version import VersionChecks


def ensure_in_order(snapshot: Snapshot) -> None:
    """Raise the first error found; data files are opened, but no values are read."""
    subject = Subject(snapshot, FileSizes())
    for finding in chain(VersionChecks(data=False)(subject), check_counts(subject)):
        if finding.severity is Severity.ERROR:
            raise CorruptTableError(
                finding.message,
                table=snapshot.location.uri,
                version=snapshot.version,
                path=finding.path,
                action="Run `lancelake check` to list all findings, then `lancelake repair`.",
            )
