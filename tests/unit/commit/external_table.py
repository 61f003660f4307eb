"""An external manifest store in a dict, and a line that uses it."""

from __future__ import annotations

from dataclasses import dataclass, field

from lancelake.clock import SystemIds
from lancelake.commit.external_store import ExternalHandler, PublishedEntry
from lancelake.commit.snapshot import VersionLine
from lancelake.storage.location import Location
from lancelake.storage.store import ObjectStore


@dataclass
class DictEntries:
    """Entries of one line."""

    entries: dict[int, PublishedEntry] = field(default_factory=dict)

    def put_if_not_exists(self, entry: PublishedEntry) -> bool:
        return self.entries.setdefault(entry.version, entry) is entry

    def put_final(self, entry: PublishedEntry) -> None:
        assert entry.version in self.entries
        self.entries[entry.version] = entry

    def get(self, version: int) -> PublishedEntry | None:
        return self.entries.get(version)

    def get_latest(self) -> PublishedEntry | None:
        return self.entries[max(self.entries)] if self.entries else None


def external_line(store: ObjectStore, entries: DictEntries, *, seed: int = 0) -> VersionLine:
    """Return a line whose versions are recorded in `entries`."""
    handler = ExternalHandler(store=store, external=entries, ids=SystemIds(seed))
    return VersionLine(location=Location(uri="memory://external"), store=store, handler=handler)
