"""Our verdicts on two changes of one version, committed as the latest release made them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

from pyroaring import BitMap

from lancelake.commit.snapshot import Latest, Snapshot, open_snapshot
from lancelake.data.fragment_reader import load_deletions
from lancelake.errors import (
    IncompatibleConflictError,
    InvalidRequestError,
    LanceTableError,
    RetryableConflictError,
)
from lancelake.format import index_meta, layout
from lancelake.format.fragment import Fragment
from lancelake.format.ids import FragmentId
from lancelake.format.index_meta import IndexMetadata
from lancelake.format.operations import (
    Delete,
    Operation,
    Rewrite,
    Transaction,
    Update,
    decode_transaction,
)
from lancelake.storage.location import Location
from lancelake.table.history import version_rows
from lancelake.table.publish import CommitChoices, publish
from lancelake.txn.rules import AffectedRows
from tests.interop.verdicts.golden import Change, Scene, Verdicts

_numbers = itertools.count()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Made:
    transactions: tuple[Transaction, ...]
    affected_rows: AffectedRows | None
    moves: IndexMetadata | None

    @property
    def choices(self) -> CommitChoices:
        """What is said about the commit beside the change itself."""
        return CommitChoices(affected_rows=self.affected_rows, fragment_reuse=self.moves)


def judge(scene: Scene) -> Verdicts:
    """Judge every pair of changes of a scene."""
    start = _place(scene)
    base = open_snapshot(start, Latest())
    made = {name: _made(change, base) for name, change in scene.changes.items()}
    return {
        (mine, theirs): verdict
        for theirs, change in made.items()
        for mine, verdict in _after(scene, change, made)
    }


def _after(scene: Scene, theirs: _Made, made: dict[str, _Made]) -> Iterator[tuple[str, str]]:
    place = _place(scene)
    base = open_snapshot(place, Latest())
    for each in theirs.transactions:
        _commit(base, each, theirs.choices)
    for name, mine in made.items():
        yield name, _verdict(base, mine)


def _place(scene: Scene) -> Location:
    """Put the table, and the deletion files of all changes, where nothing lies yet."""
    place = Location.parse(f"memory://verdicts-{next(_numbers)}/table")
    store = place.store
    deletions = {p: data for c in scene.changes.values() for p, data in c.deletions.items()}
    for path, data in {**scene.table, **deletions}.items():
        store.put(path, data)
    return place


def _verdict(base: Snapshot, mine: _Made) -> str:
    """Commit mine, and take it back."""
    # The same change made twice is two changes.
    again = replace(mine.transactions[-1], uuid="00000000-0000-4000-8000-000000000000")
    try:
        made = _commit(base, again, mine.choices)
    except RetryableConflictError:
        return "retry"
    except IncompatibleConflictError:
        return "conflict"
    except InvalidRequestError as error:
        return f"invalid: {error.problem}"
    except LanceTableError as error:
        return f"failed: {type(error).__name__}: {error.problem}"
    base.location.store.delete(layout.manifest(made.name.name))
    return f"ok, {version_rows(made)} rows"


def _commit(base: Snapshot, change: Transaction, choices: CommitChoices) -> Snapshot:
    assert change.read_version == base.version
    return publish(base, change, choices)


def _made(change: Change, base: Snapshot) -> _Made:
    decoded = tuple(decode_transaction(data) for data in change.transactions)
    found = tuple(replace(t, operation=_unnumbered(t.operation)) for t in decoded)
    rows = _rows(found[-1].operation, base) if change.knows_rows else None
    moves = None if change.moves is None else index_meta.decode_section(change.moves)[0]
    return _Made(transactions=found, affected_rows=rows, moves=moves)


def _unnumbered(operation: Operation) -> Operation:
    """Leave ids that were reserved in one history to the next: they are given out anew."""
    if not isinstance(operation, Rewrite):
        return operation
    groups = tuple(
        replace(g, new_fragments=tuple(replace(f, id=FragmentId(0)) for f in g.new_fragments))
        for g in operation.groups
    )
    return replace(operation, groups=groups)


def _rows(operation: Operation, base: Snapshot) -> AffectedRows:
    assert isinstance(operation, Delete | Update)
    removed = (
        operation.deleted_fragment_ids
        if isinstance(operation, Delete)
        else operation.removed_fragment_ids
    )
    whole = {f.id: f for f in base.manifest.fragments if f.id in removed}
    found = {i: BitMap(range(f.physical_rows or 0)) for i, f in whole.items()}
    found |= {f.id: _deleted(f, base) for f in operation.updated_fragments}
    return AffectedRows({i: bytes(rows.serialize()) for i, rows in found.items() if rows})


def _deleted(fragment: Fragment, base: Snapshot) -> BitMap:
    return load_deletions(base.files, fragment)
