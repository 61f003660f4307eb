"""Records of files to remove, from which an interrupted cleanup is resumed."""

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
    """Files that interrupted cleanups were to remove, and the paths of their records."""

    paths: frozenset[str] = frozenset()
    records: tuple[str, ...] = ()


def write_record(location: Location, paths: Iterable[str], ids: Ids) -> str | None:
    """Record which files are to be removed, and return the path of the record.

    Once the manifests are removed, nothing else distinguishes these files from those of a write in
    progress. Returns None if the record cannot be written: after an interruption the files are then
    removed when they are too old to belong to a write in progress.
    """
    record = f"{FOLDER}/{ids.uuid4()}{_SUFFIX}"
    try:
        open_store(location).put(record, json.dumps({"paths": sorted(paths)}).encode())
    except StorageError:
        return None
    return record


def read_records(location: Location) -> Records:
    """Return the unfinished work of interrupted cleanups."""
    store = open_store(location)
    paths: set[str] = set()
    records = []
    for name in store.list_names(FOLDER):
        record = f"{FOLDER}/{name}"
        try:
            found = json.loads(store.get(record))["paths"]
            paths.update(path for path in found if isinstance(path, str))
        except (LanceTableError, ValueError, LookupError, TypeError, RecursionError):
            # Another cleanup finished in the meantime, or this is not a record.
            continue
        records.append(record)
    return Records(paths=frozenset(paths), records=tuple(records))


def remove_records(location: Location, records: Iterable[str]) -> None:
    """Delete records of finished work."""
    open_store(location).delete_many(records)
