"""Orphans: files of a table that no version needs, by the rule that cleanup follows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

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


def check_strays(
    lines: Iterable[CheckedLine], main: Location, *, unread: int, engine: Engine | None = None
) -> Iterator[Finding]:
    """Count the files of lines that nothing refers to; `unread` versions cannot be read."""
    engine = engine or LocalEngine()
    for line in lines:
        if unread:
            yield _unknown(line, f"{unread} versions cannot be read")
            continue
        try:
            family = Family.load(line.location, main)
            needed = needed_by((family.own, *family.others), engine)
        except StorageUnavailableError:
            raise
        except LanceTableError as error:
            yield _unknown(line, f"what versions need cannot be read ({error.problem})")
            continue
        yield from _strays(line, needed, engine)


def _strays(line: CheckedLine, needed: Reach, engine: Engine) -> Iterator[Finding]:
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
                f"{count} {kind}{'' if count == 1 else 's'} of {sizes[folder]} bytes, "
                "of no version",
                path=folder,
                hint="A writer is at work, or one failed; cleanup removes them when they are old.",
            )


def _unknown(line: CheckedLine, reason: str) -> Finding:
    message = f"{reason}, so their files would look like strays"
    return line.finding(Severity.INFO, "strays-unknown", message)
