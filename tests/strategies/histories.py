"""Strategy for table histories that follows the schema through every step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pyarrow as pa
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from tests.strategies import history as h
from tests.strategies.arrow_types import MEMBER_NAMES, fields, is_bfloat16
from tests.strategies.tables import COLUMN_NAMES, KEY, MAX_ROWS, schemas, tables
from tests.strategies.target import Target

WIDER = {
    pa.int8(): pa.int16(),
    pa.int16(): pa.int64(),
    pa.int32(): pa.int64(),
    pa.uint8(): pa.uint32(),
    pa.float32(): pa.float64(),
    pa.string(): pa.large_string(),
    pa.binary(): pa.large_binary(),
}
COMPUTED = {
    "key + 1": pa.field("c", pa.int64(), nullable=False),
    "'constant'": pa.field("c", pa.string(), nullable=False),
    "key > 3": pa.field("c", pa.bool_(), nullable=False),
    "cast(key as double)": pa.field("c", pa.float64(), nullable=False),
}
REPLACEMENTS = {
    pa.string(): "'changed'",
    pa.int32(): "7",
    pa.int64(): "key * 10",
    pa.float64(): "0.5",
    pa.bool_(): "true",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    """What the next step has to fit: the schema, and the keys and tags not used so far."""

    schema: pa.Schema
    next_key: int
    next_tag: int = 0


Draft = tuple[h.Step, _State]
Maker = Callable[[DrawFn, Target, _State], Draft | None]


@st.composite
def histories(draw: DrawFn, target: Target, *, max_steps: int = 6) -> h.History:
    """Draw the creation of a table and up to `max_steps` steps that fit one after another."""
    schema = draw(schemas(target))
    state = _State(schema=schema, next_key=0)
    table, state = _rows(draw, target, state, schema)
    states = [state]
    steps: list[h.Step] = []
    for _ in range(draw(st.integers(0, max_steps))):
        step, state = _next(draw, target, states)
        steps.append(step)
        states.append(state)
    return h.History(
        target=target,
        table=table,
        stable_row_ids=draw(st.booleans()),
        rows_per_file=draw(st.sampled_from([3, 5, 1000])) if target.splits_files else 1000,
        v2_manifest_paths=draw(st.booleans()),
        steps=tuple(steps),
    )


def predicates(keys: int) -> st.SearchStrategy[str]:
    """Draw conditions on the key column for keys below a bound."""
    bound = st.integers(0, max(keys, 1))
    return st.one_of(
        st.builds("key < {}".format, bound),
        st.builds("key >= {}".format, bound),
        st.builds("key = {}".format, bound),
        st.builds("key % {} = 0".format, st.integers(2, 4)),
        st.builds("key IN ({}, {}, 999)".format, bound, bound),
        st.builds("key BETWEEN {} AND {}".format, bound, bound),
    )


def _next(draw: DrawFn, target: Target, states: list[_State]) -> Draft:
    maker = draw(st.sampled_from(MAKERS))
    if maker is _delete and draw(st.booleans()):
        draft = _restore(draw, target, states)
    else:
        draft = maker(draw, target, states[-1])
    return draft if draft is not None else _delete(draw, target, states[-1])


def _restore(draw: DrawFn, target: Target, states: list[_State]) -> Draft | None:
    earlier = draw(st.integers(0, len(states) - 1))
    before = states[earlier]
    if not target.restores_dictionaries and "dictionary" in str(before.schema.types):
        return None
    return h.Restore(step=earlier), replace(states[-1], schema=before.schema)


def _rows(
    draw: DrawFn, target: Target, state: _State, schema: pa.Schema
) -> tuple[pa.Table, _State]:
    table = draw(tables(schema, target, first_key=state.next_key))
    return table, replace(state, next_key=state.next_key + table.num_rows)


def _append(draw: DrawFn, target: Target, state: _State) -> Draft:
    schema = state.schema
    if target.appends_column_subsets:
        left_out = [f.name for f in schema if f.nullable and draw(st.integers(0, 4)) == 0]
        schema = pa.schema([f for f in schema if f.name not in left_out], schema.metadata)
    table, after = _rows(draw, target, state, schema)
    return h.Append(table=table), after


def _overwrite(draw: DrawFn, target: Target, state: _State) -> Draft:
    schema = draw(st.one_of(st.just(state.schema), schemas(target)))
    table, after = _rows(draw, target, state, schema)
    return h.Overwrite(table=table), replace(after, schema=schema)


def _merge_insert(draw: DrawFn, target: Target, state: _State) -> Draft:
    schema = state.schema
    is_partial = target.merges_column_subsets and draw(st.booleans())
    if is_partial:
        chosen = {f.name for f in schema if draw(st.booleans())} | {KEY.name}
        schema = pa.schema([f for f in schema if f.name in chosen], schema.metadata)
    first = draw(st.integers(0, state.next_key))
    rows = st.integers(1, MAX_ROWS)
    table = draw(tables(schema, target, rows=rows, first_key=first))
    after = replace(state, next_key=max(state.next_key, first + table.num_rows))
    inserts = schema == state.schema
    return h.MergeInsert(table=table, inserts=inserts), after


def _delete(draw: DrawFn, target: Target, state: _State) -> Draft:
    return h.Delete(predicate=draw(predicates(state.next_key))), state


def _update(draw: DrawFn, target: Target, state: _State) -> Draft | None:
    candidates = [f for f in _plain_columns(state.schema) if f.type in REPLACEMENTS]
    if not candidates:
        return None
    field = draw(st.sampled_from(candidates))
    where = draw(predicates(state.next_key))
    step = h.Update(column=field.name, expression=REPLACEMENTS[field.type], where=where)
    return step, state


def _add_column(draw: DrawFn, target: Target, state: _State) -> Draft | None:
    name = _free_name(draw, state.schema)
    if name is None:
        return None
    expression = draw(st.sampled_from(sorted(COMPUTED)))
    field = COMPUTED[expression].with_name(name)
    step = h.AddColumn(name=name, expression=expression)
    return step, replace(state, schema=state.schema.append(field))


def _add_null_column(draw: DrawFn, target: Target, state: _State) -> Draft | None:
    name = _free_name(draw, state.schema)
    if name is None or not target.adds_null_columns:
        return None
    field = draw(fields(target, name, may_be_required=False))
    if not _is_nullable_throughout(field):
        return None
    step = h.AddNullColumn(field=field)
    return step, replace(state, schema=state.schema.append(field))


def _drop_column(draw: DrawFn, target: Target, state: _State) -> Draft | None:
    columns = [f for f in state.schema if f.name != KEY.name]
    if len(columns) < 2:
        return None
    field = draw(st.sampled_from(columns))
    members = open_members(field)
    inside: bool = draw(st.booleans())
    if len(members) > 1 and inside:
        member = draw(st.sampled_from(members))
        rest = pa.struct([m for m in members if m.name != member.name])
        after = _with_field(state.schema, field.name, field.with_type(rest))
        step = h.DropColumn(path=f"{quoted(field.name)}.{quoted(member.name)}")
        return step, replace(state, schema=after)
    after = state.schema.remove(state.schema.get_field_index(field.name))
    return h.DropColumn(path=quoted(field.name)), replace(state, schema=after)


def _rename_column(draw: DrawFn, target: Target, state: _State) -> Draft | None:
    columns = [f for f in state.schema if f.name != KEY.name]
    name = _free_name(draw, state.schema)
    if not columns or name is None:
        return None
    field = draw(st.sampled_from(columns))
    members = open_members(field)
    inside: bool = draw(st.booleans())
    if members and inside:
        free = [n for n in MEMBER_NAMES if n not in {m.name for m in members}]
        member, new = draw(st.sampled_from(members)), draw(st.sampled_from(free))
        renamed = pa.struct([m.with_name(new) if m.name == member.name else m for m in members])
        after = _with_field(state.schema, field.name, field.with_type(renamed))
        path = f"{quoted(field.name)}.{quoted(member.name)}"
        return h.RenameColumn(path=path, name=new), replace(state, schema=after)
    after = _with_field(state.schema, field.name, field.with_name(name))
    step = h.RenameColumn(path=quoted(field.name), name=name)
    return step, replace(state, schema=after)


def _cast_column(draw: DrawFn, target: Target, state: _State) -> Draft | None:
    candidates = [f for f in _plain_columns(state.schema) if f.type in WIDER]
    if not candidates:
        return None
    field = draw(st.sampled_from(candidates))
    wider = WIDER[field.type]
    after = _with_field(state.schema, field.name, field.with_type(wider))
    step = h.CastColumn(path=quoted(field.name), data_type=wider)
    return step, replace(state, schema=after)


def _compact(draw: DrawFn, target: Target, state: _State) -> Draft:
    return h.Compact(), state


def _index_key(draw: DrawFn, target: Target, state: _State) -> Draft:
    return h.IndexKey(kind=draw(st.sampled_from(["BTREE", "BITMAP"]))), state


def _tag(draw: DrawFn, target: Target, state: _State) -> Draft:
    name = f"v{state.next_tag}{draw(st.sampled_from(['', '-rc', '.1', '_x']))}"
    return h.Tag(name=name), replace(state, next_tag=state.next_tag + 1)


def _set_config(draw: DrawFn, target: Target, state: _State) -> Draft:
    value = draw(st.text("xyz", max_size=3))
    return h.SetConfig(key=draw(st.sampled_from(["app.owner", "note"])), value=value), state


MAKERS: tuple[Maker, ...] = (
    _append,
    _append,
    _delete,
    _delete,
    _merge_insert,
    _update,
    _add_column,
    _add_null_column,
    _drop_column,
    _rename_column,
    _cast_column,
    _compact,
    _overwrite,
    _index_key,
    _tag,
    _set_config,
)


def quoted(name: str) -> str:
    """Quote what is not a plain word, as field paths want it."""
    plain = name.isascii() and name.isidentifier() and name != "select"
    return name if plain else f"`{name}`"


def _free_name(draw: DrawFn, schema: pa.Schema) -> str | None:
    free = [n for n in (*COLUMN_NAMES, "extra", "More") if n not in schema.names]
    return draw(st.sampled_from(free)) if free else None


def _plain_columns(schema: pa.Schema) -> list[pa.Field]:
    """Return columns that are what their Arrow type says: not the key, no extension."""
    return [f for f in schema if f.name != KEY.name and not is_bfloat16(f)]


def _is_nullable_throughout(field: pa.Field) -> bool:
    """True where the field and everything below may be null, as a column without data must."""
    below = [field.type.field(i) for i in range(field.type.num_fields)]
    return bool(field.nullable) and all(_is_nullable_throughout(f) for f in below)


def open_members(field: pa.Field) -> list[pa.Field]:
    """Return the members of a struct that is stored member by member."""
    is_open = pa.types.is_struct(field.type) and b"lance-encoding:packed" not in (
        field.metadata or {}
    )
    return list(field.type) if is_open else []


def _with_field(schema: pa.Schema, name: str, field: pa.Field) -> pa.Schema:
    return schema.set(schema.get_field_index(name), field)
