"""Rename columns, cast them to another type, or change their nullability."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from lancelake.commit.snapshot import Snapshot, names_table
from lancelake.engine.port import Engine, Job, Progress
from lancelake.errors import SchemaMismatchError
from lancelake.format import evolution
from lancelake.format.arrow_schema import from_arrow
from lancelake.format.evolution import Alteration, Altered
from lancelake.format.schema import Field, Schema
from lancelake.scan.plan import ScanTask
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest
from lancelake.table.columns.backfill import Backfill, ColumnPlan, default_engine
from lancelake.table.columns.cast_rules import cast_column, ensure_castable
from lancelake.table.columns.drop import project
from lancelake.table.columns.live_columns import live_batches
from lancelake.table.columns.retyped import RetypedValues, rewrite_plan
from lancelake.table.publish import DEFAULT_CHOICES, CommitChoices

_CHECK_BYTES = 32 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnChange:
    """Changes of one column; None leaves a property unchanged."""

    path: str
    name: str | None = None
    nullable: bool | None = None
    data_type: pa.DataType | None = None


class CastValues(RetypedValues):
    """Values of columns cast to another type."""

    __slots__ = ()

    def retyped(self, array: pa.Array, old: Field, new: Field, target: pa.DataType) -> pa.Array:  # noqa: ARG002
        """Cast the values."""
        return cast_column(array, old, new, old.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class FindNulls:
    """Find the fields that are null in a live row of a fragment."""

    scan: ScanTask
    trails: tuple[tuple[Field, ...], ...]

    @property
    def memory_bytes(self) -> int:
        """Estimated memory of a run."""
        return _CHECK_BYTES

    def run(self) -> bytes:
        """Return the path of the first such field, or nothing."""
        for trail in self.trails:
            schema = Schema(fields=(_chain(trail),))
            for batch in live_batches(self.scan, schema):
                if _has_null(batch.column(0), trail):
                    return ".".join(field.name for field in trail).encode()
        return b""


@names_table
def alter_columns(
    base: Snapshot,
    changes: Sequence[ColumnChange],
    *,
    engine: Engine | None = None,
    choices: CommitChoices = DEFAULT_CHOICES,
    progress: Progress | None = None,
) -> Snapshot:
    """Change columns and commit.

    Only a change of type writes data: one more file for each fragment. Indices on such a column are
    dropped. A column that becomes non-nullable is read to check for nulls.
    """
    running = engine or default_engine()
    first = _altered(base, changes)
    ensure_no_nulls(base, changes, running)
    if not first.after.fields:
        return project(base, lambda schema: _renamed(schema, changes), choices)
    backfill = Backfill(engine=running, choices=choices, progress=progress)
    return backfill.run(base, lambda at: _cast_plan(at, changes))


@names_table
def ensure_no_nulls(base: Snapshot, changes: Sequence[ColumnChange], engine: Engine) -> None:
    """Raise an error if a column that becomes non-nullable contains nulls."""
    schema = base.manifest.schema
    trails = tuple(
        evolution.resolve(schema, change.path) for change in changes if change.nullable is False
    )
    trails = tuple(trail for trail in trails if trail[-1].nullable)
    if not trails:
        return
    scans = plan(base, ScanRequest(columns=())).tasks
    tasks = [FindNulls(scan=scan, trails=trails) for scan in scans]
    for found in engine.run(Job(description=f"find nulls of {base.location.uri}", tasks=tasks)):
        if found:
            name = found.decode()
            problem = f"Column {name!r} contains NULL values and cannot be made non-nullable"
            raise SchemaMismatchError(
                problem,
                table=base.location.uri,
                version=base.version,
                path=found.decode(),
                action="Fill in the nulls first.",
            )


def _cast_plan(base: Snapshot, changes: Sequence[ColumnChange]) -> ColumnPlan:
    altered = _altered(base, changes)
    values = CastValues(before=altered.before, after=altered.after)
    return rewrite_plan(base, altered.schema, values)


def _altered(base: Snapshot, changes: Sequence[ColumnChange]) -> Altered:
    manifest = base.manifest
    first_id = evolution.first_free_id(manifest.schema, manifest.fragments)
    alterations = [_alteration(manifest.schema, change) for change in changes]
    return evolution.alter(manifest.schema, alterations, first_id=first_id)


def _renamed(schema: Schema, changes: Sequence[ColumnChange]) -> Schema:
    alterations = [_alteration(schema, change) for change in changes]
    return evolution.alter(schema, alterations, first_id=0).schema


def _alteration(schema: Schema, change: ColumnChange) -> Alteration:
    retyped: Field | None = None
    if change.data_type is not None:
        field = evolution.resolve(schema, change.path)[-1]
        ensure_castable(field, change.data_type, change.path)
        retyped = from_arrow(pa.schema([pa.field("value", change.data_type)])).fields[0]
    return Alteration(path=change.path, name=change.name, nullable=change.nullable, retyped=retyped)


def _chain(trail: tuple[Field, ...]) -> Field:
    """Return the chain of fields from the first to the last."""
    if len(trail) == 1:
        return trail[0]
    return trail[0].with_children((_chain(trail[1:]),))


def _has_null(array: pa.Array, trail: tuple[Field, ...]) -> bool:
    """Whether the last field of a path is null in some row, including through a null parent."""
    if array.null_count:
        return True
    if len(trail) == 1:
        return False
    if pa.types.is_struct(array.type):
        return _has_null(array.field(0), trail[1:])
    return _has_null(array.flatten(), trail[1:])
