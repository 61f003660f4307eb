"""Version line: the main line or a branch of a table, with its store and commit handler."""

from __future__ import annotations

from dataclasses import dataclass

from lancelake.clock import Ids, SystemIds
from lancelake.commit.conditional_put import ConditionalPut
from lancelake.commit.dynamodb import open_dynamodb
from lancelake.commit.external_store import ExternalHandler
from lancelake.commit.handler import CommitHandler
from lancelake.commit.snapshot import Snapshot
from lancelake.format import layout
from lancelake.format.names import ManifestName, manifest_name
from lancelake.storage.cloud import abilities
from lancelake.storage.location import Location
from lancelake.storage.open import open_store
from lancelake.storage.store import ObjectStore

_IDS: Ids = SystemIds()


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionLine:
    """A root, its store, and its commit handler.

    `creates_hint` is set where readers need the hint to find the newest version quickly.
    """

    location: Location
    store: ObjectStore
    handler: CommitHandler
    creates_hint: bool = False

    def load(self, name: ManifestName) -> Snapshot:
        """Read a version of the line."""
        return Snapshot.load(self.location, name, store=self.store)

    def has_next(self, name: ManifestName) -> bool:
        """Whether the version after a known one exists, with one call.

        False does not rule out newer versions of another naming scheme.
        """
        return self.store.exists(layout.manifest(manifest_name(name.version + 1, name.naming)))


def open_line(location: Location, *, ids: Ids = _IDS) -> VersionLine:
    """Return the line at a root; repeated calls are cheap."""
    store = open_store(location)
    match location.scheme:
        case "file" | "memory":
            return VersionLine(location=location, store=store, handler=ConditionalPut(store=store))
        case "s3+ddb":
            external = open_dynamodb(location)
            handler = ExternalHandler(store=store, external=external, ids=ids)
            return VersionLine(location=location, store=store, handler=handler)
        case _:
            return VersionLine(
                location=location,
                store=store,
                handler=ConditionalPut(store=store),
                creates_hint=not abilities(location).lists_in_order,
            )
