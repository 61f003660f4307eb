"""In-memory stores (`memory://`), one per name and process."""

from __future__ import annotations

from obstore.store import MemoryStore

from lancelake.storage.location import Location
from lancelake.storage.obstore_store import Abilities, ObstoreStore

_SCHEME = "memory://"

_clients: dict[str, MemoryStore] = {}


def memory_store(location: Location) -> ObstoreStore:
    """Return the store of this name, which all callers in the process share."""
    client = _clients.setdefault(location.authority, MemoryStore())
    return ObstoreStore(client, prefix=location.key, abilities=Abilities())


def in_scope(uri: str, scope: str) -> str:
    """Return the URI of a memory store of the same name that only one scope uses."""
    name, separator, key = uri.removeprefix(_SCHEME).partition("/")
    return f"{_SCHEME}{name or 'memory'}@{scope}{separator}{key}"


def scope_of(location: Location) -> str | None:
    """Return the scope of a memory store, or None for other stores."""
    return location.authority.partition("@")[2] or None if location.scheme == "memory" else None


def forget_scope(scope: str) -> None:
    """Free the stores of a scope."""
    for name in [name for name in _clients if name.endswith(f"@{scope}")]:
        del _clients[name]
