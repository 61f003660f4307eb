"""Completion of columns, tags and branches in the shell, from the table that is named."""

from __future__ import annotations

from typing import Any

from lancelake.cli.table_location import location
from lancelake.errors import LanceTableError
from lancelake.storage.location import Location


def complete_columns(ctx: Any, incomplete: str) -> list[str]:  # typer's type is private
    """Return the names of columns that continue the last one of a list."""
    done, comma, start = incomplete.rpartition(",")
    return [f"{done}{comma}{name}" for name in _columns(ctx) if name.startswith(start)]


def complete_refs(ctx: Any, incomplete: str) -> list[str]:  # typer's type is private
    """Return the tags, and the branches with a colon, that begin like this."""
    tags, branches = _refs(ctx)
    names = [*tags, *(f"{name}:" for name in branches)]
    return [name for name in names if name.startswith(incomplete)]


def complete_branches(ctx: Any, incomplete: str) -> list[str]:  # typer's type is private
    """Return the branches that begin like this."""
    return [name for name in _refs(ctx)[1] if name.startswith(incomplete)]


def _columns(ctx: Any) -> list[str]:
    from lancelake.cli.at import open_at  # noqa: PLC0415  # a command that runs needs none of this

    try:
        snapshot = open_at(_location(ctx), ctx.params.get("at"))
    except LanceTableError:
        return []
    return list(snapshot.manifest.schema.names)


def _refs(ctx: Any) -> tuple[list[str], list[str]]:
    from lancelake.table.refs import list_branches, list_tags  # noqa: PLC0415  # as above

    try:
        place = _location(ctx)
        return sorted(list_tags(place)), sorted(list_branches(place))
    except LanceTableError:
        return [], []


def _location(ctx: Any) -> Location:
    # An option without its value ends the parsing before arguments get their names.
    uri = ctx.params.get("uri") or next((arg for arg in ctx.args if not arg.startswith("-")), "")
    return location(uri, ctx.params.get("options"))
