"""Drop a table."""

from __future__ import annotations

from lancelake.commit.versions import list_versions
from lancelake.data.codec.readers import forget_readers_below
from lancelake.errors import TableNotFoundError
from lancelake.format import layout
from lancelake.scan.take import close_fragments
from lancelake.storage.leftovers import remove_leftovers
from lancelake.storage.location import Location
from lancelake.storage.open import open_store
from lancelake.storage.store import ObjectStore


def drop_table(location: Location, *, ignore_not_found: bool = False) -> None:
    """Delete every file of a table, and its folder; a location without a table is unchanged.

    Versions are deleted first, the newest before the others: whenever this is interrupted, every
    version that can be opened is complete. The next call deletes what an interrupted one left.
    """
    store = open_store(location)
    versions = list_versions(location)
    if not versions and not _is_left_behind(store):
        if ignore_not_found:
            return
        uri = location.uri
        raise TableNotFoundError(f"Dataset at path {uri} was not found", table=uri)
    for name in reversed(versions):
        store.delete(layout.manifest(name.name))
    paths = [info.path for info in store.list()]
    # Transactions identify the table until everything else is deleted.
    store.delete_many(path for path in paths if not _is_transaction(path))
    store.delete_many(path for path in paths if _is_transaction(path))
    remove_leftovers(location)
    close_fragments()
    forget_readers_below(location)


def _is_left_behind(store: ObjectStore) -> bool:
    names = store.list_names(layout.TRANSACTIONS)
    return bool(names) and all(name.endswith(".txn") for name in names)


def _is_transaction(path: str) -> bool:
    return path.startswith(f"{layout.TRANSACTIONS}/")
