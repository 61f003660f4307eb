"""Confinement: locations that the content of a table may refer to.

Tables are untrusted data: a location in them is opened with the caller's options only.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace

from lancelake.errors import InvalidRequestError, PlaceNotAllowedError
from lancelake.storage.confined import ensure_plain
from lancelake.storage.location import Location

_HERE = frozenset({"file", "memory"})
_STORES = {"s3+ddb": "s3", "abfss": "az"}
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def place_named_by(table: Location, text: str) -> Location:
    """Return a location that the content of a table refers to, or raise if it is not allowed.

    Without `confine_to`, a table on local disk may refer to any location, and one in an object
    store to locations in the same kind of store. With it, a location must be below its roots.
    """
    if text.startswith("~") or (_URI.match(text) and any(mark in text for mark in "?#")):
        problem = f"the table refers to {text!r}, which has a query, a fragment or a ~"
        raise PlaceNotAllowedError(problem, table=table.uri, action="Do not trust this table.")
    try:
        found = Location.parse(text, table.storage_options)
    except InvalidRequestError as error:
        raise error.at(table.uri) from None
    # Versions are never looked up there, so this is the plain store.
    found = replace(found, uri=re.sub(r"\As3\+ddb:", "s3:", found.uri))
    is_allowed = (
        _is_same_store(table, found)
        if table.confine_to is None
        else _is_within(table.confine_to, found.uri)
    )
    if not is_allowed:
        outside = "another kind of store" if table.confine_to is None else "outside of confine_to"
        problem = f"the table refers to {found.uri!r}, which is {outside}"
        raise PlaceNotAllowedError(problem, table=table.uri, place=found.uri)
    return replace(found, confine_to=table.confine_to)


def real_roots(location: Location) -> tuple[str, ...] | None:
    """Return the local folders that a location is confined to, with links resolved."""
    if location.confine_to is None:
        return None
    return tuple(os.path.realpath(root) for root in location.confine_to if "://" not in root)


def local_path(location: Location, path: str) -> str:
    """Return the path of a file on local disk, for callers that open it themselves."""
    full = f"{location.uri.rstrip('/')}/{path}"
    ensure_plain(path)
    if (roots := real_roots(location)) is not None:
        ensure_below(full, roots)
    return full


def ensure_below(full: str, roots: tuple[str, ...]) -> None:
    """Raise for a path on local disk outside of some roots, directly or through links."""
    if not is_below(os.path.realpath(full), roots):
        raise PlaceNotAllowedError(f"{full!r} is outside of confine_to", path=full)


def is_below(path: str, roots: tuple[str, ...]) -> bool:
    """Whether a path or URI is one of some roots, or below one."""
    return any(path == root or path.startswith(f"{root.rstrip('/')}/") for root in roots)


def _is_same_store(table: Location, found: Location) -> bool:
    if table.scheme in _HERE:
        return True
    if _store(table) != _store(found):
        return False
    # The part after the @ is the account, which is part of the host.
    host = found.authority.partition("@")[2]
    return not host or host == table.authority.partition("@")[2]


def _store(location: Location) -> str:
    return _STORES.get(location.scheme, location.scheme)


def _is_within(roots: tuple[str, ...], uri: str) -> bool:
    return is_below(_normal(uri), tuple(map(_normal, roots)))


def _normal(uri: str) -> str:
    if "://" not in uri:
        return os.path.realpath(uri)
    return re.sub(r"\As3\+ddb:", "s3:", uri)
