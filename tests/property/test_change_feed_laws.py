"""Rows keep their lineage, and changes lead from each version to each later one."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
from hypothesis import given

import lancelake.pylance
from tests.strategies.row_histories import PASTS, Taken
from tests.support.row_lineage import CREATED, UPDATED, Face, Past, Row, learn_ids

ours: Face = lancelake.pylance
official: Face = lance
FEED = ("_rowid", "_change_type", "_commit_version", "_commit_timestamp")


def lived(path: Path, steps: list[Taken]) -> Past:
    """Make a table with a past, checking the lineage of its rows after each step."""
    past = Past(str(path / "table.lance"))
    used: set[int] = set()
    for is_ours, step in steps:
        before = past.version
        step(ours if is_ours else official, past)
        if past.version > before:
            check_lineage(past, used)
    return past


def check_lineage(past: Past, used: set[int]) -> None:
    dataset = ours.dataset(past.uri)
    assert dataset.version == past.version
    names = ["k", CREATED, UPDATED]
    found = {r["k"]: r for r in dataset.to_table(columns=names, with_row_id=True).to_pylist()}
    fresh = {k for k, row in past.model.items() if row.row_id is None}
    assert {found[k]["_rowid"] for k in fresh}.isdisjoint(used)
    learn_ids(past, found)
    used.update(row["_rowid"] for row in found.values())
    expected = {k: (r.row_id, r.created, r.updated) for k, r in past.model.items()}
    assert {k: (r["_rowid"], r[CREATED], r[UPDATED]) for k, r in found.items()} == expected


def replayed(state: dict[int, Row], changes: list[Row]) -> dict[int, Row]:
    """Apply changes to rows by id; each must find what it says it found."""
    state = dict(state)
    for change in changes:
        values = {n: v for n, v in change.items() if n not in FEED}
        number, kind = change["_rowid"], change["_change_type"]
        match kind:
            case "insert":
                assert number not in state
                state[number] = values
            case "update_preimage":
                assert state[number] == values
            case "update_postimage":
                state[number] = values
            case "delete":
                assert state.pop(number) == values
            case _:
                raise AssertionError(kind)
    return state


def by_id(table: pa.Table) -> list[Row]:
    return sorted(table.to_pylist(), key=lambda row: int(row["_rowid"]))


def version_rows(past: Past, version: int) -> dict[int, Row]:
    table = ours.dataset(past.uri, version=version).to_table(with_row_id=True)
    return {row.pop("_rowid"): row for row in table.to_pylist()}


def feed(past: Past, begin: int, end: int, **options: Any) -> list[Row]:
    reader: pa.RecordBatchReader = ours.dataset(past.uri).changes(begin, end, **options)
    return list(reader.read_all().to_pylist())


@given(PASTS)
def test_changes_lead_from_each_version_to_each_later_one(steps: list[Taken]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        past = lived(Path(folder), steps)
        for end in {past.version, (past.version + 1) // 2}:
            everything = feed(past, 0, end)
            wanted = version_rows(past, end)
            for begin in range(end + 1):
                start = [c for c in everything if c["_commit_version"] <= begin]
                changes = [c for c in everything if c["_commit_version"] > begin]
                state = replayed({}, start)
                assert set(state) == set(version_rows(past, begin) if begin else {})
                assert feed(past, begin, end) == changes
                assert replayed(state, changes) == wanted
                net = feed(past, begin, end, net=True)
                assert replayed(state, net) == wanted
                assert len({c["_rowid"] for c in net}) == len(
                    [c for c in net if c["_change_type"] != "update_preimage"]
                )


@given(PASTS)
def test_delta_answers_as_the_official_release(steps: list[Taken]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        past = lived(Path(folder), steps)
        mine, theirs = ours.dataset(past.uri), official.dataset(past.uri)
        for begin in range(past.version + 1):
            for end in {max(begin, past.version - 1), past.version}:
                versions = {"begin_version": begin, "end_version": end}
                here, there = mine.delta(**versions), theirs.delta(**versions)
                for name in ("get_inserted_rows", "get_updated_rows", "get_deleted_row_ids"):
                    answer, wanted = (getattr(d, name)().read_all() for d in (here, there))
                    assert answer.schema == wanted.schema
                    assert by_id(answer) == by_id(wanted)
                uuids = [[t.uuid for t in d.list_transactions()] for d in (here, there)]
                assert uuids[0] == uuids[1]
