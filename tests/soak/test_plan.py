"""A seed determines the plan of a run."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pyarrow as pa

from soak.drawing import DECK, Drawing
from soak.plan import CREW, SPARK, SoakOptions, plans
from soak.table import POOL, first_rows, own_pool

OPTIONS = SoakOptions(seed=1, seconds=480.0, round_seconds=60.0, crew=(*CREW, SPARK))


class Unchanging:
    """A dataset that nobody changes."""

    version = 20
    schema: pa.Schema = first_rows(is_keyed=True).schema

    def to_table(self, columns: list[str]) -> pa.Table:
        return first_rows(is_keyed=True).select(columns)

    def list_indices(self) -> list[dict[str, Any]]:
        return [{"name": "id_btree"}]


def drawn(seed: int, count: int, *, is_blind: bool = False) -> list[tuple[str, dict[str, Any]]]:
    """Draw operations on a table that stays as it is."""
    drawing = Drawing(
        random.Random(seed),
        slot=0,
        incarnation=0,
        is_official=False,
        is_keyed=True,
        has_feed=True,
        retention_s=10.0,
        is_blind=is_blind,
        deck=DECK - Counter(travel=DECK["travel"]),
    )
    return [drawing.draw(Unchanging()) for _ in range(count)]


def test_the_same_seed_gives_the_same_rounds() -> None:
    assert list(plans(OPTIONS)) == list(plans(OPTIONS))


def test_another_seed_gives_other_kills() -> None:
    other = SoakOptions(seed=2, seconds=480.0, round_seconds=60.0, crew=OPTIONS.crew)
    assert [p.kills for p in plans(OPTIONS)] != [p.kills for p in plans(other)]


def test_eight_rounds_have_every_kind_of_table_on_every_store() -> None:
    kinds = {(plan.store, plan.is_keyed, plan.is_stable) for plan in plans(OPTIONS)}
    assert len(kinds) == 8


def test_rounds_on_every_store_are_with_faults_and_without() -> None:
    found = {(plan.store, bool(plan.faults)) for plan in plans(OPTIONS)}
    assert found == {("disk", False), ("disk", True), ("s3", False), ("s3", True)}


def test_a_process_draws_the_same_operations_from_the_same_seed() -> None:
    assert drawn(1, 100) == drawn(1, 100)
    assert drawn(1, 100) != drawn(2, 100)


def inserted(*, is_blind: bool) -> set[int]:
    """Return the keys that inserts ask for."""
    found = drawn(1, 200, is_blind=is_blind)
    return {key for kind, args in found if kind == "insert" for key in args["ids"]}


def test_a_release_that_does_not_see_new_keys_inserts_keys_of_its_own() -> None:
    assert inserted(is_blind=True) <= set(own_pool(0))
    assert inserted(is_blind=False) <= set(POOL)


def test_spark_plays_on_every_kind_of_table_and_on_every_store_with_faults_and_without() -> None:
    options = SoakOptions(seed=1, seconds=600.0, round_seconds=60.0, crew=OPTIONS.crew)
    found = [plan for plan in plans(options) if SPARK in plan.crew]
    assert len({(plan.is_keyed, plan.is_stable) for plan in found}) == 4
    assert len({(plan.store, bool(plan.faults)) for plan in found}) == 4
    assert any(plan.kills[plan.crew.index(SPARK)] for plan in found)
