"""Check that an operation had exactly its intended effect.

Each function returns what is wrong with the difference that an operation made, or None. `known`
holds the keys of the version that the operation read: of rows that were added or deleted after it,
a change by key need not know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass

from soak.checks.states import Difference
from soak.history import Operation, Row, Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownKeys:
    """Keys of the versions that an operation may have read: in each of them, and in any."""

    always: Set[int]
    ever: Set[int]


Effect = Callable[[Operation, Rows, Difference, KnownKeys | None], str | None]


def append(operation: Operation, _: Rows, found: Difference, __: KnownKeys | None) -> str | None:
    """Rows come, all of them, and nothing else happens."""
    wanted = _written(operation)
    if found.added != wanted:
        return f"{_lacking(wanted, found.added)} of the appended rows are not there"
    return _others(found, added=False)


def delete(
    operation: Operation, before: Rows, found: Difference, known: KnownKeys | None
) -> str | None:
    """Rows go, those that were asked for."""
    ids = set(operation.args["ids"])
    if not found.removed.keys() <= ids:
        return f"rows went that were not to: {sorted(found.removed.keys() - ids)[:4]}"
    left = _due(ids, before, known) - found.removed.keys()
    if left:
        return f"rows are still there: {sorted(left)[:4]}"
    return _others(found, removed=False)


def update(
    operation: Operation, before: Rows, found: Difference, known: KnownKeys | None
) -> str | None:
    """Values grow, each once."""
    add: int = operation.args["add"]
    return _updated(operation, dict.fromkeys(operation.args["ids"], add), before, found, known)


def transfer(
    operation: Operation, before: Rows, found: Difference, known: KnownKeys | None
) -> str | None:
    """A value goes from one row to another."""
    amount = operation.args["amount"]
    adds = {operation.args["source"]: -amount, operation.args["target"]: amount}
    return _updated(operation, adds, before, found, known)


def upsert(operation: Operation, _: Rows, found: Difference, __: KnownKeys | None) -> str | None:
    """All rows of the source are there, whether they were before or not."""
    wanted = _written(operation)
    got = found.added | {key: new for key, (_old, new) in found.changed.items()}
    if got != wanted:
        return f"{_lacking(wanted, got)} of the upserted rows are not there"
    return f"rows went: {sorted(found.removed)[:4]}" if found.removed else None


def insert(
    operation: Operation, before: Rows, found: Difference, known: KnownKeys | None
) -> str | None:
    """The rows whose keys were not there are there now; keys deleted meanwhile may be left out."""
    wanted = {key: row for key, row in _written(operation).items() if key not in before}
    due = {k: row for k, row in wanted.items() if known is None or k not in known.ever}
    if not due.items() <= found.added.items() <= wanted.items():
        return f"{_lacking(due, found.added)} of the inserted rows are not there"
    return _others(found, added=False)


def nothing(_: Operation, __: Rows, found: Difference, ___: KnownKeys | None) -> str | None:
    """No row changes."""
    return _others(found)


EFFECTS: dict[str, Effect] = {
    "append": append,
    "stream": append,
    "delete": delete,
    "update": update,
    "transfer": transfer,
    "upsert": upsert,
    "insert": insert,
    "add_column": nothing,
    "drop_column": nothing,
    "compact": nothing,
    "create_index": nothing,
    "refresh_index": nothing,
    "drop_index": nothing,
}
"""Effects of each kind of operation that creates a version; `restore` is checked separately."""
WRITES_ROWS = frozenset(("append", "stream", "update", "transfer", "upsert", "insert"))


def count_of(operation: Operation, found: Difference) -> str | None:
    """Say how the number of rows that was reported differs from what happened."""
    reported = operation.result
    match operation.kind:
        case "delete":
            pairs = [(reported.get("rows"), len(found.removed))]
        case "update" | "transfer":
            pairs = [(reported.get("rows"), len(found.changed))]
        case "insert":
            pairs = [(reported.get("rows"), len(found.added))]
        case "upsert":
            pairs = [
                (reported.get("inserted"), len(found.added)),
                (reported.get("updated"), len(found.changed)),
            ]
        case _:
            pairs = []
    wrong = [f"{said} reported, {are} found" for said, are in pairs if said not in (None, are)]
    return "; ".join(wrong) or None


def _written(operation: Operation) -> Rows:
    row = Row(operation.args["value"], operation.id)
    return dict.fromkeys(operation.args["ids"], row)


def _due(ids: Iterable[int], before: Rows, known: KnownKeys | None) -> set[int]:
    """Return the rows that an operation cannot have missed."""
    return {key for key in ids if key in before and (known is None or key in known.always)}


def _updated(
    operation: Operation,
    adds: dict[int, int],
    before: Rows,
    found: Difference,
    known: KnownKeys | None,
) -> str | None:
    for key, (old, new) in found.changed.items():
        if key not in adds:
            return f"row {key} was not to change"
        if new != Row(old.value + adds[key], operation.id):
            return f"row {key} went from {old.value} to {new.value}, not by {adds[key]}"
    left = _due(adds, before, known) - found.changed.keys()
    if left:
        return f"rows did not change: {sorted(left)[:4]}"
    return _others(found, changed=False)


def _others(
    found: Difference, *, added: bool = True, removed: bool = True, changed: bool = True
) -> str | None:
    if added and found.added:
        return f"rows came as well: {sorted(found.added)[:4]}"
    if removed and found.removed:
        return f"rows went as well: {sorted(found.removed)[:4]}"
    if changed and found.changed:
        return f"rows changed as well: {sorted(found.changed)[:4]}"
    return None


def _lacking(wanted: Rows, got: Rows) -> str:
    missing = sum(got.get(key) != row for key, row in wanted.items())
    more = sum(key not in wanted for key in got)
    return f"{missing} of {len(wanted)}" + (f" (and {more} others came)" if more else "")
