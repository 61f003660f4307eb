"""Read the tags and branches of a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from lancelake.commit.ref_files import missing_ref, ref_names
from lancelake.errors import ObjectNotFoundError, naming
from lancelake.format import layout, refs
from lancelake.format.names import ensure_branch_name, ensure_tag_name
from lancelake.format.refs import Branch, Tag
from lancelake.storage.location import Location
from lancelake.storage.open import open_store

Document = TypeVar("Document", Tag, Branch)


def list_tags(main: Location) -> dict[str, Tag]:
    """Return all tags by name, sorted."""
    return _listed(main, layout.TAGS, refs.decode_tag)


def load_tag(main: Location, name: str) -> Tag:
    """Read one tag."""
    with naming(main.uri):
        ensure_tag_name(name)
    return _loaded(main, layout.tag(name), f"tag {name}", refs.decode_tag)


def list_branches(main: Location) -> dict[str, Branch]:
    """Return all branches by name, sorted."""
    return _listed(main, layout.BRANCHES, refs.decode_branch)


def load_branch(main: Location, name: str) -> Branch:
    """Read one branch."""
    with naming(main.uri):
        ensure_branch_name(name)
    return _loaded(main, layout.branch(name), f"branch {name}", refs.decode_branch)


def branch_location(main: Location, name: str | None) -> Location:
    """Return the root of a branch; the table's own root for the main line."""
    return main if name in (None, "main") else main.child(layout.branch_root(name or ""))


def _listed(
    main: Location, folder: str, decode: Callable[[bytes], Document]
) -> dict[str, Document]:
    named = sorted(ref_names(open_store(main), folder).items())
    return {name: _loaded(main, path, path, decode) for name, path in named}


def _loaded(main: Location, path: str, what: str, decode: Callable[[bytes], Document]) -> Document:
    store = open_store(main)
    with naming(main.uri):
        try:
            return decode(store.get(path))
        except ObjectNotFoundError as error:
            raise missing_ref(store, path, what) from error
