"""Opening the stores of places."""

from __future__ import annotations

from obstore.store import MemoryStore

from lancelake.storage.cloud import abilities, cloud_store
from lancelake.storage.instrumented import ObservedStore, observers_of
from lancelake.storage.local import LocalStore
from lancelake.storage.obstore_store import Abilities, ObstoreStore
from lancelake.storage.options import DEFAULT_RETRY, RetryingStore, retry_policy
from lancelake.storage.session import Session
from lancelake.storage.store import ObjectStore, StorePlace, real_roots

_SCHEME = "memory://"

_clients: dict[str, MemoryStore] = {}


def memory_store(place: StorePlace) -> ObstoreStore:
    """Return the store of this name, which all callers in the process share."""
    client = _clients.setdefault(place.authority, MemoryStore())
    return ObstoreStore(client, prefix=place.key, abilities=Abilities())


def in_scope(uri: str, scope: str) -> str:
    """Return the URI of a memory store of the same name that only one scope uses."""
    name, separator, key = uri.removeprefix(_SCHEME).partition("/")
    return f"{_SCHEME}{name or 'memory'}@{scope}{separator}{key}"


def scope_of(place: StorePlace) -> str | None:
    """Return the scope of a memory store, or None for other stores."""
    return place.authority.partition("@")[2] or None if place.scheme == "memory" else None


def forget_scope(scope: str) -> None:
    """Free the stores of a scope."""
    for name in [name for name in _clients if name.endswith(f"@{scope}")]:
        del _clients[name]


def open_store(place: StorePlace, session: Session) -> ObjectStore:
    """Return the store at a place; repeated calls are cheap.

    Its calls are counted if the running operation has an `IoAccount`, and if the table at this
    place has an `IoMeter`. The session's limits of retries are overridden by the options
    `client_max_retries` and `client_retry_timeout`.
    """
    store = _open(place, session) if session.stores is None else session.stores(place)
    observers = observers_of(place)
    return ObservedStore(store, observers) if observers else store


def _open(place: StorePlace, session: Session) -> ObjectStore:
    match place.scheme:
        case "file":
            roots = real_roots(place.confine_to)
            uri = place.uri
            return LocalStore(uri) if roots is None else LocalStore(uri, within=roots)
        case "memory":
            return memory_store(place)
        case _:
            return RetryingStore(
                cloud_store(place, session.caches),
                policy=retry_policy(place.storage_options, session.retry or DEFAULT_RETRY),
                clock=session.clock,
                ids=session.ids,
                lists_in_order=abilities(place).lists_in_order,
            )
