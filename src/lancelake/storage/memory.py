"""In-memory stores (`memory://`), one per name and process."""

from __future__ import annotations

from obstore.store import MemoryStore

from lancelake.storage.location import Location
from lancelake.storage.obstore_store import Abilities, ObstoreStore

_clients: dict[str, MemoryStore] = {}


def memory_store(location: Location) -> ObstoreStore:
    """Return the store of this name, which all callers in the process share."""
    client = _clients.setdefault(location.authority, MemoryStore())
    return ObstoreStore(client, prefix=location.key, abilities=Abilities())
