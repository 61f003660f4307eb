"""Sessions: the tables in memory that some datasets share, and the caches of their tables."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from lancelake.clock import Ids, SystemIds
from lancelake.errors import InvalidRequestError
from lancelake.index import cache as index_cache
from lancelake.pylance._dataset.state.cache_backends import ensure_backend
from lancelake.storage.location import Location
from lancelake.storage.memory import forget_scope, in_scope, scope_of

_IDS: Ids = SystemIds()
_PRIVATE = "memory://"
_making_scope = threading.Lock()


class Session:
    """A scope of `memory://` tables; they are freed with the last dataset that uses it.

    Cache sizes and backends tune official Lance and have no effect here.

    Examples:
        >>> session = lance.Session()
        >>> made = lance.write_dataset({"id": [1]}, "memory://t", session=session)
        >>> lance.dataset("memory://t", session=session).count_rows()
        1
    """

    def __init__(
        self,
        index_cache_size_bytes: int | None = None,
        metadata_cache_size_bytes: int | None = None,
        index_cache_backend: str | dict[str, Any] | None = None,
        metadata_cache_backend: str | dict[str, Any] | None = None,
        store_registry: Any = None,
    ) -> None:
        for cache, size, backend in (
            ("index_cache", index_cache_size_bytes, index_cache_backend),
            ("metadata_cache", metadata_cache_size_bytes, metadata_cache_backend),
        ):
            if size is not None and backend is not None:
                problem = f"{cache}_size_bytes and {cache}_backend are mutually exclusive"
                raise InvalidRequestError(problem)
            if backend is not None:
                ensure_backend(f"{cache}_backend", backend)
        self._made_scope: str | None = None
        self._tables: set[str] = set()

    @property
    def _scope(self) -> str:
        """Name of the scope, made on first use: only tables in memory need one."""
        with _making_scope:
            if self._made_scope is None:
                self._made_scope = _IDS.uuid4().hex
                _sessions[self._made_scope] = self
                weakref.finalize(self, forget_scope, self._made_scope)
            return self._made_scope

    def index_cache_size_bytes(self) -> int:
        """Return how many bytes of index files are cached for the tables of the session.

        The cache belongs to the process: what other sessions read of these tables counts, too.
        """
        return index_cache.size_below(self._tables)

    def size_bytes(self) -> int:
        """Return how many bytes are cached for the tables of the session: those of index files."""
        return self.index_cache_size_bytes()

    def _added(self, location: Location) -> None:
        """Count a table among those of the session."""
        self._tables.add(location.uri)

    def is_same_as(self, other: Session) -> bool:
        """Whether two objects are the same session."""
        return self is other

    def __repr__(self) -> str:
        size = self.index_cache_size_bytes()
        return f"Session(index_cache_size_bytes={size}, metadata_cache_size_bytes=0)"


_sessions: weakref.WeakValueDictionary[str, Session] = weakref.WeakValueDictionary()


def session_at(location: Location) -> Session:
    """Return the session of a table in memory, or a new one."""
    scope = scope_of(location)
    found = None if scope is None else _sessions.get(scope)
    session = Session() if found is None else found
    session._added(location)
    return session


def ensure_own(session: Session | None, dataset: Any) -> None:
    """Refuse a session for writing to a dataset that has another one."""
    if session is not None and session is not dataset.session():
        problem = "The provided session is not the destination dataset's own session"
        raise InvalidRequestError(problem, action="Pass that of the dataset, or none.")


def locate(
    uri: str | Path,
    storage_options: Mapping[str, str] | None,
    *,
    session: Session | None,
    confine_to: Iterable[str | Path] | None = None,
) -> Location:
    """Parse the URI of a table; a `memory://` URI is private to the session.

    Tables at `shared-memory://` URIs are shared by the whole process.
    """
    if session is not None and not isinstance(session, Session):
        raise TypeError(f"session must be a Session, got {type(session)}")
    text = os.fspath(uri)
    if session is not None and text.startswith(_PRIVATE):
        text = in_scope(text, session._scope)
    location = Location.parse(text, storage_options, confine_to=confine_to)
    if session is not None:
        session._added(location)
    return location
