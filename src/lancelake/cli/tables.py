"""Tables, versions and refs as a command names them, with advice and completion of names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextvars import ContextVar
from typing import Any

import typer

from lancelake import errors
from lancelake.core.table import Table
from lancelake.core.table_place import TablePlace
from lancelake.core.values.metadata import Location
from lancelake.core.values.versions import AtTag, AtVersion, OnBranch, time_reference

confine_to: ContextVar[list[str] | None] = ContextVar("confine_to", default=None)
"""Roots that tables of this run may access; None is unlimited."""

_parsed: ContextVar[tuple[TablePlace, ...]] = ContextVar("parsed", default=())

_NUMBER = re.compile(r"[0-9]{1,20}")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}[T ].+")
_LATEST = ("", "latest")


def place_of(uri: str, options: list[str] | None) -> TablePlace:
    """Parse the URI and the storage options of a table."""
    pairs = key_values(options, "KEY=VALUE", "'--storage-option'")
    place = TablePlace(Location.parse(uri, pairs, confine_to=confine_to.get()))
    _parsed.set((*_parsed.get(), place))
    return place


def key_values(
    pairs: Iterable[str] | None, form: str, hint: str | None = None, *, is_sql: bool = False
) -> dict[str, str]:
    """Parse pairs such as KEY=VALUE, the values of the option `hint`.

    Of SQL, spaces around both parts are left out, and the same name is refused.
    """
    values: dict[str, str] = {}
    for pair in pairs or ():
        name, separator, value = pair.partition("=")
        if is_sql:
            name, value = name.strip(), value.strip()
        if not name or not separator or (is_sql and not value):
            raise typer.BadParameter(f"{pair!r} is not of the form {form}", param_hint=hint)
        if is_sql and name in values:
            raise typer.BadParameter(f"{name!r} is specified twice", param_hint=hint)
        values[name] = value
    return values


def open_at(place: TablePlace, when: str | None) -> Table:
    """Open the requested version; by default the latest."""
    if when is None or when in _LATEST:
        return place.open()
    if _NUMBER.fullmatch(when):
        return place.open(AtVersion(int(when)))
    if _TIME.fullmatch(when):
        return place.open(time_reference(when))
    branch, colon, rest = when.partition(":")
    main = place.main()
    if colon:
        return _on_branch(main, branch, rest)
    return _by_name(place, main, when)


def open_head(place: TablePlace, branch: str | None) -> Table:
    """Open the newest version of a branch, or of the location without a branch."""
    return open_at(place, None if branch is None else f"{branch}:")


def _on_branch(main: TablePlace, branch: str, rest: str) -> Table:
    if rest in _LATEST:
        return main.open(OnBranch(branch))
    if _NUMBER.fullmatch(rest):
        return main.open(OnBranch(branch, int(rest)))
    if not (_TIME.fullmatch(rest) or _DATE.fullmatch(rest)):
        problem = f"{rest!r} is not a version or a time"
        raise errors.InvalidRequestError(problem, action="Write BRANCH:VERSION or BRANCH:TIME.")
    if branch != "main":
        main.load_branch(branch)
    return main.branch(branch).open(time_reference(rest), main=main.location)


def _by_name(place: TablePlace, main: TablePlace, name: str) -> Table:
    """Try a tag, then a date, then a branch."""
    try:
        main.load_tag(name)
    except (errors.RefNotFoundError, errors.InvalidNameError):
        if _DATE.fullmatch(name):
            return place.open(time_reference(name))
    else:
        return main.open(AtTag(name))
    try:
        return main.open(OnBranch(name))
    except (errors.RefNotFoundError, errors.InvalidNameError) as error:
        raise errors.RefNotFoundError(
            f"tag or branch {name!r} does not exist",
            table=main.location.uri,
            action=errors.suggestion(name, (*main.tags(), *main.branches()), "tags and branches"),
        ) from error


_ICEBERG = "metadata"
_MOST_NAMED = 3
# A folder of a partitioned table, such as `day=1`.
_PARTITION = re.compile(r"[^/=]+=[^/]*/?")


def advice_for(uri: str) -> str | None:
    """Return what is at the place of a table that does not exist, and which command takes it."""
    # Only an error needs these modules.
    from lancelake.core.values.writes import DELTA_LOG, SUFFIXES  # noqa: PLC0415

    place = next((place for place in _parsed.get() if place.location.uri == uri), None)
    if place is None:
        return None
    if uri.lower().endswith(tuple(SUFFIXES)):
        return f"It is a file; `lancelake write {uri} TABLE` creates a table from it."
    try:
        store = place.location.store
        folders, names = store.list_dirs(""), store.list_names("")
    except errors.LanceTableError:
        return None
    if DELTA_LOG in folders:
        return f"It is a Delta table; `lancelake convert {uri} TABLE` copies it."
    if _ICEBERG in folders and "data" in folders:
        return "It may be an Iceberg table, which is not supported."
    has_files = any(name.lower().endswith(tuple(SUFFIXES)) for name in names)
    if has_files or any(_PARTITION.fullmatch(folder) for folder in folders):
        return f"It has data files; `lancelake convert {uri} TABLE` creates a table from them."
    tables = place.find_tables(_MOST_NAMED).tables if folders else ()
    if tables:
        below = [table.uri.removeprefix(uri).lstrip("/") for table in tables]
        return f"Tables below it: {', '.join(below)}; `lancelake ls {uri}` lists them."
    return None


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
    try:
        return list(open_at(_place(ctx), ctx.params.get("at")).snapshot.manifest.schema.names)
    except errors.LanceTableError:
        return []


def _refs(ctx: Any) -> tuple[list[str], list[str]]:
    try:
        place = _place(ctx)
        return sorted(place.tags()), sorted(place.branches())
    except errors.LanceTableError:
        return [], []


def _place(ctx: Any) -> TablePlace:
    # An option without its value ends the parsing before arguments get their names.
    uri = ctx.params.get("uri") or next((arg for arg in ctx.args if not arg.startswith("-")), "")
    return place_of(uri, ctx.params.get("options"))
