"""Find orphan files, to which no version refers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from lancelake.data.table_files import FileAt
from lancelake.errors import LanceTableError
from lancelake.format import layout
from lancelake.storage.open import open_store
from lancelake.table.check.finding import Finding, Severity
from lancelake.table.check.subject import Subject
from lancelake.table.check.version_lines import CheckedLine

_KINDS = {
    layout.DATA: ("data file", (".lance", ".blob")),
    layout.DELETIONS: ("deletion file", (".arrow", ".bin")),
    layout.INDICES: ("index file", ("",)),
    layout.TRANSACTIONS: ("transaction file", (".txn",)),
}


@dataclass(slots=True)
class References:
    """Files that versions refer to, by the URI of their root.

    A folder stands for all of its contents: that of an index, or of a data file's blobs.
    """

    files: dict[str, set[str]] = field(default_factory=dict)
    unread: int = 0

    def add(self, subject: Subject) -> None:
        """Add the files that a version refers to."""
        try:
            for place in _places(subject):
                self.files.setdefault(place.root.uri, set()).add(place.path)
        except LanceTableError:
            self.unread += 1

    def holds(self, root: str, path: str) -> bool:
        """Whether a version refers to a file, or to a folder that contains it."""
        known = self.files.get(root, set())
        while path:
            if path in known or f"{path}.lance" in known:
                return True
            path = path.rpartition("/")[0]
        return False


def check_strays(line: CheckedLine, references: References) -> Iterator[Finding]:
    """Count the orphan files of a version line."""
    if references.unread:
        yield line.finding(
            Severity.INFO,
            "strays-unknown",
            f"{references.unread} versions cannot be read, so their files would be "
            "reported as orphans",
        )
        return
    store = open_store(line.location)
    for folder, (kind, suffixes) in _KINDS.items():
        count = size = 0
        for info in store.list(folder):
            if info.path.endswith(suffixes) and not references.holds(line.location.uri, info.path):
                count, size = count + 1, size + info.size_bytes
        if count:
            yield line.finding(
                Severity.INFO,
                "strays",
                f"{count} {kind}{'' if count == 1 else 's'} of {size} bytes are not "
                "referenced by any version",
                path=folder,
                hint="They belong to a write in progress or to one that failed; cleanup "
                "removes them once they are old enough.",
            )


def _places(subject: Subject) -> Iterator[FileAt]:
    """Yield the locations of the files a version refers to; unresolvable ones are skipped."""
    snapshot = subject.snapshot
    for _, file in subject.data_files():
        place = subject.place(file)
        if isinstance(place, FileAt):
            yield place
    for fragment in subject.fragments:
        if fragment.deletion_file is not None:
            with suppress(LanceTableError):
                yield snapshot.files.deletion_file(fragment.id, fragment.deletion_file)
    for index in snapshot.indices:
        with suppress(LanceTableError):
            yield snapshot.files.index_dir(index)
    if snapshot.manifest.transaction_file:
        path = layout.transaction(snapshot.manifest.transaction_file)
        yield FileAt(root=snapshot.location, path=path)
