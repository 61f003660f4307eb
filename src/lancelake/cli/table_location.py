"""Location of a table: its URI, storage options and confinement."""

from __future__ import annotations

from contextvars import ContextVar

import typer

from lancelake.storage.location import Location

confine_to: ContextVar[list[str] | None] = ContextVar("confine_to", default=None)
"""Roots that tables of this run may access; None is unlimited."""

_parsed: ContextVar[tuple[Location, ...]] = ContextVar("parsed", default=())


def location(uri: str, options: list[str] | None) -> Location:
    """Parse the location of a table."""
    pairs: dict[str, str] = {}
    for option in options or ():
        key, separator, value = option.partition("=")
        if not key or not separator:
            raise typer.BadParameter(
                f"{option!r} is not of the form KEY=VALUE", param_hint="'--storage-option'"
            )
        pairs[key] = value
    place = Location.parse(uri, pairs, confine_to=confine_to.get())
    _parsed.set((*_parsed.get(), place))
    return place


def named_location(uri: str) -> Location | None:
    """Return the location of this URI that a command has parsed, with its options."""
    return next((place for place in _parsed.get() if place.uri == uri), None)
