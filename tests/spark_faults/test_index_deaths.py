"""Builds of indices on executors survive the death of an executor, and equal embedded builds."""

from __future__ import annotations

from pathlib import Path

import pytest

import lancelake.pylance as lance
from tests.spark_faults.application import Application
from tests.spark_faults.index_builds import KINDS, answers, write_rows
from tests.spark_faults.rounds import ROUNDS

SHORT = ["IVF_PQ"]
"""Kinds of a short run."""


@pytest.mark.parametrize("kind", list(KINDS) if ROUNDS else SHORT)
def test_a_build_finishes_when_an_executor_dies(
    cluster: Application, place: Path, kind: str
) -> None:
    place.mkdir(exist_ok=True)
    ours, embedded = write_rows(place, "ours"), write_rows(place, "embedded")
    column, parameters = KINDS[kind]
    lance.dataset(embedded).create_index(column, kind, **parameters)
    cluster.arm("index", "executor")
    cluster.call("index", uri=ours, kind=kind)
    assert cluster.struck
    assert answers(ours, kind) == answers(embedded, kind)
    (description,) = lance.dataset(ours).describe_indices()
    assert description.num_rows_indexed == 1200
