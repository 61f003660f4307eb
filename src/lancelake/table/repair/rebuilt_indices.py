"""Indices built again after a repair dropped segments that could not be used."""

from __future__ import annotations

from lancelake.commit.snapshot import Snapshot
from lancelake.format.index_meta import IndexMetadata
from lancelake.index.registry import kind_of
from lancelake.table.index.build import IndexRun, create_index
from lancelake.table.index.refresh import RefreshOptions, refresh_indices
from lancelake.table.index.request import IndexRequest
from lancelake.table.publish import CommitChoices


def with_rebuilt_indices(before: Snapshot, after: Snapshot, choices: CommitChoices) -> Snapshot:
    """Build again what `after` lacks of the indices of `before`; return the newest version.

    Indices of a column that no longer exists, or of an unknown kind, stay dropped.
    """
    left = {index.uuid for index in after.indices}
    gone = {i.name: i for i in before.indices if i.uuid not in left and not i.is_system}
    run = IndexRun(choices=choices)
    at = after
    for name, index in gone.items():
        request = _request(at, index)
        if request is None:
            continue
        if any(i.name == name for i in at.indices):
            at = refresh_indices(at, RefreshOptions(index_names=(name,)), run).snapshot
        else:
            at = create_index(at, request, run)
    return at


def _request(at: Snapshot, index: IndexMetadata) -> IndexRequest | None:
    kind = kind_of(index)
    column = at.manifest.schema.path_of(index.fields[0]) if index.fields else None
    if kind is None or column is None:
        return None
    return IndexRequest(column=column, kind=kind.name, name=index.name)
