"""Check that every index file of a version can be read."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from lancelake.errors import LanceTableError, StorageUnavailableError, UnsupportedError
from lancelake.format.index_meta import IndexMetadata
from lancelake.index.stored_segment import StoredIndices
from lancelake.table.check.finding import Finding
from lancelake.table.check.subject import Subject


def check_index_files(subject: Subject, seen: set[UUID]) -> Iterator[Finding]:
    """Read all segments of known kinds, but for those in `seen`."""
    stored = StoredIndices(subject.snapshot)
    for index in subject.snapshot.indices:
        if index.uuid not in seen:
            seen.add(index.uuid)
            yield from check_segment(subject, stored, index)


def check_segment(
    subject: Subject, stored: StoredIndices, index: IndexMetadata
) -> Iterator[Finding]:
    """Read all entries of a segment."""
    try:
        segment = stored.segment(index)
        if segment is None:
            return
        opened = segment.open()
        opened.statistics()
        for _ in opened.entries():
            pass
    except StorageUnavailableError:
        raise
    except UnsupportedError as error:
        message = f"index {index.name!r} is not used here: {error.problem}"
        yield subject.info("index-unsupported", message)
    except LanceTableError as error:
        path = error.facts.get("path")
        yield subject.error(
            "index-file-damaged",
            f"index {index.name!r} cannot be read: {error.problem}",
            path=str(path) if path else None,
            hint="Queries cannot use the index; build it again.",
        )
