"""Drop a table."""

from __future__ import annotations

from lancelake.commit.snapshot import Snapshot
from lancelake.commit.versions import list_versions
from lancelake.data.codec.readers import forget_readers_below
from lancelake.errors import (
    CorruptTableError,
    InvalidRequestError,
    NotFoundError,
    TableNotFoundError,
    UnsupportedError,
)
from lancelake.format import layout
from lancelake.format.names import ManifestName
from lancelake.scan.take import close_fragments
from lancelake.storage.leftovers import remove_leftovers
from lancelake.storage.location import Location
from lancelake.storage.open import open_store
from lancelake.storage.store import ObjectStore


def drop_table(location: Location, *, ignore_not_found: bool = False) -> None:
    """Delete every file of a table, and its folder; a location without a table is unchanged.

    So is one without a version that can be decoded: its files may be those of someone else.

    Versions are deleted first, the newest before the others: whenever this is interrupted, every
    version that can be opened is complete. The next call deletes what an interrupted one left.
    """
    store = open_store(location)
    versions = list_versions(location)
    if not versions and not _is_left_behind(store):
        if ignore_not_found:
            return
        uri = location.uri
        problem = f"Dataset at path {uri} was not found: there is no readable Lance manifest"
        raise TableNotFoundError(problem, table=uri)
    if versions and not any(_is_readable(location, name) for name in reversed(versions)):
        raise InvalidRequestError(
            f"Refusing to drop {location.uri}: no readable Lance manifest was found under "
            f"{layout.VERSIONS}, so that this may not be a table",
            table=location.uri,
            action="Remove the files by other means if they are those of a damaged table.",
        )
    for name in reversed(versions):
        store.delete(layout.manifest(name.name))
    paths = [info.path for info in store.list()]
    # Transactions identify the table until everything else is deleted.
    store.delete_many(path for path in paths if not _is_transaction(path))
    store.delete_many(path for path in paths if _is_transaction(path))
    remove_leftovers(location)
    close_fragments()
    forget_readers_below(location)


def _is_readable(location: Location, name: ManifestName) -> bool:
    """Whether a file is a manifest, also one that only newer releases support."""
    try:
        Snapshot.load(location, name)
    except (CorruptTableError, NotFoundError):
        return False
    except UnsupportedError:
        return True
    return True


def _is_left_behind(store: ObjectStore) -> bool:
    names = store.list_names(layout.TRANSACTIONS)
    return bool(names) and all(name.endswith(".txn") for name in names)


def _is_transaction(path: str) -> bool:
    return path.startswith(f"{layout.TRANSACTIONS}/")
