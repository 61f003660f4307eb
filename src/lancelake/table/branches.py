"""Removing branches."""

from __future__ import annotations

from lancelake.commit import ref_files
from lancelake.errors import InvalidRequestError
from lancelake.storage.location import Location
from lancelake.storage.open import open_store
from lancelake.table.refs import branch_location, list_branches, load_branch


def remove_branch(main: Location, name: str) -> None:
    """Delete a branch and its files, unless another branch began on it."""
    found = load_branch(main, name)
    lineage = found.lineage or ()
    children = [
        other
        for other, document in list_branches(main).items()
        if other != name and lineage and (document.lineage or ())[: len(lineage)] == lineage
    ]
    if children:
        problem = f"Branch {name} is referenced by {children}, can not delete"
        raise InvalidRequestError(problem, table=main.uri, branch=name)
    ref_files.remove_branch(open_store(main), name)
    store = open_store(branch_location(main, name))
    store.delete_many(info.path for info in list(store.list()))
