"""Where do `memory://` stores live? One per name, for as long as the process does."""

from __future__ import annotations

from obstore.store import MemoryStore

from lancelake.storage.location import Location
from lancelake.storage.obstore_store import Abilities, ObstoreStore

_clients: dict[str, MemoryStore] = {}


def memory_store(location: Location) -> ObstoreStore:
    """Return the store of this name; every caller in the process sees the same bytes."""
    client = _clients.setdefault(location.authority, MemoryStore())
    return ObstoreStore(client, prefix=location.key, abilities=Abilities())
