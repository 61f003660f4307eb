"""Key index: the BTREE of the primary key, updated after each commit that adds rows."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import ConflictError, IndexNotFoundError, InvalidRequestError
from lancelake.index.stored_segment import StoredIndices
from lancelake.table.conflict_retry import Retries
from lancelake.table.index.build import IndexRun
from lancelake.table.index.refresh import (
    RefreshOptions,
    fragment_rows,
    planned,
    refresh_indices,
    tiered,
)
from lancelake.table.key_index_settings import KEY_INDEX, MAX_ROWS, KeyIndexSettings
from lancelake.table.publish import DEFAULT_CHOICES, CommitChoices

_KIND = "BTREE"
_RETRIES = Retries(most=2, timeout_s=30.0)


def update_key_index(
    made: Snapshot, settings: KeyIndexSettings, choices: CommitChoices = DEFAULT_CHOICES
) -> None:
    """Add the rows that the key index does not cover to it, as a new segment, and commit it.

    After repeated conflicts the rows are left to the next commit, which adds them.
    """
    if not made.manifest.fragments:
        return
    name = _key_index(made)
    ((work,), _) = planned(made, RefreshOptions(index_names=(name,), num_indices_to_merge=0))
    if not work.new_fragments:
        return
    rows = fragment_rows(made, work.new_fragments)
    if rows > settings.max_rows:
        warnings.warn(
            f"index {name!r} of {made.location.uri} was not updated: {rows} rows are not indexed, "
            f"more than {MAX_ROWS} ({settings.max_rows}); run optimize",
            RuntimeWarning,
            stacklevel=2,
        )
        return
    segments = StoredIndices(made).segments(name)
    counts = [fragment_rows(made, segment.coverage.fragments) for segment in segments]
    merged = merged_segments(counts, rows, settings)
    options = RefreshOptions(index_names=(name,), num_indices_to_merge=merged)
    try:
        refresh_indices(made, options, IndexRun(choices=choices, retries=_RETRIES))
    except (ConflictError, IndexNotFoundError):
        return


def merged_segments(counts: Sequence[int], new: int, settings: KeyIndexSettings) -> int:
    """Return how many of the last segments are merged with new rows, given the rows of each."""
    if len(counts) < settings.max_segments:
        return 0
    return tiered(counts, new, max(1, settings.max_segments // 2), 0)


def _key_index(base: Snapshot) -> str:
    """Return the name of the key's BTREE; raise InvalidRequestError if there is none."""
    keys = base.manifest.schema.primary_key()
    paths = [base.manifest.schema.path_of(key.id) or key.name for key in keys]
    if not keys:
        raise _unusable(base, "the table has no primary key")
    if len(keys) > 1:
        raise _unusable(base, f"no {_KIND} indexes a primary key of columns {', '.join(paths)}")
    stored = StoredIndices(base)
    for entry in base.indices:
        found = stored.segment(entry) if entry.fields == (keys[0].id,) else None
        if found is not None and found.kind.name == _KIND:
            return entry.name
    raise _unusable(base, f"the primary key {paths[0]} has no {_KIND} index")


def _unusable(base: Snapshot, problem: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"config {KEY_INDEX} has no effect: {problem}", table=base.location.uri
    )
