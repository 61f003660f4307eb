"""Random histories of merges, and what each of them means for the rows of a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pyarrow as pa

from lancelake.format.frozen import FrozenMap
from lancelake.table.merge.clauses import (
    Clauses,
    DeleteRow,
    InsertAll,
    InsertValues,
    MatchedBy,
    NotMatchedBy,
    NotMatchedBySourceBy,
    UpdateAll,
    UpdateSet,
)

Row = dict[str, Any]
Meaning = Callable[[Row, Row], Any]
"""The value of an expression, from the row of the table and that of the source."""

_KEYS = 12
_TYPES = {"id": pa.int64(), "n": pa.int64(), "s": pa.utf8(), "added": pa.int64()}


def _plus(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


def _less(one: int | None, other: int | None) -> bool:
    return one is not None and other is not None and one < other


MATCHED_CONDITIONS: dict[str, Meaning] = {
    "source.n > target.n": lambda t, s: _less(t["n"], s["n"]),
    "source.n IS NULL": lambda t, s: s["n"] is None,
    "target.n < 20": lambda t, s: _less(t["n"], 20),
    "target.s IS NOT NULL AND source.n < 50": lambda t, s: t["s"] is not None and _less(s["n"], 50),
}
SOURCE_CONDITIONS: dict[str, Meaning] = {
    "source.n < 40": lambda t, s: _less(s["n"], 40),
    "source.s IS NULL": lambda t, s: s["s"] is None,
    "source.id IS NOT NULL": lambda t, s: s["id"] is not None,
}
TARGET_CONDITIONS: dict[str, Meaning] = {
    "n < 50": lambda t, s: _less(t["n"], 50),
    "s IS NULL": lambda t, s: t["s"] is None,
}
MATCHED_VALUES: dict[str, Meaning] = {
    "target.n + source.n": lambda t, s: _plus(t["n"], s["n"]),
    "source.n": lambda t, s: s["n"],
    "source.id": lambda t, s: s["id"],
}
SOURCE_VALUES: dict[str, Meaning] = {
    "source.n": lambda t, s: s["n"],
    "source.n + 1": lambda t, s: _plus(s["n"], 1),
}
TARGET_VALUES: dict[str, Meaning] = {
    "n + 100": lambda t, s: _plus(t["n"], 100),
    "-1": lambda t, s: -1,
}
_MEANINGS = {
    **MATCHED_CONDITIONS,
    **SOURCE_CONDITIONS,
    **TARGET_CONDITIONS,
    **MATCHED_VALUES,
    **SOURCE_VALUES,
    **TARGET_VALUES,
    "source.s": lambda t, s: s["s"],
}


class AmbiguousMergeError(Exception):
    """Several rows of a source change one row of the table."""


@dataclass(frozen=True)
class Merge:
    """A merge by clauses; new rows may share a key."""

    rows: list[Row]
    clauses: Clauses[str]
    columns: tuple[str, ...]
    """Those of the source; one that the table lacks is added to it."""

    @property
    def source(self) -> pa.Table:
        """The rows of the source."""
        return table_of(self.rows, self.columns)


@dataclass(frozen=True)
class Upserts:
    """Rows that are inserted or replaced, or deleted, by key; of one key, the last row counts."""

    rows: list[Row]
    gone: list[int] = field(default_factory=list)

    @property
    def newest(self) -> list[Row]:
        """One row for each key that is not deleted afterwards."""
        by_key = {row["id"]: row for row in self.rows}
        return [row for key, row in by_key.items() if key not in self.gone]


@dataclass(frozen=True)
class NewColumn:
    """A column without values is added, while rows may wait in a MemWAL."""


Step = Merge | Upserts | NewColumn


@dataclass(frozen=True)
class History:
    """Rows of a table, and what is merged into it."""

    rows: list[Row]
    steps: tuple[Step, ...]
    has_key: bool
    """Whether the table has a primary key, which has no nulls."""

    @property
    def schema(self) -> pa.Schema:
        """Columns of the table before the first step."""
        mark = {"lance-schema:unenforced-primary-key": "true"} if self.has_key else None
        key = pa.field("id", pa.int64(), nullable=not self.has_key, metadata=mark)
        return pa.schema([key, ("n", pa.int64()), ("s", pa.utf8())])

    @property
    def table(self) -> pa.Table:
        """The table before the first step."""
        return pa.Table.from_pylist(self.rows, schema=self.schema)


def table_of(rows: Sequence[Row], columns: Sequence[str]) -> pa.Table:
    """Return rows as a table of these columns."""
    schema = pa.schema([(name, _TYPES[name]) for name in columns])
    return pa.Table.from_pylist([{name: row.get(name) for name in columns} for row in rows], schema)


def random_history(chance: Random, *, has_key: bool, most_steps: int = 4) -> History:
    """Draw a history; with a key, the table has a primary key and some steps are upserts."""
    rows = [_row(chance, key) for key in range(chance.randint(0, _KEYS))]
    if not has_key and chance.random() < 0.5:
        rows += [_row(chance, chance.choice([None, 3])) for _ in range(2)]
    steps: list[Step] = []
    columns = ["id", "n", "s"]
    for _ in range(chance.randint(1, most_steps)):
        if "added" not in columns and chance.random() < 0.2:
            steps.append(NewColumn())
            columns.append("added")
        elif has_key and chance.random() < 0.6:
            keys = [chance.randrange(_KEYS * 2) for _ in range(chance.randint(1, 6))]
            gone = [chance.randrange(_KEYS * 2) for _ in range(chance.randint(0, 3))]
            names = ["added"] if "added" in columns else []
            steps.append(Upserts([_row(chance, key, names) for key in keys], gone))
        else:
            merge = _merge(chance, columns, has_key=has_key)
            steps.append(merge)
            columns += [name for name in merge.columns if name not in columns]
    return History(rows, tuple(steps), has_key)


def _row(chance: Random, key: int | None, more: Sequence[str] = ()) -> Row:
    number = None if chance.random() < 0.2 else chance.randrange(100)
    text = None if chance.random() < 0.2 else chance.choice("xyz")
    return {"id": key, "n": number, "s": text, **{name: chance.randrange(9) for name in more}}


def _merge(chance: Random, columns: Sequence[str], *, has_key: bool) -> Merge:
    adds = "added" not in columns and chance.random() < 0.3
    names = (*columns, "added") if adds else tuple(columns)
    keys: list[int | None] = chance.sample(range(_KEYS * 2), chance.randint(0, 8))
    if not adds and chance.random() < 0.3:
        keys += chance.choices(range(_KEYS * 2), k=2)
    if not has_key and chance.random() < 0.4:
        keys.append(None)
    rows = [_row(chance, key, [name for name in names if name == "added"]) for key in keys]
    return Merge(rows, _clauses(chance), names)


def _clauses(chance: Random) -> Clauses[str]:
    matched: list[MatchedBy[str]] = []
    inserts: list[NotMatchedBy[str]] = []
    others: list[NotMatchedBySourceBy[str]] = []
    for _ in range(chance.randint(0, 2)):
        condition = _some(chance, MATCHED_CONDITIONS)
        values = FrozenMap({"n": chance.choice([*MATCHED_VALUES])})
        kinds: list[MatchedBy[str]] = [
            UpdateAll(condition=condition),
            UpdateSet(values=values, condition=condition),
            DeleteRow(condition=condition),
        ]
        matched.append(chance.choice(kinds))
    for _ in range(chance.randint(0, 2)):
        condition = _some(chance, SOURCE_CONDITIONS)
        values = FrozenMap({"id": "source.id", "n": chance.choice([*SOURCE_VALUES])})
        inserts.append(
            InsertAll(condition=condition)
            if chance.random() < 0.6
            else InsertValues(values=values, condition=condition)
        )
    for _ in range(chance.randint(0, 2)):
        condition = _some(chance, TARGET_CONDITIONS)
        values = FrozenMap({"n": chance.choice([*TARGET_VALUES])})
        others.append(
            DeleteRow(condition=condition)
            if chance.random() < 0.5
            else UpdateSet(values=values, condition=condition)
        )
    if not (matched or inserts or others):
        matched.append(UpdateAll())
    return Clauses(
        matched=tuple(matched), not_matched=tuple(inserts), not_matched_by_source=tuple(others)
    )


def _some(chance: Random, conditions: dict[str, Meaning]) -> str | None:
    return None if chance.random() < 0.4 else chance.choice([*conditions])


def rows_after(rows: list[Row], step: Step) -> list[Row]:
    """Return the rows of a table after a step; raise AmbiguousMergeError if it is refused."""
    if isinstance(step, NewColumn):
        return rows
    if isinstance(step, Upserts):
        changed = {row["id"] for row in step.rows} | {*step.gone}
        return [row for row in rows if row["id"] not in changed] + [
            dict(row) for row in step.newest
        ]
    columns = [*dict.fromkeys([*(rows[0] if rows else ()), *step.columns])]
    before = [{name: row.get(name) for name in columns} for row in rows]
    after: list[Row] = []
    matched_keys = {row["id"] for row in before} - {None}
    for row in before:
        partners = [other for other in step.rows if _has_key(other, row["id"])]
        after += _left_of(row, partners, step)
    for row in step.rows:
        clause = _first(step.clauses.not_matched, {}, row)
        if row["id"] in matched_keys or clause is None:
            continue
        empty: Row = dict.fromkeys(columns)
        if isinstance(clause, InsertAll):
            after.append(empty | {name: row[name] for name in step.columns})
        else:
            after.append(empty | _computed(clause.values, {}, row))
    return after


def _has_key(row: Row, key: int | None) -> bool:
    return key is not None and row["id"] == key


def _left_of(row: Row, partners: Sequence[Row], step: Merge) -> list[Row]:
    """Return what is left of a row of the table."""
    if not partners:
        clause = _first(step.clauses.not_matched_by_source, row, {})
        if clause is None:
            return [row]
        if isinstance(clause, DeleteRow):
            return []
        return [row | _computed(clause.values, row, {})]
    pairs = [(_first(step.clauses.matched, row, partner), partner) for partner in partners]
    acting = [(clause, partner) for clause, partner in pairs if clause is not None]
    if len(acting) > 1 and any(not isinstance(clause, DeleteRow) for clause, _ in acting):
        raise AmbiguousMergeError
    if not acting:
        return [row]
    clause, partner = acting[0]
    if isinstance(clause, DeleteRow):
        return []
    if isinstance(clause, UpdateAll):
        return [row | {name: partner[name] for name in step.columns}]
    return [row | _computed(clause.values, row, partner)]


def _first(clauses: Sequence[Any], target: Row, source: Row) -> Any:
    """Return the first clause whose condition is true."""
    return next(
        (c for c in clauses if c.condition is None or _MEANINGS[c.condition](target, source)), None
    )


def _computed(values: FrozenMap[str, str], target: Row, source: Row) -> Row:
    return {name: _MEANINGS[text](target, source) for name, text in values.items()}


def content(table: pa.Table) -> list[tuple[tuple[str, Any], ...]]:
    """Return the rows of a table without their order; columns of nulls alone do not count."""
    rows = ([(n, v) for n, v in row.items() if v is not None] for row in table.to_pylist())
    return sorted((tuple(sorted(row)) for row in rows), key=repr)


def expected(history: History) -> list[list[tuple[tuple[str, Any], ...]]]:
    """Return the content of the table after each step; a step that is refused changes nothing."""
    rows, contents = [dict(row) for row in history.rows], []
    for step in history.steps:
        with suppress(AmbiguousMergeError):
            rows = rows_after(rows, step)
        pairs = ([(n, v) for n, v in row.items() if v is not None] for row in rows)
        contents.append(sorted((tuple(sorted(row)) for row in pairs), key=repr))
    return contents
