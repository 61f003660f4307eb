"""The same merges give the same table, wherever the rows of their source are."""

from __future__ import annotations

import tempfile
from dataclasses import fields
from pathlib import Path
from random import Random

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import lancelake.pylance as lance
from lancelake.commit.snapshot import Snapshot
from lancelake.engine.port import Engine
from lancelake.errors import InvalidRequestError
from lancelake.format.frozen import FrozenMap
from lancelake.memwal.merge import merge_generations
from lancelake.memwal.setup import bucketed, initialize
from lancelake.memwal.table_writer import TableWriter
from lancelake.table.merge.clauses import (
    DeleteRow,
    Duplicates,
    InsertValues,
    MergeSpec,
    UpdateSet,
)
from lancelake.table.merge.run import merge
from tests.support.elsewhere import Elsewhere
from tests.support.memwal_tables import INLINE, newest
from tests.support.merge_histories import (
    History,
    Merge,
    NewColumn,
    Upserts,
    content,
    expected,
    random_history,
    table_of,
)


def written(history: History, uri: Path, *, is_stable: bool) -> Snapshot:
    lance.write_dataset(history.table, uri, max_rows_per_file=5, enable_stable_row_ids=is_stable)
    return newest(uri)


def apply_merge(base: Snapshot, step: Merge, engine: Engine | None = None) -> None:
    named = {each.name: getattr(step.clauses, each.name) for each in fields(step.clauses)}
    adds = set(step.columns) - set(base.manifest.schema.names)
    spec = MergeSpec(on=("id",), duplicates=Duplicates.INSERT_ALL, adds_columns=bool(adds), **named)
    try:
        merge(base, step.source.to_reader(), spec, engine=engine)
    except InvalidRequestError as error:
        assert "Ambiguous" in str(error)


def apply_upserts(base: Snapshot, step: Upserts) -> None:
    names = base.manifest.schema.names
    gone = [{"id": key} for key in {*step.gone}]
    rows = table_of([*step.newest, *gone], names)
    marks = [False] * len(step.newest) + [True] * len(gone)
    source = rows.append_column("gone", pa.array(marks))
    values = FrozenMap({name: f"source.{name}" for name in names})
    spec = MergeSpec(
        on=("id",),
        matched=(DeleteRow(condition="source.gone"), UpdateSet(values=values)),
        not_matched=(InsertValues(values=values, condition="NOT source.gone"),),
    )
    merge(base, source.to_reader(), spec)


def add_column(uri: Path) -> None:
    lance.dataset(uri).add_columns(pa.field("added", pa.int64()))


def rows_of(uri: Path) -> pa.Table:
    return lance.dataset(uri).to_table()


@given(chance=st.randoms(use_true_random=False), has_key=st.booleans(), is_stable=st.booleans())
def test_rows_in_memory(chance: Random, has_key: bool, is_stable: bool) -> None:
    history = random_history(chance, has_key=has_key)
    with tempfile.TemporaryDirectory() as folder:
        uri = Path(folder) / "t"
        written(history, uri, is_stable=is_stable)
        for step, wanted in zip(history.steps, expected(history), strict=True):
            if isinstance(step, NewColumn):
                add_column(uri)
            elif isinstance(step, Merge):
                apply_merge(newest(uri), step, Elsewhere() if chance.random() < 0.3 else None)
            else:
                apply_upserts(newest(uri), step)
            assert content(rows_of(uri)) == wanted


@given(chance=st.randoms(use_true_random=False), is_stable=st.booleans(), is_far=st.booleans())
def test_generations_of_a_mem_wal(chance: Random, is_stable: bool, is_far: bool) -> None:
    """Some upserts are merged together; other merges come in between."""
    history = random_history(chance, has_key=True)
    engine = Elsewhere() if is_far else None
    with tempfile.TemporaryDirectory() as folder:
        uri = Path(folder) / "t"
        base = written(history, uri, is_stable=is_stable)
        initialize(base, bucketed(base, "id", chance.randint(1, 3)))
        for step, wanted in zip(history.steps, expected(history), strict=True):
            if isinstance(step, NewColumn):
                add_column(uri)
            elif isinstance(step, Merge):
                merge_generations(newest(uri), engine=engine)
                apply_merge(newest(uri), step)
            else:
                put(newest(uri), step)
            if chance.random() < 0.5:
                merge_generations(newest(uri), engine=engine)
            assert content(lance.dataset(uri).wal.to_table()) == wanted
        merge_generations(newest(uri), engine=engine)
        assert content(rows_of(uri)) == wanted


def put(base: Snapshot, step: Upserts) -> None:
    with TableWriter(base, INLINE) as writer:
        writer.put(table_of(step.rows, base.manifest.schema.names).cast(base_schema(base)))
        if step.gone:
            writer.delete(pa.table({"id": step.gone}))


def base_schema(base: Snapshot) -> pa.Schema:
    return lance.dataset(base.location.uri).schema
