"""Decide which merge clause applies to each row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import InvalidRequestError
from lancelake.format.schema import Field
from lancelake.scan.live_rows import to_mask
from lancelake.table.merge.clauses import Duplicates, Fail, Matched, UpdateAll, UpdateSet
from lancelake.table.merge.keys import is_complete, shown
from lancelake.table.merge.match import Pairs
from lancelake.table.merge.scope import SOURCE, TARGET, Scope, ScopedCondition
from lancelake.table.merge.source import RowNumbers, SourceRows, parts, taken
from lancelake.table.merge.source_keys import SourceKeys
from lancelake.table.merge.target import TargetRows

_CHUNK_ROWS = 1 << 16

NO_CLAUSE = -1
Choice = npt.NDArray[np.int16]
"""The number of the clause that applies to each row, or `NO_CLAUSE`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """The source rows, their keys, and how rows with the same key are handled."""

    rows: SourceRows
    fields: tuple[Field, ...]
    names: tuple[str, ...]
    duplicates: Duplicates

    def shown_key(self, number: int) -> str:
        """Return the key of a row as text for messages."""
        row = self.rows.columns(self.names).slice(number, 1).to_pylist()[0]
        return shown([row[name] for name in self.names], self.fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """Pairs to which a clause applies, and its number."""

    pairs: Pairs
    choice: Choice

    def of(self, number: int) -> Pairs:
        """Return the pairs to which one clause applies."""
        return self.pairs.where(self.choice == number)


def decide_matched(
    base: Snapshot,
    clauses: Sequence[Matched],
    pairs: Pairs,
    incoming: Incoming,
    scope: Scope,
) -> Decided:
    """Apply the first clause whose condition is true to each pair."""
    choice = _matched_choice(base, clauses, pairs, incoming.rows, scope)
    acting = choice >= 0
    decided = Decided(pairs=pairs.where(acting), choice=choice[acting])
    for number, clause in enumerate(clauses):
        if isinstance(clause, Fail) and len(decided.of(number)):
            first = incoming.shown_key(int(decided.of(number).source[0]))
            raise InvalidRequestError(
                f"Merge insert failed: found matching row with key values: {first}"
            )
    return _one_per_target(decided, clauses, incoming)


def decide_unmatched(
    conditions: Sequence[ScopedCondition | None], numbers: RowNumbers, source: SourceRows
) -> Choice:
    """Apply the first clause whose condition is true to each source row."""
    choice = np.full(len(numbers), NO_CLAUSE, dtype=np.int16)
    for start, part in _chunks(numbers):
        left = np.ones(len(part), dtype=np.bool_)
        for number, condition in enumerate(conditions):
            holds = left.copy()
            if condition is not None:
                columns = source.columns(condition.needs[SOURCE])
                holds &= to_mask(condition.holds({SOURCE: taken(columns, part)}))
            choice[start : start + len(part)][holds] = number
            left &= ~holds
    return choice


def without_shared_keys(numbers: RowNumbers, keys: SourceKeys, incoming: Incoming) -> RowNumbers:
    """Refuse new rows that share a key, or keep the last of them; null keys are never equal."""
    if incoming.duplicates is Duplicates.INSERT_ALL or keys.are_unique:
        return numbers
    chosen = keys.table.take(pa.array(numbers)).append_column("row", pa.array(numbers))
    names = [name for name in chosen.column_names if name != "row"]
    complete = is_complete([chosen.column(name) for name in names])
    grouped = chosen.filter(complete).group_by(names).aggregate([("row", "max"), ("row", "count")])
    shared = grouped.filter(pc.greater(grouped.column("row_count"), 1))
    if not shared.num_rows:
        return numbers
    if incoming.duplicates is Duplicates.REFUSE:
        first = incoming.shown_key(int(pc.min(shared.column("row_max")).as_py()))
        raise _ambiguous(f"several source rows have the same new key ({first})")
    last = np.concatenate(
        [
            grouped.column("row_max").to_numpy(),
            chosen.column("row").filter(pc.invert(complete)).to_numpy(),
        ]
    )
    return np.sort(last)


def _matched_choice(
    base: Snapshot,
    clauses: Sequence[Matched],
    pairs: Pairs,
    source: SourceRows,
    scope: Scope,
) -> Choice:
    choice = np.full(len(pairs), NO_CLAUSE, dtype=np.int16)
    left = np.ones(len(pairs), dtype=np.bool_)
    for number, clause in enumerate(clauses):
        holds = left.copy()
        if clause.condition is not None:
            rest = np.flatnonzero(left)
            condition = scope.condition(clause.condition)
            holds[rest] = _holding(base, pairs.where(left), source, condition)
        choice[holds] = number
        left &= ~holds
    return choice


def _holding(
    base: Snapshot, pairs: Pairs, source: SourceRows, condition: ScopedCondition
) -> npt.NDArray[np.bool_]:
    """Evaluate a condition on pairs."""
    mask = np.zeros(len(pairs), dtype=np.bool_)
    needs = condition.needs
    target = TargetRows.of(base, needs[TARGET]) if needs[TARGET] else None
    theirs = source.columns(needs[SOURCE])
    for start, part in _chunks(pairs.source):
        sides = {SOURCE: taken(theirs, part)}
        if target is not None:
            sides[TARGET] = target.at(pairs.target[start : start + len(part)])
        mask[start : start + len(part)] = to_mask(condition.holds(sides))
    return mask


def _one_per_target(decided: Decided, clauses: Sequence[Matched], incoming: Incoming) -> Decided:
    """Refuse two source rows that change one target row; deleting it twice is allowed."""
    target = decided.pairs.target
    repeated = np.zeros(len(target), dtype=np.bool_)
    repeated[:-1] = target[1:] == target[:-1]
    if not repeated.any():
        return decided
    updates = np.array([isinstance(c, UpdateAll | UpdateSet) for c in clauses])
    several = repeated.copy()
    several[1:] |= repeated[:-1]
    changed = several & updates[decided.choice]
    if incoming.duplicates is not Duplicates.LAST_WINS and changed.any():
        first = incoming.shown_key(int(decided.pairs.source[np.flatnonzero(changed)[0]]))
        raise _ambiguous(f"multiple source rows match the same target row on ({first})")
    kept = ~repeated
    return Decided(pairs=decided.pairs.where(kept), choice=decided.choice[kept])


def _ambiguous(what: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"Ambiguous merge inserts are prohibited: {what}",
        action="Deduplicate the source by key, or let the last row win.",
    )


def _chunks(numbers: RowNumbers) -> list[tuple[int, RowNumbers]]:
    return [(start * _CHUNK_ROWS, part) for start, part in enumerate(parts(numbers, _CHUNK_ROWS))]
