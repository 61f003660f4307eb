"""Tables below a folder, with their sizes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lancelake.commit.snapshot import Latest, has_table, open_snapshot
from lancelake.describe.documents import Json
from lancelake.errors import LanceTableError
from lancelake.format import layout
from lancelake.storage.local import has_link
from lancelake.storage.location import Location
from lancelake.table.history import summarize, version_rows

_DEPTH = 4
_MOST_FOLDERS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundTables:
    """Tables in the order of their names; `is_complete` is whether every folder was searched."""

    tables: tuple[Location, ...]
    is_complete: bool


def find_tables(root: Location, most: int) -> FoundTables:
    """Return the table at a location, or the tables in the folders below it.

    Folders of a table are not searched, and links are not followed.
    """
    if has_table(root):
        return FoundTables(tables=(root,), is_complete=True)
    tables: list[Location] = []
    folders = _Search().below(root, _DEPTH)
    for place in folders:
        if len(tables) == most:
            return FoundTables(tables=tuple(tables), is_complete=False)
        if place is None:
            return FoundTables(tables=tuple(tables), is_complete=False)
        tables.append(place)
    return FoundTables(tables=tuple(tables), is_complete=True)


class _Search:
    """A search for tables that visits a limited number of folders."""

    def __init__(self) -> None:
        self._visited = 0

    def below(self, place: Location, depth: int) -> Iterator[Location | None]:
        """Yield tables; None at the end if the limit was reached."""
        for folder in sorted(_folders(place)):
            self._visited += 1
            if self._visited > _MOST_FOLDERS:
                yield None
                return
            inside = place.child(folder)
            if layout.VERSIONS in _folders(inside):
                yield inside
            elif depth > 1 and not folder.startswith((".", "_")):
                yield from self.below(inside, depth - 1)


def table_facts(location: Location) -> Json:
    """Return the size and the newest version of a table, or the reason why it cannot be opened."""
    try:
        snapshot = open_snapshot(location, Latest())
    except LanceTableError as error:
        return {"uri": location.uri, "error": error.problem}
    counts = summarize(snapshot)
    written = snapshot.manifest.timestamp
    return {
        "uri": location.uri,
        "error": None,
        "version": snapshot.version,
        "written_at": written.isoformat() if written else None,
        "rows": version_rows(snapshot),
        "data_bytes": counts.total_files_size,
        "fragments": counts.total_fragments,
        "columns": [field.name for field in snapshot.manifest.schema.fields],
        "indices": len({i.name for i in snapshot.indices if not i.is_system}),
    }


def _folders(place: Location) -> list[str]:
    folders = place.store.list_dirs("")
    if place.scheme != "file":
        return folders
    return [folder for folder in folders if not has_link(place.uri, folder)]
