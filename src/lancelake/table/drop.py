"""Removing a whole table."""

from __future__ import annotations

from lancelake.commit.versions import latest_version
from lancelake.errors import TableNotFoundError
from lancelake.storage.location import Location
from lancelake.storage.open import open_store


def drop_table(location: Location, *, ignore_not_found: bool = False) -> None:
    """Delete every file of a table; a place without a table is left alone."""
    try:
        latest_version(location)
    except TableNotFoundError:
        if ignore_not_found:
            return
        raise
    store = open_store(location)
    store.delete_many(info.path for info in list(store.list()))
