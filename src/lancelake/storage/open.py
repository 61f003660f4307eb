"""Opening of the store at a location."""

from __future__ import annotations

from lancelake.clock import Clock, Ids, SystemClock, SystemIds
from lancelake.storage.audit import audited
from lancelake.storage.cloud import abilities, cloud_store
from lancelake.storage.io_account import current_account
from lancelake.storage.io_meter import metered
from lancelake.storage.local import LocalStore
from lancelake.storage.location import Location
from lancelake.storage.memory import memory_store
from lancelake.storage.options import retry_policy
from lancelake.storage.retry import DEFAULT_RETRY, RetryingStore, RetryPolicy
from lancelake.storage.store import ObjectStore
from lancelake.storage.trust import real_roots

_CLOCK = SystemClock()
_IDS = SystemIds()


def open_store(
    location: Location,
    *,
    clock: Clock = _CLOCK,
    ids: Ids = _IDS,
    retry: RetryPolicy = DEFAULT_RETRY,
) -> ObjectStore:
    """Return the store at a location; repeated calls are cheap.

    The retry policy is overridden by the options `client_max_retries` and `client_retry_timeout`.
    Calls of the store are counted if the running operation has an `IoAccount`, and if the table at
    this location has an `IoMeter`.
    """
    store = audited(location, metered(location, _opened(location, clock, ids, retry)))
    account = current_account()
    return store if account is None else account.counted(store)


def _opened(location: Location, clock: Clock, ids: Ids, retry: RetryPolicy) -> ObjectStore:
    match location.scheme:
        case "file":
            roots = real_roots(location)
            uri = location.uri
            return LocalStore(uri) if roots is None else LocalStore(uri, within=roots)
        case "memory":
            return memory_store(location)
        case _:
            return RetryingStore(
                cloud_store(location),
                policy=retry_policy(location.storage_options, retry),
                clock=clock,
                ids=ids,
                lists_in_order=abilities(location).lists_in_order,
            )
