"""A table set right: planned, committed, and looked at again."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import ContentionError, RetryableConflictError
from lancelake.storage.location import Location
from lancelake.storage.open import open_store
from lancelake.table.publish import DEFAULT_CHOICES, CommitChoices, new_transaction, publish
from lancelake.table.repair.documents import carried_out
from lancelake.table.repair.draft import changes
from lancelake.table.repair.options import Wishes
from lancelake.table.repair.plan import RepairPlan, plan
from lancelake.table.repair.rebuilt_indices import with_rebuilt_indices
from lancelake.table.repair.text import with_replaced_text
from lancelake.table.repair.version_line import LinePlan

_MOST_ROUNDS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Repaired:
    """What was planned and done, the versions this made, and what is found since."""

    done: RepairPlan
    versions: tuple[Snapshot, ...]
    since: RepairPlan


def repair(
    location: Location, wishes: Wishes | None = None, choices: CommitChoices = DEFAULT_CHOICES
) -> Repaired:
    """Set right what can be, in new versions; a table that is in order stays as it is."""
    return apply(plan(location, wishes), wishes, choices)


def apply(
    planned: RepairPlan, wishes: Wishes | None = None, choices: CommitChoices = DEFAULT_CHOICES
) -> Repaired:
    """Do what was planned; when others change the table meanwhile, it is planned anew."""
    for _ in range(_MOST_ROUNDS):
        made: list[Snapshot] = []
        try:
            made.extend(_committed(line, choices, wishes) for line in planned.lines)
        except RetryableConflictError:
            planned = plan(planned.location, wishes)
            continue
        tuple(carried_out(planned.actions))
        since = plan(planned.location, wishes) if planned.has_work else planned
        return Repaired(done=planned, versions=tuple(made), since=since)
    raise ContentionError(
        f"the table was changed by others while it was repaired, {_MOST_ROUNDS} times",
        table=planned.location.uri,
    )


def _committed(line: LinePlan, choices: CommitChoices, wishes: Wishes | None) -> Snapshot:
    store = open_store(line.head.location)
    for path, data in line.draft.files.items():
        store.put(path, data)
    at = line.head
    draft = with_replaced_text(line.head, line.draft, choices.surroundings.ids)
    for change in changes(line.head, draft):
        how = replace(choices, mending=change.mending)
        at = publish(at, new_transaction(change.operation, at.version, how), how)
    if wishes is not None and wishes.rebuild_indices:
        at = with_rebuilt_indices(line.head, at, choices)
    return at
