"""Steps of a table history as frozen values, run by an official release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

import pyarrow as pa

from tests.strategies.drawn_writes import write_drawn
from tests.strategies.target import Target
from tests.support.official import Official, OfficialError


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Append:
    """Rows in, perhaps without some nullable columns."""

    table: pa.Table


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Overwrite:
    """Schema and rows anew."""

    table: pa.Table


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MergeInsert:
    """Upsert by key; with a part of the columns it only updates."""

    table: pa.Table
    inserts: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """Rows out."""

    predicate: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """One column set to an SQL expression."""

    column: str
    expression: str
    where: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AddColumn:
    """A column computed by SQL."""

    name: str
    expression: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AddNullColumn:
    """A column without data."""

    field: pa.Field


@dataclass(frozen=True, slots=True, kw_only=True)
class DropColumn:
    """A column or a struct member out."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameColumn:
    """A column or a struct member under another name."""

    path: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CastColumn:
    """A column under another type."""

    path: str
    data_type: pa.DataType


@dataclass(frozen=True, slots=True, kw_only=True)
class Compact:
    """Small fragments together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexKey:
    """A scalar index on the key column."""

    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tag:
    """A name for the newest version."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetConfig:
    """A config key."""

    key: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore:
    """Back to the state after an earlier step; step 0 is the creation."""

    step: int


Step = (
    Append
    | Overwrite
    | MergeInsert
    | Delete
    | Update
    | AddColumn
    | AddNullColumn
    | DropColumn
    | RenameColumn
    | CastColumn
    | Compact
    | IndexKey
    | Tag
    | SetConfig
    | Restore
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class History:
    """The creation of a table and what happened to it afterwards."""

    target: Target
    table: pa.Table
    stable_row_ids: bool
    rows_per_file: int
    v2_manifest_paths: bool
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The newest version after a step, and the refusal if the step did not happen."""

    version: int
    refusal: OfficialError | None = None


def run_history(official: Official, uri: str, history: History) -> tuple[Outcome, ...]:
    """Create the table and run every step; a refused step is skipped and reported."""
    created = _create(official, uri, history)
    outcomes = [Outcome(version=created)]
    versions: dict[int, int] = {0: created}
    for number, step in enumerate(history.steps, start=1):
        refusal = None
        try:
            run_step(official, uri, step, versions)
        except OfficialError as error:
            refusal = error
        newest = int(official.run(uri, "result = lance.dataset(uri).version"))
        versions[number] = newest
        outcomes.append(Outcome(version=newest, refusal=refusal))
    return tuple(outcomes)


def _create(official: Official, uri: str, history: History) -> int:
    return write_drawn(
        official,
        uri,
        history.table,
        data_storage_version=history.target.file_version,
        enable_stable_row_ids=history.stable_row_ids,
        max_rows_per_file=history.rows_per_file,
        enable_v2_manifest_paths=history.v2_manifest_paths,
    )


def run_step(official: Official, uri: str, step: Step, versions: Mapping[int, int]) -> None:
    """Run one step; `versions` says which version each earlier step led to."""
    match step:
        case Append() | Overwrite() | MergeInsert():
            _write_rows(official, uri, step)
        case Delete(predicate=predicate):
            official.delete(uri, predicate)
        case Update(column=column, expression=expression, where=where):
            official.update(uri, {column: expression}, where)
        case AddColumn() | AddNullColumn() | DropColumn() | RenameColumn() | CastColumn():
            _change_columns(official, uri, step)
        case Compact():
            official.compact(uri)
        case IndexKey(kind=kind):
            official.create_scalar_index(uri, "key", kind)
        case Tag(name=name):
            official.tag(uri, name, versions[max(versions)])
        case SetConfig(key=key, value=value):
            official.update_config(uri, {key: value})
        case Restore(step=earlier):
            official.restore(uri, versions[earlier])
        case _:
            assert_never(step)


def _write_rows(official: Official, uri: str, step: Append | Overwrite | MergeInsert) -> None:
    match step:
        case Append(table=table):
            official.append(uri, table)
        case Overwrite(table=table):
            official.overwrite(uri, table)
        case MergeInsert(table=table, inserts=inserts):
            official.merge_insert(uri, table, ["key"], when_not_matched=inserts)
        case _:
            assert_never(step)


def _change_columns(
    official: Official,
    uri: str,
    step: AddColumn | AddNullColumn | DropColumn | RenameColumn | CastColumn,
) -> None:
    match step:
        case AddColumn(name=name, expression=expression):
            official.add_columns(uri, {name: expression})
        case AddNullColumn(field=field):
            official.add_null_column(uri, field)
        case DropColumn(path=path):
            official.drop_columns(uri, [path])
        case RenameColumn(path=path, name=name):
            official.rename_column(uri, path, name)
        case CastColumn(path=path, data_type=data_type):
            official.cast_column(uri, path, data_type)
        case _:
            assert_never(step)
