"""Tags and branches of a table, as they are recorded."""

from __future__ import annotations

from lancelake.errors import LanceTableError, ObjectNotFoundError, RefNotFoundError
from lancelake.format import layout, refs
from lancelake.format.names import ensure_branch_name, ensure_tag_name
from lancelake.format.refs import Branch, Tag
from lancelake.storage.location import Location
from lancelake.storage.open import open_store

_SUFFIX = ".json"


def list_tags(main: Location) -> dict[str, Tag]:
    """Return all tags by name, sorted."""
    files = [n for n in open_store(main).list_names(layout.TAGS) if n.endswith(_SUFFIX)]
    named = sorted((layout.tag_name(file), file) for file in files)
    return {name: _tag(main, name, f"{layout.TAGS}/{file}") for name, file in named}


def load_tag(main: Location, name: str) -> Tag:
    """Read one tag."""
    ensure_tag_name(name)
    return _tag(main, name, layout.tag(name))


def _tag(main: Location, name: str, path: str) -> Tag:
    try:
        return refs.decode_tag(open_store(main).get(path))
    except ObjectNotFoundError as error:
        problem = f"Ref not found error: tag {name} does not exist"
        raise RefNotFoundError(problem, table=main.uri, tag=name) from error
    except LanceTableError as error:
        raise error.at(main.uri) from error.__cause__


def list_branches(main: Location) -> dict[str, Branch]:
    """Return all branches by name, sorted."""
    files = [n for n in open_store(main).list_names(layout.BRANCHES) if n.endswith(_SUFFIX)]
    named = sorted((layout.branch_name(file), file) for file in files)
    return {name: _branch(main, name, f"{layout.BRANCHES}/{file}") for name, file in named}


def load_branch(main: Location, name: str) -> Branch:
    """Read one branch."""
    ensure_branch_name(name)
    return _branch(main, name, layout.branch(name))


def _branch(main: Location, name: str, path: str) -> Branch:
    try:
        return refs.decode_branch(open_store(main).get(path))
    except ObjectNotFoundError as error:
        problem = f"Ref not found error: branch {name} does not exist"
        raise RefNotFoundError(problem, table=main.uri, branch=name) from error
    except LanceTableError as error:
        raise error.at(main.uri) from error.__cause__


def branch_location(main: Location, name: str | None) -> Location:
    """Return the root of a branch; the table's own root for the main line."""
    return main if name in (None, "main") else main.child(layout.branch_root(name or ""))
