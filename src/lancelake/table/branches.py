"""Deleting and annotating branches."""

from __future__ import annotations

from collections.abc import Mapping

from lancelake.commit import ref_files
from lancelake.errors import InvalidRequestError, RefNotFoundError
from lancelake.format import layout
from lancelake.format.refs import Branch
from lancelake.storage.leftovers import remove_leftovers
from lancelake.storage.location import Location
from lancelake.storage.open import open_store
from lancelake.table.refs import list_branches, list_tags, load_branch


def annotate_branch(main: Location, name: str, metadata: Mapping[str, str]) -> None:
    """Replace the metadata of a branch."""
    ref_files.annotate_branch(open_store(main), name, metadata)


def remove_branch(main: Location, name: str) -> None:
    """Delete a branch and its files, unless another branch forked from it or a tag refers to it.

    Files of a branch whose document was already deleted, for example by an interrupted call, are
    deleted too.
    """
    try:
        found = load_branch(main, name)
    except RefNotFoundError:
        if not _delete_files(main, name):
            raise
        return
    _ensure_unused(main, name, found)
    ref_files.remove_branch(open_store(main), name)
    _delete_files(main, name)


def _delete_files(main: Location, name: str) -> bool:
    """Delete the files of a branch except nested branches; return whether there were any."""
    below = tuple(
        f"{layout.branch_root(other)}/"
        for other in list_branches(main)
        if other.startswith(f"{name}/")
    )
    # Listed below the table's root, where links are not followed, not below the branch's.
    folder = layout.branch_root(name)
    store = open_store(main)
    paths = [info.path for info in store.list(folder) if not info.path.startswith(below)]
    store.delete_many(paths)
    remove_leftovers(main, folder, keep=below)
    return bool(paths)


def _ensure_unused(main: Location, name: str, found: Branch) -> None:
    lineage = found.lineage or ()
    children = [
        (other, document.parent_version)
        for other, document in list_branches(main).items()
        if other != name and lineage and (document.lineage or ())[: len(lineage)] == lineage
    ]
    tags = [(tag, named.version) for tag, named in list_tags(main).items() if named.branch == name]
    for what, users in (("branches", children), ("tags", tags)):
        if users:
            shown = ", ".join(f"{user} at version {version}" for user, version in users)
            problem = f"Branch {name} is referenced by {what} ({shown}), can not delete"
            action = f"Delete these {what} first."
            raise InvalidRequestError(problem, table=main.uri, branch=name, action=action)
