"""Strategies for column changes, as statements that both implementations run."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from tests.strategies.arrow_types import MEMBER_NAMES, fields, is_bfloat16
from tests.strategies.histories import open_members, quoted
from tests.strategies.row_edits import Edit
from tests.strategies.tables import COLUMN_NAMES, KEY, tables
from tests.strategies.target import Target

NAMES = (*COLUMN_NAMES, "new", "newer", "newest", "other")
COMPUTED = (
    "key * 2 + 1",
    "key",
    "key % 3 = 0",
    "'text'",
    "1",
    "CAST(key AS STRING)",
    "CAST(key AS DOUBLE) / 2",
    "coalesce(key, 5)",
    "nothing + 1",
    "key +",
)
MAPPED = """
def function(batch):
    keys = batch.column("key").to_pylist()
    return pa.record_batch([pa.array([str(k) for k in keys], pa.string())], names=[name])
result = ds.add_columns(function, read_columns=["key"], batch_size=size)
"""
UPDATED = """
fragments = ds.get_fragments()
fragment = fragments[position % len(fragments)]
made, changed, offsets = fragment.update_columns(rows, "key", with_offsets=True)
update = lance.LanceOperation.Update(
    updated_fragments=[made],
    fields_modified=changed,
    update_mode="rewrite_columns",
    updated_fragment_offsets={fragment.fragment_id: offsets},
)
lance.LanceDataset.commit(uri, update, read_version=ds.version)
result = changed
"""
WIDENED = """
made = [fragment.merge_columns({name: sql}) for fragment in ds.get_fragments()]
merge = lance.LanceOperation.Merge([fragment for fragment, _ in made], made[0][1])
lance.LanceDataset.commit(uri, merge, read_version=ds.version)
result = None
"""
_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint32(), pa.uint64())
_FLOATS = (pa.float32(), pa.float64())
_TEXTS = (pa.string(), pa.large_string())
_BYTES = (pa.binary(), pa.large_binary())
_KINDS = (_INTEGERS, _FLOATS, _TEXTS, _BYTES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Now:
    """What the next change has to fit."""

    schema: pa.Schema
    rows: int
    target: Target


@st.composite
def column_changes(draw: DrawFn, now: Now) -> Edit:
    """Draw a change that fits a table, or nearly so."""
    maker = draw(st.sampled_from(MAKERS))
    return maker(draw, now)


def _compute(draw: DrawFn, now: Now) -> Edit:
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=2, unique=True))
    columns = {name: draw(st.sampled_from(COMPUTED)) for name in names}
    return Edit(code="result = ds.add_columns(columns)", inputs={"columns": columns})


def _map(draw: DrawFn, now: Now) -> Edit:
    size = draw(st.sampled_from([None, 1, 2, 100]))
    return Edit(code=MAPPED, inputs={"name": draw(st.sampled_from(NAMES)), "size": size})


def _stream(draw: DrawFn, now: Now) -> Edit:
    count = now.rows + draw(st.sampled_from([0, 0, 0, 0, 1, -1]))
    rows = draw(tables(_new_schema(draw, now), now.target, rows=st.just(max(0, count))))
    return Edit(code="result = ds.add_columns(rows)", inputs={"rows": rows})


def _nulls(draw: DrawFn, now: Now) -> Edit:
    if not now.target.adds_null_columns:
        return _compute(draw, now)
    schema = pa.schema([_field(draw, now, draw(st.sampled_from(NAMES)))])
    return Edit(code="result = ds.add_columns(schema)", inputs={"schema": schema})


def _members(draw: DrawFn, now: Now) -> Edit:
    structs = [f for f in now.schema if open_members(f)]
    if not structs:
        return _nulls(draw, now)
    field = draw(st.sampled_from(structs))
    taken = {member.name for member in open_members(field)}
    free = [name for name in MEMBER_NAMES if name not in taken]
    more = pa.struct([pa.field(draw(st.sampled_from(free)), pa.int32())])
    schema = pa.schema([pa.field(field.name, more)])
    return Edit(code="result = ds.add_columns(schema)", inputs={"schema": schema})


def _drop(draw: DrawFn, now: Now) -> Edit:
    paths = draw(st.lists(st.sampled_from(_paths(now)), min_size=1, max_size=2, unique=True))
    return Edit(code="result = ds.drop_columns(paths)", inputs={"paths": paths})


def _rename(draw: DrawFn, now: Now) -> Edit:
    path = draw(st.sampled_from(_paths(now)))
    change = {"path": path, "name": _free_sibling(draw, now, path)}
    return Edit(code="result = ds.alter_columns(change)", inputs={"change": change})


def _nullability(draw: DrawFn, now: Now) -> Edit:
    # Official finds no nulls in columns of the null type, and makes them non-nullable.
    paths = _paths(now, with_null_type=False)
    change = {"path": draw(st.sampled_from(paths)), "nullable": draw(st.booleans())}
    return Edit(code="result = ds.alter_columns(change)", inputs={"change": change})


def _cast(draw: DrawFn, now: Now) -> Edit:
    fits = [(f.name, kind) for f in now.schema for kind in _KINDS if f.type in kind]
    fits = [(name, kind) for name, kind in fits if _may_be_cast(now.schema.field(name))]
    if not fits:
        return _nullability(draw, now)
    name, kind = draw(st.sampled_from(fits))
    to = pa.schema([pa.field("to", draw(st.sampled_from(kind)))])
    code = "result = ds.alter_columns({'path': path, 'data_type': to.field(0).type, **rest})"
    rest = draw(st.sampled_from([{}, {}, {"name": "cast"}]))
    return Edit(code=code, inputs={"path": quoted(name), "to": to, "rest": rest})


def _merge(draw: DrawFn, now: Now) -> Edit:
    schema = pa.schema([KEY, *_new_schema(draw, now)])
    first = draw(st.integers(0, 8))
    rows = draw(tables(schema, now.target, rows=st.integers(1, 12), first_key=first))
    order = draw(st.permutations(range(rows.num_rows)))
    return Edit(code="result = ds.merge(rows, 'key')", inputs={"rows": rows.take(order)})


def _update(draw: DrawFn, now: Now) -> Edit:
    others = [f for f in now.schema if f.name != KEY.name and not _is_special(f)]
    if not others or not now.rows:
        return _merge(draw, now)
    chosen = draw(st.lists(st.sampled_from(others), min_size=1, max_size=2, unique_by=_name))
    rows = draw(tables(pa.schema([KEY, *chosen]), now.target, rows=st.integers(1, 12)))
    inputs = {"rows": rows, "position": draw(st.integers(0, 5))}
    return Edit(code=UPDATED, inputs=inputs)


def _widen_fragments(draw: DrawFn, now: Now) -> Edit:
    if not now.rows:
        return _compute(draw, now)
    name = draw(st.sampled_from(NAMES))
    return Edit(code=WIDENED, inputs={"name": name, "sql": draw(st.sampled_from(COMPUTED[:5]))})


MAKERS = (
    _compute,
    _map,
    _stream,
    _nulls,
    _members,
    _drop,
    _rename,
    _nullability,
    _cast,
    _merge,
    _update,
    _widen_fragments,
)


def _new_schema(draw: DrawFn, now: Now) -> pa.Schema:
    """Draw columns, most of which the table does not have."""
    free = [name for name in NAMES if name not in now.schema.names]
    pool = free if draw(st.integers(0, 7)) else list(NAMES)
    names = draw(st.lists(st.sampled_from(pool), min_size=1, max_size=2, unique=True))
    metadata = draw(st.sampled_from([None, None, {b"owner": b"other", b"more": b"1"}]))
    return pa.schema([_field(draw, now, name) for name in names], metadata=metadata)


def _field(draw: DrawFn, now: Now, name: str) -> pa.Field:
    """Draw a column that can be new: types on which release 4 crashes are not offered."""
    return draw(fields(now.target, name).filter(lambda f: "tz=+" not in str(f.type)))


def _paths(now: Now, *, with_null_type: bool = True) -> list[str]:
    """Return columns but for the key, and members of structs."""
    found: list[tuple[str, pa.Field]] = []
    for field in now.schema:
        if field.name != KEY.name:
            found.append((quoted(field.name), field))
            members = open_members(field)
            found += [(f"{quoted(field.name)}.{quoted(m.name)}", m) for m in members]
    fits = [path for path, field in found if with_null_type or not pa.types.is_null(field.type)]
    return ["nothing", *fits]


def _free_sibling(draw: DrawFn, now: Now, path: str) -> str:
    """Draw a name; releases let two members have the same one, which makes a table unreadable."""
    for field in now.schema:
        members = open_members(field)
        if any(path == f"{quoted(field.name)}.{quoted(m.name)}" for m in members):
            taken = {m.name for m in members}
            return draw(st.sampled_from([n for n in MEMBER_NAMES if n not in taken]))
    return draw(st.sampled_from(NAMES))


def _may_be_cast(field: pa.Field) -> bool:
    return not is_bfloat16(field) and field.name != KEY.name


def _is_special(field: pa.Field) -> bool:
    return pa.types.is_null(field.type) or isinstance(field.type, pa.BaseExtensionType)


def _name(field: pa.Field) -> str:
    return str(field.name)
