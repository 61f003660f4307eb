"""Events for the files of tables that are created and deleted."""

from __future__ import annotations

from collections.abc import Mapping

from lancelake import events
from lancelake.format import layout
from lancelake.storage.location import Location
from lancelake.storage.observed import ObservedStore
from lancelake.storage.store import ObjectStore

_KINDS: Mapping[str, str] = {
    layout.VERSIONS: "manifest",
    layout.DELETIONS: "deletion",
    layout.INDICES: "index",
    layout.DATA: "data",
}
_MODES: Mapping[str, str] = {
    "put": "create",
    "put_stream": "create",
    "create": "create",
    "delete": "delete",
    "delete_many": "delete",
}


def audited(location: Location, store: ObjectStore) -> ObjectStore:
    """Return the store, which reports files if anyone listens."""
    return _AuditedStore(store, location) if events.are_heard() else store


def report_created(location: Location, path: str) -> None:
    """Report a file that was written without the store."""
    _report("create", location, path)


def _report(mode: str, location: Location, path: str) -> None:
    kind = _KINDS.get(path.partition("/")[0])
    if kind is not None:
        events.emit(events.FILES, mode=mode, type=kind, path=path, uri=location.uri)


class _AuditedStore(ObservedStore):
    """Forwards every call and reports those that create or delete a file."""

    def __init__(self, inner: ObjectStore, location: Location) -> None:
        super().__init__(inner)
        self._location = location

    def _called(self, call: str, *paths: str) -> None:
        mode = _MODES.get(call)
        if mode is not None:
            for path in paths:
                _report(mode, self._location, path)

    def _got(self, data: bytes) -> bytes:
        return data

    def _wrote(self, size_bytes: int) -> None:
        """Do nothing: files are reported, not bytes."""
