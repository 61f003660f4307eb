"""Raise an error if a version is inconsistent."""

from __future__ import annotations

from itertools import chain

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import CorruptTableError
from lancelake.format.ids import FragmentId
from lancelake.table.check.counts import check_counts
from lancelake.table.check.file_sizes import FileSizes
from lancelake.table.check.finding import Severity
from lancelake.table.check.subject import Subject
from lancelake.table.check.version import VersionChecks


def ensure_in_order(snapshot: Snapshot, *, fragment: FragmentId | None = None) -> None:
    """Raise the first error found, in one fragment or in all of the version.

    Data files are opened, but no values are read.
    """
    subject = Subject(snapshot, FileSizes(), only=fragment)
    checks = VersionChecks(data=False)
    found = checks(subject) if fragment is None else checks.of_fragments(subject)
    for finding in chain(found, check_counts(subject)):
        if finding.severity is Severity.ERROR:
            raise CorruptTableError(
                finding.message,
                table=snapshot.location.uri,
                version=snapshot.version,
                path=finding.path,
                action="Run `lancelake check` to list all findings, then `lancelake repair`.",
            )
