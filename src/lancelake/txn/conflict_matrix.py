"""Conflict matrix, from examples of every operation."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache
from typing import assert_never

import pyarrow as pa
from pyroaring import BitMap

from lancelake.errors import InvalidRequestError
from lancelake.format import operations as ops
from lancelake.format.fragment import (
    BasePath,
    DataFile,
    DeletionFile,
    DeletionFileType,
    FileVersion,
    Fragment,
)
from lancelake.format.frozen import FrozenMap
from lancelake.format.ids import BaseId, FieldId, FragmentId, Version
from lancelake.format.index_meta import MEM_WAL, IndexDetails, IndexMetadata, MergedGeneration
from lancelake.format.manifest import Manifest, WriterVersion
from lancelake.format.operations import MapUpdate, Operation, Replacement, RewriteGroup, Transaction
from lancelake.format.schema import Field, Schema
from lancelake.txn import key_bloom, rules
from lancelake.txn.build import conflicts, next_state
from lancelake.txn.merged_generations import with_progress
from lancelake.txn.options import BuildOptions, TableState

ROWS = 10
VERSION = Version(1)
KEY, VALUE, TEXT, ADDED = FieldId(0), FieldId(1), FieldId(2), FieldId(3)
FIRST, SECOND = FragmentId(0), FragmentId(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """An operation, a short description, and the rows it affects if known."""

    name: str
    operation: Operation
    rows: FrozenMap[FragmentId, tuple[int, ...]] | None = None


def table() -> TableState:
    """Return a table of two fragments with one column file each."""
    schema = Schema(
        fields=(
            Field(name="id", id=KEY, logical_type="int64", nullable=False),
            Field(name="value", id=VALUE, logical_type="int32"),
            Field(name="text", id=TEXT, logical_type="string"),
        )
    )
    manifest = Manifest(
        schema=schema,
        fragments=(fragment(FIRST), fragment(SECOND)),
        version=VERSION,
        data_version=FileVersion.V2_1,
        writer_version=WriterVersion(library="lancelake", version="0.0.0"),
        max_fragment_id=1,
    )
    return TableState(manifest=manifest, indices=(mem_wal(),))


def fragment(fragment_id: FragmentId, *, path: str | None = None) -> Fragment:
    """Return a fragment with all columns in one file."""
    file = data_file(path or f"{fragment_id}.lance", (KEY, VALUE, TEXT))
    return Fragment(id=fragment_id, files=(file,), physical_rows=ROWS)


def data_file(path: str, fields: tuple[FieldId, ...]) -> DataFile:
    """Return a file with these columns."""
    return DataFile(
        path=path,
        fields=fields,
        column_indices=tuple(range(len(fields))),
        file_major_version=2,
        file_minor_version=1,
        file_size_bytes=1000,
    )


def mem_wal(*marks: MergedGeneration) -> IndexMetadata:
    """Return the MemWAL entry of a table."""
    empty = IndexMetadata(
        uuid=_uuid("mem wal"),
        name=MEM_WAL,
        fields=(),
        dataset_version=VERSION,
        details=IndexDetails(type_url="/lance.table.MemWalIndexDetails", value=b""),
    )
    return with_progress(empty, marks)


def index(name: str, field: FieldId, *covered: FragmentId) -> IndexMetadata:
    """Return an index segment over these fragments."""
    return IndexMetadata(
        uuid=_uuid(name),
        name=name,
        fields=(field,),
        dataset_version=VERSION,
        fragment_bitmap=bytes(BitMap(covered).serialize()),
        details=IndexDetails(type_url="/lance.table.BTreeIndexDetails", value=b""),
    )


def without_rows(fragment_id: FragmentId, *rows: int) -> Fragment:
    """Return a fragment from which rows were deleted."""
    deletion = DeletionFile(
        file_type=DeletionFileType.BITMAP,
        read_version=VERSION,
        id=sum(1 << r for r in rows),
        num_deleted_rows=len(rows),
    )
    return replace(fragment(fragment_id), deletion_file=deletion)


def shapes() -> dict[type[Operation], tuple[Example, ...]]:
    """Return the examples by kind of operation."""
    return {
        ops.Append: (Example(name="rows", operation=ops.Append(fragments=(_new("a"),))),),
        ops.Delete: _deletes(),
        ops.Overwrite: _overwrites(),
        ops.CreateIndex: _indices(),
        ops.Rewrite: tuple(_rewrite(i) for i in (FIRST, SECOND)),
        ops.Merge: _merges(),
        ops.Restore: (Example(name="old version", operation=ops.Restore(version=VERSION)),),
        ops.ReserveFragments: (
            Example(name="ids", operation=ops.ReserveFragments(num_fragments=2)),
        ),
        ops.Update: _updates(),
        ops.Project: _projections(),
        ops.UpdateConfig: _settings(),
        ops.DataReplacement: _replacements(),
        ops.UpdateMemWalState: _progress(),
        ops.Clone: (Example(name="copy", operation=_clone()),),
        ops.UpdateBases: tuple(_base(n) for n in ("x", "y")),
    }


def mark(region: str, generation: int) -> MergedGeneration:
    """Return the progress of a region."""
    return MergedGeneration(region_id=_uuid(region), generation=generation)


def _uuid(name: str) -> uuid.UUID:
    return uuid.uuid5(uuid.NAMESPACE_URL, name)


def _new(path: str) -> Fragment:
    return fragment(FragmentId(0), path=f"{path}.lance")


def _deletes() -> tuple[Example, ...]:
    changes = [
        _delete(fragment_id, rows) for fragment_id in (FIRST, SECOND) for rows in ((1, 2), (3, 4))
    ]
    gone = ops.Delete(updated_fragments=(), deleted_fragment_ids=(FIRST,), predicate="all")
    return (*changes, *_unknown_rows(changes), Example(name="fragment 0", operation=gone))


def _unknown_rows(examples: Iterable[Example]) -> tuple[Example, ...]:
    """Return the same changes with only their fragments known."""
    unique = {
        fragment_id: Example(name=f"some rows of fragment {fragment_id}", operation=s.operation)
        for s in examples
        for fragment_id in s.rows or ()
    }
    return tuple(unique.values())


def _delete(fragment_id: FragmentId, rows: tuple[int, ...]) -> Example:
    op = ops.Delete(
        updated_fragments=(without_rows(fragment_id, *rows),),
        deleted_fragment_ids=(),
        predicate="some",
    )
    numbers = ", ".join(str(r) for r in rows)
    name = f"rows {numbers} of fragment {fragment_id}"
    return Example(name=name, operation=op, rows=FrozenMap({fragment_id: rows}))


def _overwrites() -> tuple[Example, ...]:
    op = ops.Overwrite(fragments=(_new("o"),), schema=table().manifest.schema)
    with_config = replace(op, config_upsert_values=FrozenMap({"a": "1"}))
    return (
        Example(name="rows", operation=op),
        Example(name="rows and config a", operation=with_config),
    )


def _indices() -> tuple[Example, ...]:
    by_value = ops.CreateIndex(new_indices=(index("by_value", VALUE, FIRST),))
    by_text = ops.CreateIndex(new_indices=(index("by_text", TEXT, SECOND),))
    removal = ops.CreateIndex(new_indices=(), removed_indices=by_value.new_indices)
    uncovered = replace(by_value.new_indices[0], fragment_bitmap=b"", name="uncovered")
    return (
        Example(name="value over fragment 0", operation=by_value),
        Example(name="text over fragment 1", operation=by_text),
        Example(name="value removed", operation=removal),
        Example(name="unknown coverage", operation=ops.CreateIndex(new_indices=(uncovered,))),
        Example(
            name="MemWAL at 5",
            operation=ops.CreateIndex(new_indices=(mem_wal(mark("r", 5)),)),
        ),
    )


def _rewrite(old: FragmentId) -> Example:
    new = fragment(FragmentId(10 + old), path=f"compacted-{old}.lance")
    group = RewriteGroup(old_fragments=(fragment(old),), new_fragments=(new,))
    return Example(name=f"fragment {old}", operation=ops.Rewrite(groups=(group,)))


def _merges() -> tuple[Example, ...]:
    before = table().manifest
    added = Field(name="added", id=ADDED, logical_type="int32")
    cast = replace(before.schema.fields[1], id=ADDED, logical_type="int64")
    widened = replace(before.schema, fields=(*before.schema.fields, added))
    recast = replace(before.schema, fields=(before.schema.fields[0], cast, before.schema.fields[2]))
    fragments = tuple(
        replace(f, files=(*f.files, data_file(f"added-{f.id}.lance", (ADDED,))))
        for f in before.fragments
    )
    op = ops.Merge(fragments=fragments, schema=widened)
    variant = replace(op, preserves_nullability=True)
    return (
        Example(name="a column", operation=op),
        Example(name="a column, nulls as before", operation=variant),
        Example(name="a cast, nulls as before", operation=replace(variant, schema=recast)),
    )


def _projections() -> tuple[Example, ...]:
    schema = table().manifest.schema
    op = ops.Project(schema=replace(schema, fields=schema.fields[:2]))
    return (
        Example(name="without text", operation=op),
        Example(
            name="without text, nulls as before",
            operation=replace(op, preserves_nullability=True),
        ),
    )


def _updates() -> tuple[Example, ...]:
    rows = tuple(_update(i, r) for i in (FIRST, SECOND) for r in ((1, 2), (3, 4)))
    inserts = ops.Update(new_fragments=(_new("u"),))
    some = key_bloom.build((KEY,), [[pa.array(range(5), pa.int64())]])
    others = key_bloom.build((KEY,), [[pa.array(range(100, 105), pa.int64())]])
    gone = ops.Update(removed_fragment_ids=(FIRST,), new_fragments=(_new("u"),))
    return (
        *rows,
        *_unknown_rows(rows),
        Example(name="fragment 0", operation=gone),
        Example(name="keys 0 to 4", operation=replace(inserts, inserted_rows=some)),
        Example(name="keys 100 to 104", operation=replace(inserts, inserted_rows=others)),
        *(
            Example(
                name=f"generation {m.generation}",
                operation=ops.Update(merged_generations=(m,)),
            )
            for m in (mark("r", 5), mark("r", 6))
        ),
    )


def _update(fragment_id: FragmentId, rows: tuple[int, ...]) -> Example:
    moved = replace(_new(f"u{fragment_id}"), physical_rows=len(rows))
    op = ops.Update(
        updated_fragments=(without_rows(fragment_id, *rows),),
        new_fragments=(moved,),
        fields_for_preserving_frag_bitmap=(VALUE,),
    )
    numbers = ", ".join(str(r) for r in rows)
    name = f"rows {numbers} of fragment {fragment_id}"
    return Example(name=name, operation=op, rows=FrozenMap({fragment_id: rows}))


def _settings() -> tuple[Example, ...]:
    a, b = (MapUpdate(entries=FrozenMap({k: "1"})) for k in ("a", "b"))
    return (
        Example(name="config a", operation=ops.UpdateConfig(config=a)),
        Example(name="config b", operation=ops.UpdateConfig(config=b)),
        Example(name="table metadata a", operation=ops.UpdateConfig(table_metadata=a)),
        Example(name="schema metadata a", operation=ops.UpdateConfig(schema_metadata=a)),
        Example(
            name="metadata of value",
            operation=ops.UpdateConfig(field_metadata=FrozenMap({VALUE: a})),
        ),
    )


def _replacements() -> tuple[Example, ...]:
    cases = ((VALUE, FIRST), (VALUE, SECOND), (TEXT, FIRST))
    return tuple(
        Example(
            name=f"field {field} of fragment {fragment_id}",
            operation=ops.DataReplacement(
                replacements=(
                    Replacement(
                        fragment_id=fragment_id,
                        new_file=data_file(f"r-{field}-{fragment_id}.lance", (field,)),
                    ),
                )
            ),
        )
        for field, fragment_id in cases
    )


def _progress() -> tuple[Example, ...]:
    marks = (mark("r", 5), mark("r", 6), mark("other", 1))
    return tuple(
        Example(
            name=f"generation {m.generation} of {m.region_id.hex[:4]}",
            operation=ops.UpdateMemWalState(merged_generations=(m,)),
        )
        for m in marks
    )


def _clone() -> ops.Clone:
    return ops.Clone(is_shallow=True, ref_name=None, ref_version=VERSION, ref_path="memory:///t")


def _base(name: str) -> Example:
    base = BasePath(id=BaseId(0), name=name, is_dataset_root=False, path=f"memory:///{name}")
    return Example(name=f"base {name}", operation=ops.UpdateBases(new_bases=(base,)))


class PairOutcome(Enum):
    """Outcome for mine; the value is its mark in the printed matrix."""

    OK = "·"
    RETRY = "R"
    REFUSED = "X"


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixCase:
    """One pair of examples and its verdict."""

    mine: str
    theirs: str
    outcome: PairOutcome
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """All pairs of two kinds of operation."""

    mine: type[Operation]
    theirs: type[Operation]
    cases: tuple[MatrixCase, ...]

    @property
    def outcomes(self) -> frozenset[PairOutcome]:
        """Return all outcomes of the pairs."""
        return frozenset(c.outcome for c in self.cases)

    @property
    def mark(self) -> str:
        """Return the marks of all outcomes, the mildest first."""
        return "".join(o.value for o in PairOutcome if o in self.outcomes)

    @property
    def conditions(self) -> tuple[str, ...]:
        """Return the distinct reasons why mine is not committed unchanged."""
        reasons = (f"{c.outcome.value}: {c.reason}" for c in self.cases if c.reason)
        return tuple(dict.fromkeys(reasons))


@cache
def matrix() -> tuple[tuple[Cell, ...], ...]:
    """Check every pair; rows are mine, columns are theirs."""
    examples = shapes()
    committed = {k: tuple((s, _after(s)) for s in each) for k, each in examples.items()}
    return tuple(
        tuple(
            Cell(mine=mine, theirs=theirs, cases=_cases(examples[mine], committed[theirs]))
            for theirs in examples
        )
        for mine in examples
    )


def _cases(
    mine: tuple[Example, ...], theirs: tuple[tuple[Example, TableState], ...]
) -> tuple[MatrixCase, ...]:
    return tuple(_case(one, other, after) for one in mine for other, after in theirs)


def _case(mine: Example, theirs: Example, after: TableState) -> MatrixCase:
    rows: rules.AffectedRows | None = (
        None if mine.rows is None else rules.AffectedRows(dict(mine.rows))
    )
    context = rules.Context(base=table(), theirs_after=after, affected_rows=rows)
    verdict = conflicts(mine.operation, theirs.operation, context)
    outcome, reason = _outcome(verdict)
    return MatrixCase(mine=mine.name, theirs=theirs.name, outcome=outcome, reason=reason)


def _outcome(verdict: rules.Verdict) -> tuple[PairOutcome, str]:
    match verdict:
        case rules.Compatible():
            return PairOutcome.OK, ""
        case rules.Retryable(reason):
            return PairOutcome.RETRY, reason
        case rules.Incompatible(reason):
            return PairOutcome.REFUSED, reason
        case _:
            assert_never(verdict)


def _after(shape: Example) -> TableState:
    """Return the table after an example; a clone creates another table and leaves this one."""
    base = table()
    writer = WriterVersion(library="lancelake", version="0.0.0")
    transaction = Transaction(
        read_version=Version(base.manifest.version), uuid="0", operation=shape.operation
    )
    options = BuildOptions(timestamp_ns=0, writer=writer)
    try:
        return next_state(transaction, base, options, restored=base)
    except InvalidRequestError:
        return base
