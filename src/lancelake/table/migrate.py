"""Migrate manifests to the current naming scheme, and tell manifests that lack facts."""

from __future__ import annotations

from lancelake.commit.versions import list_versions
from lancelake.errors import AlreadyExistsError
from lancelake.format import layout
from lancelake.format.names import ManifestNaming, manifest_name
from lancelake.storage.location import Location
from lancelake.storage.open import open_store
from lancelake.txn.state import TableState


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


def lacks_facts(state: TableState) -> bool:
    """Whether a manifest of an early release lacks numbers of rows, or fragments of indices.

    The next commit of official Lance adds them.
    """
    lacks_rows = any(
        fragment.physical_rows is None or fragment.num_deleted_rows is None
        for fragment in state.manifest.fragments
    )
    return lacks_rows or any(not index.fragment_bitmap for index in state.indices)
