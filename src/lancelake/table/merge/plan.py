"""Plan a merge: the rows to write and delete, computed before anything is written."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from lancelake.commit.snapshot import Snapshot
from lancelake.data.schema_check import ensure_fits
from lancelake.engine.port import Engine, Progress
from lancelake.errors import SchemaMismatchError
from lancelake.format.arrow_schema import public_schema
from lancelake.format.frozen import FrozenMap
from lancelake.format.row_address import ascending, by_fragment
from lancelake.format.schema import Schema
from lancelake.suggest import suggestion
from lancelake.table.merge.clauses import (
    DeleteRow,
    InsertAll,
    MergeSpec,
    NotMatched,
    UpdateAll,
    UpdateSet,
)
from lancelake.table.merge.decide import (
    NO_CLAUSE,
    Incoming,
    decide_matched,
    decide_unmatched,
    without_shared_keys,
)
from lancelake.table.merge.keys import key_fields
from lancelake.table.merge.match import Addresses, Pairs, match_keys
from lancelake.table.merge.row_builder import Missing, Recipe, computed, copied_from_source
from lancelake.table.merge.scope import SOURCE, TARGET, Scope
from lancelake.table.merge.source import RowNumbers, SourceRows
from lancelake.table.merge.source_keys import SourceKeys
from lancelake.table.merge.target import TargetRows
from lancelake.table.merge.write import Changed, New, Portion
from lancelake.table.row_steps.find import FoundRows, find_rows
from lancelake.txn.inserted_keys import InsertedKeys, collected


@dataclass(frozen=True, slots=True, kw_only=True)
class MergePlan:
    """Rows to write, rows to delete, and the keys of new rows."""

    portions: tuple[Portion, ...]
    gone: FoundRows
    inserted_keys: InsertedKeys | None
    inserted: int
    updated: int
    deleted: int


def find_outcome(
    base: Snapshot,
    source: SourceRows,
    spec: MergeSpec,
    engine: Engine,
    *,
    progress: Progress | None = None,
) -> MergePlan:
    """Match keys and apply the clauses."""
    return _Merge(base, source, spec, engine, progress).outcome()


class _Merge:
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
        self._incoming = incoming = _incoming(spec, self._schema, source)
        _ensure_source_fits(spec, self._schema, source.schema)
        target = public_schema(self._schema)
        self._both = Scope(sides=FrozenMap({TARGET: target, SOURCE: source.schema}))
        self._theirs = Scope(sides=FrozenMap({SOURCE: source.schema}))
        self._mine = Scope(sides=FrozenMap({TARGET: target}))
        self._keys = SourceKeys.of(source, incoming.fields, incoming.names)

    def outcome(self) -> MergePlan:
        pairs = match_keys(
            self._base,
            self._incoming.fields,
            self._keys,
            self._engine,
            use_index=self._spec.use_index,
            progress=self._progress,
        )
        changed, deleted = self._matched(pairs)
        kept, left = self._not_matched_by_source(pairs)
        new, keys = self._not_matched(pairs)
        addresses = [p.addresses for p in (*changed, *kept)] + [deleted, *left]
        portions: list[Portion] = [*changed, *kept, *new]
        return MergePlan(
            portions=tuple(portion for portion in portions if len(portion)),
            gone=by_fragment(np.concatenate(addresses)),
            inserted_keys=keys,
            inserted=sum(map(len, new)),
            updated=sum(map(len, (*changed, *kept))),
            deleted=len(deleted) + sum(map(len, left)),
        )

    def _matched(self, pairs: Pairs) -> tuple[list[Changed], Addresses]:
        """Return the matched rows that are updated, and those that are deleted."""
        clauses = self._spec.matched
        decided = decide_matched(self._base, clauses, pairs, self._incoming, self._both)
        changed: list[Changed] = []
        deleted = [np.array([], dtype=np.uint64)]
        for number, clause in enumerate(clauses):
            chosen = decided.of(number)
            match clause:
                case UpdateAll():
                    names = self._source.schema.names
                    made = copied_from_source(self._schema, names, otherwise=None)
                    changed.append(self._changed(made, chosen.target, chosen.source))
                case UpdateSet(values=values):
                    made = computed(self._schema, values, self._both, otherwise=None)
                    changed.append(self._changed(made, chosen.target, chosen.source))
                case DeleteRow():
                    deleted.append(chosen.target)
                case _:
                    continue
        return changed, np.concatenate(deleted)

    def _changed(self, made: Recipe, addresses: Addresses, numbers: RowNumbers | None) -> Changed:
        keeps_row_ids = self._base.manifest.has_stable_row_ids
        needed = made.needs(TARGET)
        target = None
        if needed or keeps_row_ids:
            target = TargetRows.of(self._base, needed, with_row_id=keeps_row_ids)
        elif numbers is not None:
            # No table row is read, and source rows are best read sequentially.
            numbers = np.sort(numbers)
        return Changed(
            recipe=made,
            target=target,
            addresses=addresses,
            numbers=numbers,
            source=self._source,
            keeps_row_ids=keeps_row_ids,
        )

    def _not_matched_by_source(self, pairs: Pairs) -> tuple[list[Changed], list[Addresses]]:
        """Return the rows not matched by the source that are updated, and those deleted."""
        clauses = self._spec.not_matched_by_source
        handled = by_fragment(pairs.target) if clauses else {}
        changed: list[Changed] = []
        deleted: list[Addresses] = []
        for clause in clauses:
            found = find_rows(self._base, clause.condition, self._engine, progress=self._progress)
            rest = {i: rows - handled.get(i, BitMap()) for i, rows in found.items()}
            handled = {
                i: handled.get(i, BitMap()) | rest.get(i, BitMap())
                for i in handled.keys() | rest.keys()
            }
            addresses = ascending(rest)
            if isinstance(clause, DeleteRow):
                deleted.append(addresses)
            else:
                made = computed(self._schema, clause.values, self._mine, otherwise=None)
                changed.append(self._changed(made, addresses, None))
        return changed, deleted

    def _not_matched(self, pairs: Pairs) -> tuple[list[New], InsertedKeys | None]:
        """Return the new rows, and their keys."""
        clauses = self._spec.not_matched
        if not clauses:
            return [], None
        is_new = np.ones(self._source.num_rows, dtype=np.bool_)
        is_new[pairs.source] = False
        numbers = np.flatnonzero(is_new)
        conditions = [
            None if clause.condition is None else self._theirs.condition(clause.condition)
            for clause in clauses
        ]
        choice = decide_unmatched(conditions, numbers, self._source)
        acts = np.zeros(self._source.num_rows, dtype=np.bool_)
        acts[without_shared_keys(numbers[choice >= 0], self._keys, self._incoming)] = True
        choice[~acts[numbers]] = NO_CLAUSE
        chosen = [numbers[choice == i] for i in range(len(clauses))]
        new = [
            New(recipe=self._new_recipe(clause), numbers=part, source=self._source)
            for clause, part in zip(clauses, chosen, strict=True)
        ]
        return new, self._inserted_keys(new)

    def _new_recipe(self, clause: NotMatched) -> Recipe:
        if isinstance(clause, InsertAll):
            names = self._source.schema.names
            return copied_from_source(self._schema, names, otherwise=Missing())
        return computed(self._schema, clause.values, self._theirs, otherwise=Missing())

    def _inserted_keys(self, new: list[New]) -> InsertedKeys:
        """Record the keys of new rows, so that concurrent inserts of the same keys are detected."""
        fields = self._incoming.fields
        names = [field.name for field in fields]
        made = (rows for part in new for rows in part.keys(names))
        return collected([field.id for field in fields], (rows.columns for rows in made))


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
