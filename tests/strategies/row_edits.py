"""Strategies for row changes, as statements that both implementations run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from tests.strategies.arrow_types import is_bfloat16
from tests.strategies.histories import REPLACEMENTS, predicates, quoted
from tests.strategies.tables import KEY, tables
from tests.strategies.target import Target

KEYS = 30
MERGE_CONDITIONS = (
    None,
    None,
    "target.key % 2 = 0",
    "source.key > 4 AND target.key < 20",
    "source.key = target.key",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """Statements over `ds` that leave their counts in `result`."""

    code: str
    inputs: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    """What only we know."""

    @property
    def statements(self) -> str:
        """The whole program, which needs `lance` and `uri`."""
        return f"ds = lance.dataset(uri)\n{self.code}"

    def run(self, face: Any, uri: str) -> Any:
        """Run with a module that is shaped like pylance."""
        names = {"lance": face, "pa": pa, "uri": uri, **self.inputs, "options": self.options}
        exec(self.statements, names)  # our own statements
        return names["result"]


@st.composite
def edits(draw: DrawFn, schema: pa.Schema, target: Target) -> Edit:
    """Draw a change that fits a schema."""
    maker = draw(st.sampled_from(MAKERS))
    return maker(draw, schema, target)


def _delete(draw: DrawFn, schema: pa.Schema, target: Target) -> Edit:
    where = draw(st.one_of(predicates(KEYS), null_tests(schema)))
    return Edit(code="result = dict(ds.delete(where))", inputs={"where": where})


def _truncate(draw: DrawFn, schema: pa.Schema, target: Target) -> Edit:
    if draw(st.integers(0, 3)):
        return _delete(draw, schema, target)
    return Edit(code="result = ds.truncate_table()")


def _update(draw: DrawFn, schema: pa.Schema, target: Target) -> Edit:
    plain = [f for f in schema if f.type in REPLACEMENTS and not is_bfloat16(f)]
    chosen = draw(
        st.lists(st.sampled_from(plain), min_size=1, max_size=2, unique_by=lambda f: f.name)
    )
    values = {f.name: REPLACEMENTS[f.type] for f in chosen}
    if KEY.name in values:
        # Official Lance lets expressions see values that were set before, in any order.
        values = {KEY.name: "key + 100"}
    where = draw(st.one_of(st.none(), predicates(KEYS), null_tests(schema)))
    return Edit(
        code="result = dict(ds.update(values, where=where, **options))",
        inputs={"values": values, "where": where, "options": {}},
        options=draw(
            st.sampled_from(
                [{"write_mode": mode} for mode in ("auto", "rewrite_rows", "rewrite_columns")]
            )
        ),
    )


def _upsert(draw: DrawFn, schema: pa.Schema, target: Target) -> Edit:
    condition = draw(st.sampled_from(MERGE_CONDITIONS))
    clauses = [".when_matched_update_all(condition)"]
    if draw(st.integers(0, 3)):
        clauses.append(".when_not_matched_insert_all()")
    if draw(st.integers(0, 3)) == 0:
        clauses.append(".when_not_matched_by_source_delete(expr)")
    return _merge(draw, schema, target, clauses, condition=condition)


def _insert_if_new(draw: DrawFn, schema: pa.Schema, target: Target) -> Edit:
    return _merge(draw, schema, target, [".when_not_matched_insert_all()"])


def _delete_matching(draw: DrawFn, schema: pa.Schema, target: Target) -> Edit:
    keys = pa.schema([KEY])
    clauses = [".when_matched_delete()"]
    return _merge(draw, draw(st.sampled_from([schema, keys])), target, clauses)


def _some_columns(draw: DrawFn, schema: pa.Schema, target: Target) -> Edit:
    others = [f.name for f in schema if f.name != KEY.name]
    names = draw(st.lists(st.sampled_from(others), min_size=1, unique=True))
    part = pa.schema([f for f in schema if f.name in {*names, KEY.name}])
    return _merge(draw, part, target, [".when_matched_update_all()"])


def _merge(
    draw: DrawFn,
    schema: pa.Schema,
    target: Target,
    clauses: list[str],
    *,
    condition: str | None = None,
) -> Edit:
    first = draw(st.integers(0, KEYS))
    rows = draw(tables(schema, target, rows=st.integers(1, 8), first_key=first))
    order = draw(st.permutations(range(rows.num_rows)))
    expr = draw(st.one_of(st.none(), predicates(KEYS)))
    return Edit(
        code=f"result = dict(ds.merge_insert('key'){''.join(clauses)}.execute(rows))",
        inputs={"rows": rows.take(order), "condition": condition, "expr": expr},
    )


def null_tests(schema: pa.Schema) -> st.SearchStrategy[str]:
    """Draw conditions on the nulls of a column."""
    column = st.sampled_from([quoted(name) for name in schema.names])
    return st.builds("{} IS {}NULL".format, column, st.sampled_from(["", "NOT "]))


Maker = Callable[[DrawFn, pa.Schema, Target], Edit]
MAKERS: tuple[Maker, ...] = (
    _delete,
    _truncate,
    _update,
    _update,
    _upsert,
    _upsert,
    _upsert,
    _insert_if_new,
    _delete_matching,
    _some_columns,
)
