"""Plan, commit and verify a repair."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import ContentionError, RetryableConflictError
from lancelake.format.index_meta import IndexMetadata
from lancelake.index.registry import kind_of
from lancelake.storage.location import Location
from lancelake.storage.open import open_store
from lancelake.table.index.build import IndexRun, create_index
from lancelake.table.index.refresh import RefreshOptions, refresh_indices
from lancelake.table.index.request import IndexRequest
from lancelake.table.publish import DEFAULT_CHOICES, CommitChoices, new_transaction, publish
from lancelake.table.repair.documents import carried_out
from lancelake.table.repair.draft import changes
from lancelake.table.repair.options import RepairOptions
from lancelake.table.repair.plan import RepairPlan, plan
from lancelake.table.repair.text import with_replaced_text
from lancelake.table.repair.version_line import LinePlan

_MOST_ROUNDS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Repaired:
    """The plan, the corrections made, the versions created, and the findings afterwards."""

    done: RepairPlan
    versions: tuple[Snapshot, ...]
    since: RepairPlan


def repair(
    location: Location,
    options: RepairOptions | None = None,
    choices: CommitChoices = DEFAULT_CHOICES,
) -> Repaired:
    """Commit all possible corrections in new versions; a consistent table is unchanged."""
    return apply(plan(location, options), options, choices)


def apply(
    planned: RepairPlan,
    options: RepairOptions | None = None,
    choices: CommitChoices = DEFAULT_CHOICES,
) -> Repaired:
    """Apply a plan; if others change the table in the meantime, it is planned again."""
    for _ in range(_MOST_ROUNDS):
        made: list[Snapshot] = []
        try:
            made.extend(_committed(line, choices, options) for line in planned.lines)
        except RetryableConflictError:
            planned = plan(planned.location, options)
            continue
        tuple(carried_out(planned.actions))
        since = plan(planned.location, options) if planned.has_work else planned
        return Repaired(done=planned, versions=tuple(made), since=since)
    raise ContentionError(
        f"the table was changed by other writers while it was repaired, {_MOST_ROUNDS} times",
        table=planned.location.uri,
    )


def _committed(line: LinePlan, choices: CommitChoices, options: RepairOptions | None) -> Snapshot:
    store = open_store(line.head.location)
    for path, data in line.draft.files.items():
        store.put(path, data)
    at = line.head
    draft = with_replaced_text(line.head, line.draft, choices.surroundings.ids)
    for change in changes(line.head, draft):
        how = replace(choices, corrections=change.corrections)
        at = publish(at, new_transaction(change.operation, at.version, how), how)
    if options is not None and options.rebuild_indices:
        at = _with_rebuilt_indices(line.head, at, choices)
    return at


def _with_rebuilt_indices(before: Snapshot, after: Snapshot, choices: CommitChoices) -> Snapshot:
    """Build again what `after` lacks of the indices of `before`; return the newest version.

    Indices of a column that no longer exists, or of an unknown kind, stay dropped.
    """
    left = {index.uuid for index in after.indices}
    gone = {i.name: i for i in before.indices if i.uuid not in left and not i.is_system}
    run = IndexRun(choices=choices)
    at = after
    for name, index in gone.items():
        request = _index_request(at, index)
        if request is None:
            continue
        if any(i.name == name for i in at.indices):
            at = refresh_indices(at, RefreshOptions(index_names=(name,)), run).snapshot
        else:
            at = create_index(at, request, run)
    return at


def _index_request(at: Snapshot, index: IndexMetadata) -> IndexRequest | None:
    kind = kind_of(index)
    column = at.manifest.schema.path_of(index.fields[0]) if index.fields else None
    if kind is None or column is None:
        return None
    return IndexRequest(column=column, kind=kind.name, name=index.name)
