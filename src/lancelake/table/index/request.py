"""Request for an index, and the rows it is built from."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa
from pyroaring import BitMap

from lancelake import errors
from lancelake.commit.snapshot import Snapshot
from lancelake.data.fragment_reader import physical_rows
from lancelake.engine.port import Stages
from lancelake.format.ids import FieldId, FragmentId
from lancelake.format.index_meta import IndexMetadata
from lancelake.index.kind import BuildInput, IdKind, IndexKind, Order, Parameters, indexed_type
from lancelake.index.kinds import kind_named
from lancelake.index.sort import row_schema, value_sorted
from lancelake.index.text.text_columns import DocumentColumn, find_text_column, text_column_of
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest
from lancelake.scan.stream import run

_RESERVED = "__lance"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexRequest:
    """An index to be built; without a name it is named after its column."""

    column: str
    kind: str
    name: str | None = None
    replace: bool = True
    train: bool = True
    fragment_ids: tuple[int, ...] | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexTarget:
    """A column of a version, and the kind of its index."""

    kind: IndexKind
    path: str
    field_id: FieldId
    dtype: pa.DataType
    texts: DocumentColumn | None = None
    """Where documents are found, for an index of texts."""


def resolve(base: Snapshot, request: IndexRequest) -> IndexTarget:
    """Find the column of a request, and refuse a kind that does not index it."""
    kind = kind_named(request.kind)
    target = column_target(base, request.column, kind)
    is_stable = base.manifest.has_stable_row_ids
    # Releases that read version 0 take its ids for stable ones.
    if is_stable and kind.stored_ids(0, has_stable_row_ids=True) is IdKind.ADDRESS:
        raise errors.UnsupportedError(
            f"{kind.name} stores row addresses, and older releases of Lance would silently lose "
            "rows of a table with stable row ids",
            table=base.location.uri,
            action="Use BTREE or BITMAP.",
        )
    return target


def column_target(base: Snapshot, column: str, kind: IndexKind) -> IndexTarget:
    """Return a column as the target of an index of a kind."""
    schema = base.manifest.schema
    if kind.has_documents:
        return _text_target(base, column, kind)
    trail = schema.find(column)
    if trail is None or any(parent.logical_type != "struct" for parent in trail[:-1]):
        raise _unknown_column(base, column)
    path = schema.path_of(trail[-1].id) or column
    dtype = indexed_type(trail[-1])
    target = IndexTarget(kind=kind, path=path, field_id=trail[-1].id, dtype=dtype)
    return _ensure_accepted(base, column, target)


def entry_path(base: Snapshot, entry: IndexMetadata, kind: IndexKind) -> str | None:
    """Return the path of the column of an existing index; None if the table has lost it."""
    schema, field_id = base.manifest.schema, entry.fields[0] if entry.fields else -1
    texts = text_column_of(schema, field_id) if kind.has_documents else None
    return schema.path_of(field_id) if texts is None else texts.path


def _text_target(base: Snapshot, column: str, kind: IndexKind) -> IndexTarget:
    texts = find_text_column(base.manifest.schema, column)
    if texts is None:
        raise _unknown_column(base, column)
    field_id = texts.trail[-1].id
    target = IndexTarget(
        kind=kind, path=texts.path, field_id=field_id, dtype=texts.dtype, texts=texts
    )
    return _ensure_accepted(base, column, target)


def _ensure_accepted(base: Snapshot, column: str, target: IndexTarget) -> IndexTarget:
    if not target.kind.accepts(target.dtype):
        problem = f"{target.kind.name} does not index column {column!r} of type {target.dtype}"
        raise errors.ColumnTypeError(problem, table=base.location.uri, column=column)
    return target


def _unknown_column(base: Snapshot, column: str) -> errors.ColumnNotFoundError:
    known = ", ".join(base.manifest.schema.names)
    problem = f"column {column!r} does not exist; the table has: {known}"
    return errors.ColumnNotFoundError(problem, table=base.location.uri, column=column)


def stored_ids(base: Snapshot, kind: IndexKind) -> IdKind:
    """Return which row references a new segment of a version of a table stores."""
    is_stable = base.manifest.has_stable_row_ids
    version = kind.new_version(has_stable_row_ids=is_stable)
    return kind.stored_ids(version, has_stable_row_ids=is_stable)


def chosen_name(base: Snapshot, request: IndexRequest, target: IndexTarget) -> str:
    """Return the name of a new index: the one that was asked for, or one that is free."""
    if request.name is not None:
        ensure_name(base, request.name)
        return request.name
    default = f"{target.path}_idx"
    numbered = (f"{default}_{number}" for number in itertools.count(2))
    taken = {i.name for i in base.indices if i.fields != (target.field_id,)}
    return next(name for name in itertools.chain([default], numbered) if name not in taken)


def ensure_name(base: Snapshot, name: str) -> None:
    """Refuse a name that no index may have."""
    if not name or name.startswith(_RESERVED):
        problem = f"{name!r} cannot be the name of an index"
        raise errors.InvalidRequestError(problem, table=base.location.uri)


def replaced_entries(
    base: Snapshot, name: str, target: IndexTarget, *, replace: bool
) -> tuple[IndexMetadata, ...]:
    """Return the segments that a new index replaces."""
    entries = tuple(i for i in base.indices if i.name == name)
    table = base.location.uri
    if any(i.fields != (target.field_id,) for i in entries):
        problem = f"index {name!r} already exists with different fields"
        raise errors.IndexExistsError(problem, table=table, action="Choose another name.")
    if entries and not replace:
        problem = f"index {name!r} already exists"
        action = "Choose another name, or replace it."
        raise errors.IndexExistsError(problem, table=table, action=action)
    return entries


def entries_named(base: Snapshot, name: str) -> tuple[IndexMetadata, ...]:
    """Return the segments of an index; raise IndexNotFoundError if there are none."""
    entries = tuple(i for i in base.indices if i.name == name and not i.is_system)
    if entries:
        return entries
    known = ", ".join(sorted({i.name for i in base.indices if not i.is_system})) or "none"
    problem = f'Index "{name}" not found; there are: {known}'
    raise errors.IndexNotFoundError(problem, table=base.location.uri, version=base.version)


def chosen_fragments(base: Snapshot, wanted: tuple[int, ...] | None) -> BitMap:
    """Return the fragments that a request names, or all."""
    existing = BitMap(fragment.id for fragment in base.manifest.fragments)
    if wanted is None:
        return existing
    missing = sorted(set(wanted) - set(existing))
    if missing:
        problem = f"fragment {missing[0]} is not part of version {base.version}"
        raise errors.InvalidRequestError(problem, table=base.location.uri, fragment=missing[0])
    return BitMap(wanted)


# Batches of narrow values are larger: the cost of handing over a batch does not depend on its size.
_NARROW_BITS = 64
_NARROW_ROWS = 1 << 16

RowsRead = Callable[[int], None]
"""Called with the number of rows of each batch that was read."""


def build_input(
    base: Snapshot,
    target: IndexTarget,
    fragments: BitMap,
    stored: IdKind,
    *,
    parameters: Parameters | None = None,
    on_rows: RowsRead | None = None,
    stages: Stages | None = None,
) -> BuildInput:
    """Return the live rows of fragments in the order that the kind of an index asks for."""
    batches: Iterable[pa.RecordBatch] = _Rows(base, target, fragments, stored, on_rows)
    if not fragments:
        batches = ()
    elif target.kind.order is Order.VALUE:
        batches = value_sorted(target.dtype, batches)
    return BuildInput(
        dtype=target.dtype,
        batches=batches,
        parameters=parameters or {},
        num_rows=sum(
            physical_rows(base.files, base.manifest_at, f)
            for f in base.manifest.fragments
            if f.id in fragments
        ),
        stages=stages or Stages(),
        index_version=target.kind.new_version(has_stable_row_ids=base.manifest.has_stable_row_ids),
    )


class _Rows:
    """Live rows of fragments, which can be read several times; progress counts the first time."""

    def __init__(
        self,
        base: Snapshot,
        target: IndexTarget,
        fragments: BitMap,
        stored: IdKind,
        on_rows: RowsRead | None,
    ) -> None:
        self._read = partial(column_rows, base, target, fragments, stored)
        self._on_rows = on_rows

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        on_rows, self._on_rows = self._on_rows, None
        return self._read(on_rows)


def column_rows(
    base: Snapshot,
    target: IndexTarget,
    fragments: BitMap,
    stored: IdKind,
    on_rows: RowsRead | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the live rows of fragments in their order."""
    schema = row_schema(target.dtype)
    is_address = stored is IdKind.ADDRESS
    request = ScanRequest(
        columns=(target.path if target.texts is None else target.texts.source,),
        with_row_address=is_address,
        with_row_id=not is_address,
        fragment_ids=tuple(FragmentId(i) for i in fragments),
        batch_size=_NARROW_ROWS if _is_narrow(target.dtype) else None,
    )
    with run(plan(base, request)) as reader:
        for batch in reader:
            values = batch.column(0)
            if target.texts is not None:
                values = target.texts.documents(values)
            elif isinstance(values, pa.ExtensionArray):
                values = values.storage
            yield pa.RecordBatch.from_arrays([values, batch.column(1)], schema=schema)
            if on_rows is not None:
                on_rows(batch.num_rows)


def _is_narrow(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_primitive(dtype)) and dtype.bit_width <= _NARROW_BITS
