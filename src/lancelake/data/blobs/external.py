"""Blobs outside the table: below a declared base path, or anywhere by their URI."""

from __future__ import annotations

from collections.abc import Sequence

from lancelake.errors import InvalidRequestError, LanceTableError
from lancelake.format.bases import BasePath
from lancelake.format.column_path import quote_segment
from lancelake.storage.location import Location


def stored_place(uri: str, bases: Sequence[BasePath]) -> tuple[int, str] | None:
    """Return the id of the base that has an object, and its path there; None if none has it."""
    try:
        place = Location.parse(uri).uri
    except LanceTableError:
        return None  # a place that cannot be opened is below none
    for base in bases:
        root = Location.parse(base.path).uri.rstrip("/") + "/"
        if place.startswith(root):
            return int(base.id), place.removeprefix(root)
    return None


def outside_of_bases(column: str, uri: str) -> InvalidRequestError:
    """Return the error for an object that is below no declared base path."""
    where = quote_segment(column)
    problem = f"blob {uri!r} of column {where} is outside registered external bases"
    action = "Write its bytes, or pass allow_external_blob_outside_bases=True."
    return InvalidRequestError(problem, column=where, action=action)
