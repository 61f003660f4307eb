"""The tables that the explorer may read, by opaque ids."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from lancelake.commit.snapshot import Snapshot
from lancelake.commit.versions import find_version, latest_version
from lancelake.data.recently_used import RecentlyUsed
from lancelake.errors import LanceTableError, NotFoundError
from lancelake.format import layout
from lancelake.storage.location import Location
from lancelake.storage.open import open_store
from lancelake.table.describe.found_tables import find_tables
from lancelake.table.describe.version_graph import MAIN
from lancelake.table.refs import branch_location, load_branch

_MOST_TABLES = 5_000
_MOST_SNAPSHOTS = 8
_ID_DIGITS = 16

_Seen = tuple[str, str, int, int]
"""Key of a manifest: its table, its path, its size and the time of its last change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableList:
    """The tables below the given roots, and problems of roots that cannot be searched."""

    tables: dict[str, Location]
    problems: tuple[str, ...]


class OpenTables:
    """The tables at the given roots; requests name one by its id and never by a path."""

    def __init__(self, roots: Iterable[Location]) -> None:
        self._roots = tuple(roots)
        self._known: dict[str, Location] = {}
        # Decoded fragments of a version are kept with it.
        self._snapshots: RecentlyUsed[_Seen, Snapshot] = RecentlyUsed(_MOST_SNAPSHOTS)
        self._lock = threading.Lock()

    @property
    def roots(self) -> tuple[str, ...]:
        """URIs of the roots."""
        return tuple(root.uri for root in self._roots)

    def listed(self) -> TableList:
        """Search the roots again."""
        problems: list[str] = []
        found = {table_id(table): table for table in self._found(problems)}
        with self._lock:
            self._known = found
        return TableList(tables=found, problems=tuple(problems))

    def location(self, key: str) -> Location:
        """Return the location of a table; raise NotFoundError for an id that is not one."""
        found = self._known.get(key) or self.listed().tables.get(key)
        if found is None:
            raise NotFoundError("there is no such table")
        return found

    def snapshot(self, key: str, branch: str | None, version: int | None) -> Snapshot:
        """Open a version of a table; by default the newest of the main line."""
        root = self.location(key)
        if branch not in (None, MAIN):
            load_branch(root, branch or "")
        place = branch_location(root, branch)
        name = latest_version(place) if version is None else find_version(place, version)
        info = open_store(place).head(layout.manifest(name.name))
        seen = (place.uri, info.path, info.size_bytes, info.modified_ns)
        return self._snapshots.get(seen, partial(Snapshot.load, place, name))

    def _found(self, problems: list[str]) -> Iterator[Location]:
        left = _MOST_TABLES
        for root in self._roots:
            try:
                found = find_tables(root, left)
            except LanceTableError as error:
                problems.append(f"{root.uri}: {error.problem}")
                continue
            yield from found.tables
            left -= len(found.tables)
            if not found.is_complete:
                problems.append(f"{root.uri}: there are more tables than are listed")
            elif not found.tables:
                problems.append(f"{root.uri}: no tables were found here")


def table_id(location: Location) -> str:
    """Return the id of a table, which is the same in every session."""
    return hashlib.sha256(location.uri.encode()).hexdigest()[:_ID_DIGITS]
