"""What had a cleanup that was interrupted begun to remove?"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from lancelake.clock import Ids
from lancelake.errors import LanceTableError, StorageError
from lancelake.storage.location import Location
from lancelake.storage.open import open_store

FOLDER = "_cleanup"
_SUFFIX = ".json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """The files that interrupted cleanups were to remove, and where that is written down."""

    paths: frozenset[str] = frozenset()
    records: tuple[str, ...] = ()


def write_record(location: Location, paths: Iterable[str], ids: Ids) -> str | None:
    """Write down which files are to be removed, and return where.

    Once the manifests are gone nothing else tells them from those of a writer at work. None when
    there is no room for a record: then a cleanup that is interrupted leaves files to be removed
    once they are too old for such a writer.
    """
    record = f"{FOLDER}/{ids.uuid4()}{_SUFFIX}"
    try:
        open_store(location).put(record, json.dumps({"paths": sorted(paths)}).encode())
    except StorageError:
        return None
    return record


def read_records(location: Location) -> Records:
    """Return what interrupted cleanups left to be done."""
    store = open_store(location)
    paths: set[str] = set()
    records = []
    for name in store.list_names(FOLDER):
        record = f"{FOLDER}/{name}"
        try:
            found = json.loads(store.get(record))["paths"]
            paths.update(path for path in found if isinstance(path, str))
        except (LanceTableError, ValueError, LookupError, TypeError, RecursionError):
            # Another cleanup ended meanwhile, or this is no record.
            continue
        records.append(record)
    return Records(paths=frozenset(paths), records=tuple(records))


def remove_records(location: Location, records: Iterable[str]) -> None:
    """Forget what was done."""
    open_store(location).delete_many(records)
