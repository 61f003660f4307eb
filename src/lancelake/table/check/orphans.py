"""Find orphan files, to which no version refers, by the same rule as cleanup."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lancelake.engine.local import LocalEngine
from lancelake.engine.port import Engine
from lancelake.errors import LanceTableError, StorageUnavailableError
from lancelake.format import layout
from lancelake.storage.location import Location
from lancelake.table.check.finding import Finding, Severity
from lancelake.table.check.version_lines import CheckedLine
from lancelake.table.reachable.file_kinds import FileKind
from lancelake.table.reachable.listing import list_files
from lancelake.table.reachable.needed_files import Reach, needed_by
from lancelake.table.reachable.version_lines import Family

_KINDS = {
    layout.DATA: "data file",
    layout.DELETIONS: "deletion file",
    layout.INDICES: "index file",
    layout.TRANSACTIONS: "transaction file",
}
_NEVER_NEEDED = frozenset({FileKind.TEMPORARY, FileKind.UNKNOWN})


def check_orphans(
    lines: Sequence[CheckedLine], main: Location, *, unread: int, engine: Engine | None = None
) -> Iterator[Finding]:
    """Count the orphan files of version lines of one table.

    `unread` is the number of versions that cannot be read.
    """
    engine = engine or LocalEngine()
    if unread:
        yield from (_unknown(line, f"{unread} versions cannot be read") for line in lines)
        return
    try:
        family = Family.load(lines[0].location, main)
        needed = needed_by((family.own, *family.others), engine)
    except StorageUnavailableError:
        raise
    except LanceTableError as error:
        reason = f"the files of versions cannot be read ({error.problem})"
        yield from (_unknown(line, reason) for line in lines)
        return
    for line in lines:
        yield from _orphans(line, needed, engine)


def _orphans(line: CheckedLine, needed: Reach, engine: Engine) -> Iterator[Finding]:
    counts = dict.fromkeys(_KINDS, 0)
    sizes = dict.fromkeys(_KINDS, 0)
    for file in list_files(line.location, engine):
        if file.kind not in _NEVER_NEEDED and not needed.holds(file.kind, file.known_as):
            folder = file.path.partition("/")[0]
            counts[folder] += 1
            sizes[folder] += file.size_bytes
    for folder, kind in _KINDS.items():
        count = counts[folder]
        if count:
            yield line.finding(
                Severity.INFO,
                "strays",
                f"{count} {kind}{'' if count == 1 else 's'} of {sizes[folder]} bytes are not "
                "referenced by any version",
                path=folder,
                hint="They belong to a write in progress or to one that failed; cleanup "
                "removes them once they are old enough.",
            )


def _unknown(line: CheckedLine, reason: str) -> Finding:
    message = f"{reason}, so their files would be reported as orphans"
    return line.finding(Severity.INFO, "strays-unknown", message)
