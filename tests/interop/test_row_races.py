"""Concurrent processes that change the same rows: the result is that of a serial execution.

LANCELAKE_RACE_ROUNDS sets the number of rounds of each race.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.maintenance.check.finding import Severity
from lancelake.maintenance.check.run import check
from lancelake.storage.location import Location
from tests.support.racers import OURS, Ask, Racers

ROUNDS = int(os.environ.get("LANCELAKE_RACE_ROUNDS", "3"))
THEIRS = "14.0.2"
NEW_KEYS = 20
ACCOUNTS = 8
BALANCE = 1000

UPSERT = """
rows = pa.table({"id": pa.array(keys, pa.int64()), "v": pa.array([who] * len(keys), pa.int64())})
rows = rows.cast(ds.schema)
stats = ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows)
result = [stats["num_inserted_rows"], stats["num_updated_rows"]]
"""
TRANSFER = """
result = []
for source, target, amount in transfers:
    value = f"CASE WHEN id = {source} THEN v - {amount} ELSE v + {amount} END"
    try:
        changed = lance.dataset(uri).update({"v": value}, where=f"id IN ({source}, {target})")
    except Exception as error:
        result.append(str(error))
    else:
        result.append(changed["num_rows_updated"])
"""
DELETE = "result = ds.delete('v = 0')['num_deleted_rows']"
UPDATE = "result = ds.update({'v': '1'}, where='v = 0')['num_rows_updated']"
APPEND = """
rows = pa.table({"id": pa.array(keys, pa.int64()), "v": pa.array([who] * len(keys), pa.int64())})
lance.write_dataset(rows.cast(ds.schema), uri, mode="append")
result = len(keys)
"""


@pytest.fixture(scope="module")
def racers() -> Iterator[Racers]:
    """Return processes that all tests of this module use."""
    found = Racers()
    yield found
    found.close()


def _table(
    uri: str, rows: dict[int, int], *, has_key: bool = False, is_stable: bool = False
) -> None:
    metadata = {"lance-schema:unenforced-primary-key": "true"} if has_key else None
    key = pa.field("id", pa.int64(), nullable=False, metadata=metadata)
    schema = pa.schema([key, pa.field("v", pa.int64())])
    table = pa.table([list(rows), list(rows.values())], schema=schema)
    lance.write_dataset(table, uri, max_rows_per_file=100, enable_stable_row_ids=is_stable)


def _rows(uri: str) -> list[tuple[int, int]]:
    found = lance.dataset(uri).to_table()
    return list(zip(found["id"].to_pylist(), found["v"].to_pylist(), strict=True))


def _ensure_sound(uri: str) -> None:
    found = check(Location.parse(uri), data=True, versions="all")
    assert [f for f in found if f.severity is Severity.ERROR] == []


@pytest.mark.parametrize(
    ("crew", "has_key"),
    [([OURS] * 5, False), ([OURS] * 5, True), ([OURS, THEIRS, OURS, THEIRS, OURS], True)],
    ids=["ours", "ours with a declared key", "mixed with a declared key"],
)
@pytest.mark.parametrize("is_stable", [False, True], ids=["addresses", "stable ids"])
def test_upserts_of_the_same_new_keys_leave_each_key_once(
    crew: list[str], has_key: bool, is_stable: bool, racers: Racers, tmp_path: Path
) -> None:
    uri = str(tmp_path / "t.lance")
    _table(uri, dict.fromkeys(range(10), -1), has_key=has_key, is_stable=is_stable)
    for number in range(ROUNDS):
        keys = list(range(100 + NEW_KEYS * number, 100 + NEW_KEYS * (number + 1)))
        asks = [Ask(UPSERT, {"keys": keys, "who": who}) for who in range(len(crew))]
        said = racers.race(uri, crew, asks)
        inserted = sum(answer["done"][0] for answer in said if "done" in answer)
        ours = [answer for answer, name in zip(said, crew, strict=True) if name == OURS]
        assert [answer for answer in ours if "failed" in answer] == []
        counts = Counter(i for i, _ in _rows(uri))
        assert [i for i, count in counts.items() if count > 1] == []
        assert set(keys) <= set(counts)
        assert inserted == NEW_KEYS
    _ensure_sound(uri)


@pytest.mark.parametrize("crew", [[OURS] * 4, [OURS, THEIRS, OURS, THEIRS]], ids=["ours", "mixed"])
def test_transfers_between_accounts_keep_every_balance(
    crew: list[str], racers: Racers, tmp_path: Path
) -> None:
    uri = str(tmp_path / "t.lance")
    _table(uri, dict.fromkeys(range(ACCOUNTS), BALANCE))
    chance = random.Random(4)
    expected = Counter(dict.fromkeys(range(ACCOUNTS), BALANCE))
    for _ in range(ROUNDS):
        plans = [
            [(*chance.sample(range(ACCOUNTS), 2), chance.randint(1, 50)) for _ in range(3)]
            for _ in crew
        ]
        said = racers.race(uri, crew, [Ask(TRANSFER, {"transfers": plan}) for plan in plans])
        for plan, answer in zip(plans, said, strict=True):
            for (source, target, amount), result in zip(plan, answer["done"], strict=True):
                if result == 2:
                    expected[source] -= amount
                    expected[target] += amount
        assert dict(_rows(uri)) == dict(expected)
    assert sum(expected.values()) == ACCOUNTS * BALANCE
    _ensure_sound(uri)


@pytest.mark.parametrize("crew", [[OURS, OURS], [OURS, THEIRS], [THEIRS, OURS]], ids=" ".join)
def test_of_a_delete_and_an_update_of_the_same_rows_one_comes_first(
    crew: list[str], racers: Racers, tmp_path: Path
) -> None:
    uri = str(tmp_path / "t.lance")
    _table(uri, {-1: 7})
    for number in range(ROUNDS):
        keys = list(range(number * 50, number * 50 + 50))
        lance.write_dataset(
            pa.table({"id": keys, "v": [0] * 50}).cast(lance.dataset(uri).schema),
            uri,
            mode="append",
            max_rows_per_file=20,
        )
        deleted, updated = racers.race(uri, crew, [Ask(DELETE, {}), Ask(UPDATE, {})])
        found = {i: v for i, v in _rows(uri) if i in keys}
        assert (deleted["done"], updated["done"], found) in [
            (50, 0, {}),
            (0, 50, dict.fromkeys(keys, 1)),
        ]
    _ensure_sound(uri)


def test_appends_and_upserts_at_once_lose_nothing(racers: Racers, tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    _table(uri, {-1: 7})
    for number in range(ROUNDS):
        first = 1000 * number
        keys = [list(range(first + 100 * i, first + 100 * i + 10)) for i in range(3)]
        codes = [APPEND, UPSERT, APPEND]
        asks = [Ask(c, {"keys": k, "who": 1}) for c, k in zip(codes, keys, strict=True)]
        said = racers.race(uri, [OURS] * 3, asks)
        assert [answer for answer in said if "failed" in answer] == []
        counts = Counter(i for i, _ in _rows(uri))
        assert all(counts[i] == 1 for part in keys for i in part)
    _ensure_sound(uri)
