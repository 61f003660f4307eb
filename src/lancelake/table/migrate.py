"""Migrate manifests to the current naming scheme."""

from __future__ import annotations

from lancelake.commit.versions import list_versions
from lancelake.errors import AlreadyExistsError
from lancelake.format import layout
from lancelake.format.names import ManifestNaming, manifest_name
from lancelake.storage.location import Location
from lancelake.storage.open import open_store


def migrate_manifest_names(location: Location) -> int:
    """Rename manifests oldest first, each copied before it is removed; return their number.

    Every version stays readable if this is interrupted. There must be no other writers.
    """
    store = open_store(location)
    renamed = 0
    for name in list_versions(location):
        if name.naming is ManifestNaming.V2:
            continue
        old = layout.manifest(name.name)
        new = layout.manifest(manifest_name(name.version, ManifestNaming.V2))
        data = store.get(old)
        try:
            store.create(new, data)
        except AlreadyExistsError:
            if store.get(new) != data:
                raise
        store.delete(old)
        renamed += 1
    return renamed
