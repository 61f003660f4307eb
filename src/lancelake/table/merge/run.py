"""Merges: what happens to each row of the table and of the source, and its commit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from lancelake.commit.snapshot import Snapshot
from lancelake.data.schema_check import ensure_fits
from lancelake.engine.port import Engine, LocalEngine, Progress
from lancelake.errors import InvalidRequestError, SchemaMismatchError, suggestion
from lancelake.format.arrow_schema import public_schema
from lancelake.format.frozen import FrozenMap, computed_once
from lancelake.format.row_address import ascending, by_fragment
from lancelake.format.schema import Field, Schema
from lancelake.scan.task_rows import to_mask
from lancelake.table import publish, row_steps
from lancelake.table.columns.alter import widened, widened_schema
from lancelake.table.merge.clauses import (
    SOURCE,
    TARGET,
    DeleteRow,
    Duplicates,
    Fail,
    InsertAll,
    Matched,
    MergeSpec,
    NotMatched,
    Scope,
    ScopedCondition,
    UpdateAll,
    UpdateSet,
)
from lancelake.table.merge.match import Addresses, Pairs, TargetRows, match_keys
from lancelake.table.merge.source import (
    MEMORY_BYTES,
    RowNumbers,
    SourceKeys,
    SourceRows,
    describe_key,
    is_complete,
    key_fields,
    read_source,
    split,
    take_rows,
)
from lancelake.table.merge.write import (
    KeyColumns,
    NewRows,
    Null,
    Portion,
    RowBuilder,
    UpdatedRows,
    added_rows,
    compute_columns,
    copy_columns,
    write_portions,
)

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

    def describe_key(self, number: int) -> str:
        """Return the key of a row as text for messages."""
        row = self.rows.columns(self.names).slice(number, 1).to_pylist()[0]
        return describe_key([row[name] for name in self.names], self.fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisions:
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
) -> Decisions:
    """Apply the first clause whose condition is true to each pair."""
    choice = _matched_choice(base, clauses, pairs, incoming.rows, scope)
    acting = choice >= 0
    decided = Decisions(pairs=pairs.where(acting), choice=choice[acting])
    for number, clause in enumerate(clauses):
        if isinstance(clause, Fail) and len(decided.of(number)):
            first = incoming.describe_key(int(decided.of(number).source[0]))
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
                holds &= to_mask(condition.holds({SOURCE: take_rows(columns, part)}))
            choice[start : start + len(part)][holds] = number
            left &= ~holds
    return choice


def without_shared_keys(numbers: RowNumbers, keys: SourceKeys, incoming: Incoming) -> RowNumbers:
    """Refuse new rows that share a key, or keep the last of them; null keys are never equal."""
    new = keys.table.take(pa.array(numbers)).append_column("row", pa.array(numbers))
    names = [name for name in new.column_names if name != "row"]
    complete = is_complete([new.column(name) for name in names])
    grouped = new.filter(complete).group_by(names).aggregate([("row", "max"), ("row", "count")])
    shared = grouped.filter(pc.greater(grouped.column("row_count"), 1))
    if not shared.num_rows:
        return numbers
    if incoming.duplicates is Duplicates.REFUSE:
        first = incoming.describe_key(int(pc.min(shared.column("row_max")).as_py()))
        raise _ambiguous(f"several source rows have the same new key ({first})")
    last = np.concatenate(
        [
            grouped.column("row_max").to_numpy(),
            new.column("row").filter(pc.invert(complete)).to_numpy(),
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
        sides = {SOURCE: take_rows(theirs, part)}
        if target is not None:
            sides[TARGET] = target.at(pairs.target[start : start + len(part)])
        mask[start : start + len(part)] = to_mask(condition.holds(sides))
    return mask


def _one_per_target(
    decided: Decisions, clauses: Sequence[Matched], incoming: Incoming
) -> Decisions:
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
        first = incoming.describe_key(int(decided.pairs.source[np.flatnonzero(changed)[0]]))
        raise _ambiguous(f"multiple source rows match the same target row on ({first})")
    is_last = ~repeated
    return Decisions(pairs=decided.pairs.where(is_last), choice=decided.choice[is_last])


def _ambiguous(what: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"Ambiguous merge inserts are prohibited: {what}",
        action="Deduplicate the source by key, or let the last row win.",
    )


def _chunks(numbers: RowNumbers) -> list[tuple[int, RowNumbers]]:
    return [(start * _CHUNK_ROWS, part) for start, part in enumerate(split(numbers, _CHUNK_ROWS))]


@dataclass(frozen=True, slots=True, kw_only=True)
class MergePlan:
    """Rows to write, rows that leave their place, and how many of these are deleted."""

    portions: tuple[Portion, ...]
    gone: row_steps.RowsByFragment
    deleted: int
    key: KeyColumns | None
    """The key of new rows, which is recorded so that concurrent inserts of it are detected."""

    def added(
        self, base: Snapshot, engine: Engine, *, progress: Progress | None = None
    ) -> row_steps.AddedRows:
        """Write the rows, by tasks of an engine."""
        parts = write_portions(
            self.portions, row_steps.row_files(base), self.key, engine, progress=progress
        )
        return added_rows(parts, self.key, deleted=self.deleted)


def plan_merge(
    base: Snapshot,
    source: SourceRows,
    spec: MergeSpec,
    engine: Engine,
    *,
    pairs: Pairs | None = None,
    progress: Progress | None = None,
) -> MergePlan:
    """Match keys, unless the pairs are given, and apply the clauses."""
    return _Planner(base, source, spec, engine, progress).plan(pairs)


class _Planner:
    def __init__(
        self,
        base: Snapshot,
        source: SourceRows,
        spec: MergeSpec,
        engine: Engine,
        progress: Progress | None,
    ) -> None:
        self._base = base
        self._schema = base.manifest.schema
        self._source = source
        self._spec = spec
        self._engine = engine
        self._progress = progress
        self._incoming = _incoming(spec, self._schema, source)
        _ensure_source_fits(spec, self._schema, source.schema)
        target = public_schema(self._schema)
        self._both = Scope(sides=FrozenMap({TARGET: target, SOURCE: source.schema}))
        self._theirs = Scope(sides=FrozenMap({SOURCE: source.schema}))
        self._mine = Scope(sides=FrozenMap({TARGET: target}))

    def plan(self, pairs: Pairs | None) -> MergePlan:
        if pairs is None:
            pairs = match_keys(
                self._base,
                self._incoming.fields,
                self._keys,
                self._engine,
                use_index=self._spec.use_index,
                progress=self._progress,
            )
        changed, deleted = self._matched(pairs)
        others, left = self._not_matched_by_source(pairs)
        new = self._not_matched(pairs)
        updated = [*changed, *others]
        addresses = [*(part.addresses for part in updated), deleted, *left]
        portions: list[Portion] = [*updated, *new]
        return MergePlan(
            portions=tuple(portion for portion in portions if len(portion)),
            gone=by_fragment(np.concatenate(addresses)),
            deleted=len(deleted) + sum(map(len, left)),
            key=KeyColumns.of(self._incoming.fields) if self._spec.not_matched else None,
        )

    @computed_once
    def _keys(self) -> SourceKeys:
        return SourceKeys.of(self._source, self._incoming.fields, self._incoming.names)

    def _matched(self, pairs: Pairs) -> tuple[list[UpdatedRows], Addresses]:
        """Return the matched rows that are updated, and those that are deleted."""
        clauses = self._spec.matched
        decided = decide_matched(self._base, clauses, pairs, self._incoming, self._both)
        updated: list[UpdatedRows] = []
        deleted = [np.array([], dtype=np.uint64)]
        for number, clause in enumerate(clauses):
            rows = decided.of(number)
            match clause:
                case UpdateAll():
                    names = self._source.schema.names
                    builder = copy_columns(self._schema, names, otherwise=None)
                    updated.append(self._updated(builder, rows.target, rows.source))
                case UpdateSet(values=values):
                    builder = compute_columns(self._schema, values, self._both, otherwise=None)
                    updated.append(self._updated(builder, rows.target, rows.source))
                case DeleteRow():
                    deleted.append(rows.target)
                case _:
                    continue
        return updated, np.concatenate(deleted)

    def _updated(
        self, builder: RowBuilder, addresses: Addresses, numbers: RowNumbers | None
    ) -> UpdatedRows:
        keeps_row_ids = self._base.manifest.has_stable_row_ids
        needed = builder.needs(TARGET)
        target = None
        if needed or keeps_row_ids:
            target = TargetRows.of(self._base, needed, with_row_id=keeps_row_ids)
        elif numbers is not None:
            # No table row is read, and source rows are best read sequentially.
            numbers = np.sort(numbers)
        return UpdatedRows(
            builder=builder,
            target=target,
            addresses=addresses,
            numbers=numbers,
            source=self._source,
            keeps_row_ids=keeps_row_ids,
        )

    def _not_matched_by_source(self, pairs: Pairs) -> tuple[list[UpdatedRows], list[Addresses]]:
        """Return the rows not matched by the source that are updated, and those deleted."""
        clauses = self._spec.not_matched_by_source
        handled = by_fragment(pairs.target) if clauses else {}
        updated: list[UpdatedRows] = []
        deleted: list[Addresses] = []
        for clause in clauses:
            rows = row_steps.find_rows(
                self._base, clause.condition, self._engine, progress=self._progress
            )
            rest = {i: offsets - handled.get(i, BitMap()) for i, offsets in rows.items()}
            handled = {
                i: handled.get(i, BitMap()) | rest.get(i, BitMap())
                for i in handled.keys() | rest.keys()
            }
            addresses = ascending(rest)
            if isinstance(clause, DeleteRow):
                deleted.append(addresses)
            else:
                builder = compute_columns(self._schema, clause.values, self._mine, otherwise=None)
                updated.append(self._updated(builder, addresses, None))
        return updated, deleted

    def _not_matched(self, pairs: Pairs) -> list[NewRows]:
        """Return the new rows."""
        clauses = self._spec.not_matched
        if not clauses:
            return []
        is_new = np.ones(self._source.num_rows, dtype=np.bool_)
        is_new[pairs.source] = False
        numbers = np.flatnonzero(is_new)
        conditions = [
            None if clause.condition is None else self._theirs.condition(clause.condition)
            for clause in clauses
        ]
        choice = decide_unmatched(conditions, numbers, self._source)
        if self._incoming.duplicates is not Duplicates.INSERT_ALL and not self._keys.are_unique:
            acts = np.zeros(self._source.num_rows, dtype=np.bool_)
            acts[without_shared_keys(numbers[choice >= 0], self._keys, self._incoming)] = True
            choice[~acts[numbers]] = NO_CLAUSE
        return [
            NewRows(
                builder=self._new_row_builder(clause),
                numbers=numbers[choice == i],
                source=self._source,
            )
            for i, clause in enumerate(clauses)
        ]

    def _new_row_builder(self, clause: NotMatched) -> RowBuilder:
        if isinstance(clause, InsertAll):
            return copy_columns(self._schema, self._source.schema.names, otherwise=Null())
        return compute_columns(self._schema, clause.values, self._theirs, otherwise=Null())


def _incoming(spec: MergeSpec, schema: Schema, source: SourceRows) -> Incoming:
    fields = key_fields(spec.on, schema)
    present = source.schema.names
    by_lower = {name.lower(): name for name in present}
    names = []
    for field in fields:
        name = field.name if field.name in present else by_lower.get(field.name.lower())
        if name is None:
            problem = f"the source has no key column {field.name}"
            advice = suggestion(field.name, present, "columns of the source")
            raise SchemaMismatchError(problem, path=field.name, action=advice)
        names.append(name)
    return Incoming(rows=source, fields=fields, names=tuple(names), duplicates=spec.duplicates)


def _ensure_source_fits(spec: MergeSpec, schema: Schema, source: pa.Schema) -> None:
    """Check the columns that are copied unchanged; only new rows need all non-nullable columns."""
    copies = any(isinstance(c, UpdateAll) for c in spec.matched)
    inserts = any(isinstance(c, InsertAll) for c in spec.not_matched)
    if inserts:
        ensure_fits(schema, source, casts=spec.casts)
    elif copies:
        brought = tuple(field for field in schema.fields if field.name in source.names)
        ensure_fits(replace(schema, fields=brought), source, casts=spec.casts)


def merge(
    base: Snapshot,
    source: pa.RecordBatchReader,
    spec: MergeSpec,
    *,
    engine: Engine | None = None,
    choices: publish.CommitChoices = publish.DEFAULT_CHOICES,
    retries: publish.Retries = publish.DEFAULT,
    once: publish.OnceOnly | None = None,
    memory_bytes: int = MEMORY_BYTES,
    progress: Progress | None = None,
) -> row_steps.RowsChanged:
    """Merge rows into a table and commit; after a conflict it is retried on the newest version.

    Only the key columns of the table are read, and those columns of matching rows that the clauses
    need. A source of more than `memory_bytes` is spilled to disk.
    """
    runs_on = engine or LocalEngine()
    choices = choices.named("MERGE", base.location)
    with read_source(source, memory_bytes=memory_bytes) as rows:

        def attempt(version: Snapshot) -> row_steps.RowsChanged:
            if spec.adds_columns:
                version = _with_columns(version, rows, spec, runs_on, choices)
            change = change_of(version, rows, spec, engine=runs_on, progress=progress)
            return row_steps.commit_rows(
                version, replace(change, once=once), choices.within(retries)
            )

        return publish.retry_on_newest(base, attempt, retries)


def prepare(
    base: Snapshot,
    source: SourceRows,
    spec: MergeSpec,
    *,
    engine: Engine | None = None,
    choices: publish.CommitChoices = publish.DEFAULT_CHOICES,
    progress: Progress | None = None,
) -> row_steps.PreparedRows:
    """Perform all steps of a merge except its commit."""
    change = change_of(base, source, spec, engine=engine, progress=progress)
    return row_steps.prepare_rows(base, change, choices.named("MERGE", base.location))


def change_of(
    base: Snapshot,
    source: SourceRows,
    spec: MergeSpec,
    *,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> row_steps.RowChange:
    """Decide what happens to each row; the rows are written when the change is prepared."""
    runs_on = engine or LocalEngine()
    plan = plan_merge(base, source, spec, runs_on, progress=progress)
    return row_steps.RowChange(
        gone=plan.gone,
        add=lambda: plan.added(base, runs_on, progress=progress),
        merged_generations=spec.merged_generations,
    )


def _with_columns(
    base: Snapshot,
    source: SourceRows,
    spec: MergeSpec,
    engine: Engine,
    choices: publish.CommitChoices,
) -> Snapshot:
    """Add the source's columns to the table, once the merge has been validated."""
    schema = widened_schema(base, source.schema)
    if schema == base.manifest.schema:
        return base
    manifest = replace(base.manifest, schema=schema)
    plan_merge(replace(base, file=replace(base.file, manifest=manifest)), source, spec, engine)
    return widened(base, source.schema, choices, engine=engine)
