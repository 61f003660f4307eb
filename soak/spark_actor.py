"""Spark application that takes part in many rounds, one after the other.

A process of its own. Its argument is a folder: a part to be played is a file there,
which has another name while it is played, and is gone afterwards; see `soak.players`.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import lancelake.pylance
from lancelake.spark import session
from soak.actor import Actor, Part, text_of
from soak.faulty_store import Faults, misbehaving
from soak.journal import Journal
from soak.plan import SPARK
from soak.players import OFFERED, PLAYING
from soak.spark_moves import SPARK_MOVES, SparkPlace
from soak.table import first_rows

# A merge is void when anyone has added rows meanwhile, and then takes as long as many other moves.
_DECK = Counter(
    append=4,
    upsert=2,
    insert=1,
    stream=3,
    update=4,
    delete=3,
    transfer=4,
    scan=3,
    pinned=1,
    changes=2,
    compact=2,
)
_LOOK_S = 0.05


class SparkActor(Actor):
    """One Spark application, in one round."""

    deck = _DECK
    moves: Any = SPARK_MOVES  # they take the place of a Spark session

    def verdict(self, kind: str, error: Exception) -> str:
        """A batch that failed comes again with the next stream."""
        if kind == "stream" or "UncertainCommit" in text_of(error):
            return "unknown"
        return "fail"


def main() -> None:
    """Run the offered operations until the process that offers them ends."""
    folder = Path(sys.argv[1])
    parent = os.getppid()
    with _session(folder) as spark:
        _rehearse(spark, folder)
        while os.getppid() == parent:
            try:
                (folder / OFFERED).rename(folder / PLAYING)
            except FileNotFoundError:
                time.sleep(_LOOK_S)
                continue
            _play(spark, Part(**json.loads((folder / PLAYING).read_text())))
            (folder / PLAYING).unlink()


@contextmanager
def _session(folder: Path) -> Iterator[SparkSession]:
    conf = {
        "spark.driver.memory": "1g",
        "spark.log.level": "OFF",
        "spark.sql.shuffle.partitions": 1,
        "spark.ui.enabled": False,
        "spark.ui.showConsoleProgress": False,
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    spark = session("local[1]", root=str(folder / "warehouse"), **conf)
    try:
        yield spark
    finally:
        spark.stop()


def _play(spark: SparkSession, part: Part) -> None:
    actor = _actor(spark, part)
    with ExitStack() as stack:
        if part.faults:
            stack.enter_context(misbehaving(Faults(**part.faults), part.seed, actor.journal))
        actor.run()


def _rehearse(spark: SparkSession, folder: Path) -> None:
    """Do everything once on a table of its own: Java is slow at what it does the first time."""
    uri = str(folder / "rehearsal.lance")
    lancelake.pylance.write_dataset(first_rows(is_keyed=True), uri, enable_stable_row_ids=True)
    part = Part(
        role="writer",
        library=SPARK,
        release=SPARK,
        process="0.0",
        slot=0,
        incarnation=0,
        seed="rehearsal",
        uri=uri,
        options=None,
        log=str(folder / "rehearsal.log"),
        go="",
        over="",
        is_keyed=True,
        is_stable=True,
        retention_s=3600.0,
        pause_s=0.0,
    )
    actor = _actor(spark, part)
    for _ in range(_DECK.total()):
        actor.step()


def _actor(spark: SparkSession, part: Part) -> SparkActor:
    place = SparkPlace(
        lance=lancelake.pylance,
        uri=part.uri,
        options=part.options,
        journal=Journal(part.log, part.process, part.release),
        spark=spark,
        folder=Path(part.log).parent / f"spark-{part.slot}",
    )
    return SparkActor(part, place)


if __name__ == "__main__":
    main()
