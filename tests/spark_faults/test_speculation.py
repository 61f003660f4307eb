"""Rows of only one attempt are committed when two attempts of a task write them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

import lancelake.pylance as lance
from tests.spark_faults.application import Application
from tests.spark_faults.rounds import ROUNDS
from tests.spark_faults.standalone import cluster
from tests.spark_faults.verdict import ensure_done_once, files_of_no_version
from tests.spark_faults.works import WORKS, of_round, table_of
from tests.support.official import Official

SETTINGS = {
    "spark.speculation": True,
    "spark.speculation.interval": "50ms",
    "spark.speculation.multiplier": 1.1,
    "spark.speculation.quantile": 0.1,
    "spark.speculation.efficiency.enabled": False,
}
CASES = [
    (number, name) for number in range(max(ROUNDS, 1)) for name in of_round(number)[: ROUNDS or 1]
]


@pytest.fixture(scope="module")
def speculating(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Application]:
    """Return an application that starts slow tasks twice."""
    folder = tmp_path_factory.mktemp("speculating")
    with cluster(folder) as master:
        application = Application(folder, master, **SETTINGS)
        try:
            with application:
                yield application
        finally:
            application.close()


@pytest.mark.parametrize(("number", "name"), CASES)
def test_of_two_attempts_one_is_committed_and_cleanup_removes_the_files_of_the_other(
    number: int, name: str, speculating: Application, place: Path, official_14: Official
) -> None:
    work = WORKS[name]
    work.prepare(place)
    speculating.arm("file", "slow")
    speculating.call("work", name=name, place=str(place))
    assert speculating.struck
    ensure_done_once(work, place, official_14)
    # Spark ends the attempt that lost, which may have left a file by then.
    table = table_of(place)
    lance.dataset(str(table)).cleanup_old_versions(timedelta(0), delete_unverified=True)
    assert files_of_no_version(table) == set()
    rows = lance.dataset(str(table)).to_table(columns=["id"])
    assert sorted(rows["id"].to_pylist()) == sorted(work.after)
