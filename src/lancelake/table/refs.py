"""Read the tags and branches of a table."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection
from typing import TypeVar

from lancelake.errors import LanceTableError, ObjectNotFoundError, RefNotFoundError
from lancelake.format import layout, refs
from lancelake.format.names import ensure_branch_name, ensure_tag_name
from lancelake.format.refs import Branch, Tag
from lancelake.storage.location import Location
from lancelake.storage.open import open_store

_SUFFIX = ".json"
_SHOWN = 10

Document = TypeVar("Document", Tag, Branch)


def list_tags(main: Location) -> dict[str, Tag]:
    """Return all tags by name, sorted."""
    return _listed(main, layout.TAGS, layout.tag_name, refs.decode_tag)


def load_tag(main: Location, name: str) -> Tag:
    """Read one tag."""
    ensure_tag_name(name)
    try:
        return _loaded(main, layout.tag(name), f"tag {name}", refs.decode_tag)
    except RefNotFoundError as error:
        raise _with_others(
            error, "tag", name, _files(main, layout.TAGS, layout.tag_name)
        ) from error.__cause__


def list_branches(main: Location) -> dict[str, Branch]:
    """Return all branches by name, sorted."""
    return _listed(main, layout.BRANCHES, layout.branch_name, refs.decode_branch)


def load_branch(main: Location, name: str) -> Branch:
    """Read one branch."""
    ensure_branch_name(name)
    try:
        return _loaded(main, layout.branch(name), f"branch {name}", refs.decode_branch)
    except RefNotFoundError as error:
        raise _with_others(
            error, "branch", name, _files(main, layout.BRANCHES, layout.branch_name)
        ) from error.__cause__


def branch_location(main: Location, name: str | None) -> Location:
    """Return the root of a branch; the table's own root for the main line."""
    return main if name in (None, "main") else main.child(layout.branch_root(name or ""))


def _with_others(
    error: RefNotFoundError, kind: str, name: str, others: Collection[str]
) -> RefNotFoundError:
    """Suggest a similar name, or list the existing ones."""
    near = difflib.get_close_matches(name, others, n=1, cutoff=0.5)
    if near:
        action = f"Did you mean {near[0]}?"
    else:
        shown = ", ".join(sorted(others)[:_SHOWN]) or "none"
        action = f"Existing names: {shown}. Choose one of them, or create the {kind} first."
    return RefNotFoundError(
        error.problem, table=error.table, action=action, path=error.facts["path"]
    )


def _listed(
    main: Location,
    folder: str,
    name_of: Callable[[str], str],
    decode: Callable[[bytes], Document],
) -> dict[str, Document]:
    named = sorted(_files(main, folder, name_of).items())
    return {name: _loaded(main, path, path, decode) for name, path in named}


def _files(main: Location, folder: str, name_of: Callable[[str], str]) -> dict[str, str]:
    """Return the paths of refs by name."""
    files = [file for file in open_store(main).list_names(folder) if file.endswith(_SUFFIX)]
    return {name_of(file): f"{folder}/{file}" for file in files}


def _loaded(main: Location, path: str, what: str, decode: Callable[[bytes], Document]) -> Document:
    try:
        return decode(open_store(main).get(path))
    except ObjectNotFoundError as error:
        problem = f"Ref not found error: {what} does not exist"
        raise RefNotFoundError(problem, table=main.uri, path=path) from error
    except LanceTableError as error:
        raise error.at(main.uri) from error.__cause__
