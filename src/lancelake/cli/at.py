"""Resolve the option `--at` to a version."""

from __future__ import annotations

import re
from datetime import datetime

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import InvalidNameError, InvalidRequestError, RefNotFoundError
from lancelake.format import layout
from lancelake.storage.location import Location
from lancelake.suggest import suggestion
from lancelake.table.open import (
    AsOf,
    AtTag,
    AtVersion,
    Latest,
    OnBranch,
    open_snapshot,
    time_reference,
)
from lancelake.table.refs import branch_location, list_branches, list_tags, load_branch, load_tag

_NUMBER = re.compile(r"[0-9]{1,20}")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}[T ].+")
_LATEST = ("", "latest")


def open_at(location: Location, when: str | None) -> Snapshot:
    """Open the requested version; by default the latest."""
    if when is None or when in _LATEST:
        return open_snapshot(location, Latest())
    if _NUMBER.fullmatch(when):
        return open_snapshot(location, AtVersion(int(when)))
    if _TIME.fullmatch(when):
        return open_snapshot(location, _moment(when))
    branch, colon, rest = when.partition(":")
    main = _main(location)
    if colon:
        return _on_branch(main, branch, rest)
    return _by_name(location, main, when)


def open_head(location: Location, branch: str | None) -> Snapshot:
    """Open the newest version of a branch, or of the location without a branch."""
    return open_at(location, None if branch is None else f"{branch}:")


def _on_branch(main: Location, branch: str, rest: str) -> Snapshot:
    if rest in _LATEST:
        return open_snapshot(main, OnBranch(branch))
    if _NUMBER.fullmatch(rest):
        return open_snapshot(main, OnBranch(branch, int(rest)))
    if not (_TIME.fullmatch(rest) or _DATE.fullmatch(rest)):
        problem = f"{rest!r} is not a version or a time"
        raise InvalidRequestError(problem, action="Write BRANCH:VERSION or BRANCH:TIME.")
    if branch != "main":
        load_branch(main, branch)
    return open_snapshot(branch_location(main, branch), _moment(rest), main=main)


def _by_name(location: Location, main: Location, name: str) -> Snapshot:
    """Try a tag, then a date, then a branch."""
    try:
        load_tag(main, name)
    except (RefNotFoundError, InvalidNameError):
        if _DATE.fullmatch(name):
            return open_snapshot(location, _moment(name))
    else:
        return open_snapshot(main, AtTag(name))
    try:
        return open_snapshot(main, OnBranch(name))
    except (RefNotFoundError, InvalidNameError) as error:
        raise RefNotFoundError(
            f"tag or branch {name!r} does not exist",
            table=main.uri,
            action=suggestion(name, (*list_tags(main), *list_branches(main)), "tags and branches"),
        ) from error


def _moment(text: str) -> AsOf:
    try:
        return time_reference(datetime.fromisoformat(text))
    except ValueError as error:
        problem = f"{text!r} is not a valid time"
        raise InvalidRequestError(problem, action="Write it as 2026-01-31T12:00:00Z.") from error


def _main(location: Location) -> Location:
    """Return the root with tags and branches, also when given the root of a branch."""
    if f"/{layout.TREE}/" not in location.uri:
        return location
    return open_snapshot(location, Latest()).main_location
