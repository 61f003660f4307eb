"""Streams from one table into sinks of every kind, which run until their driver is killed."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.support.late_workers import GAVE_UP

PAIRS = (("even", "odd"), ("append", "wal"), ("feed", "merge"), ("each", "upsert"))
"""Streams that run at the same time; `even` and `odd` write into one table."""

_POLL_S = 0.2
_ATTEMPTS = 20


def target_of(place: Path, name: str) -> Path:
    """Return the table that a stream writes."""
    return place / f"{'halves' if name in {'even', 'odd'} else name}.lance"


def checkpoint_of(place: Path, name: str) -> Path:
    """Return the checkpoint of a stream."""
    return place / "checkpoints" / name


def read_until(place: Path, name: str) -> int:
    """Return the version up to which a stream has read its source; it needs all later ones."""
    folder = checkpoint_of(place, name)
    batches = [int(path.name) for path in folder.glob("commits/*") if path.name.isdigit()]
    if not batches:
        return 1
    *_, offset = (folder / "offsets" / str(max(batches))).read_text().splitlines()
    return int(json.loads(offset)["version"])


class Storm:
    """Streams of one driver."""

    def __init__(self, spark: Any, place: Path) -> None:
        """Start none yet."""
        self._spark, self._place = spark, place

    def run_a_batch(self, names: Sequence[str]) -> dict[str, int]:
        """Start streams that do not end; return how many batches each has committed, if any."""
        queries: dict[str, Any] = {}
        for name in names:
            # One after the other: Spark waits no more than ten seconds for a stream's process.
            queries[name] = self._started(name)
            while not _batches(queries[name]):
                if queries[name].awaitTermination(_POLL_S):
                    queries[name] = self._restarted(name, queries[name])
        return {name: _batches(query) for name, query in queries.items()}

    def run_to_end(self, names: Sequence[str]) -> None:
        """Let streams read what there is."""
        for name in names:
            query = self._started(name, availableNow=True)
            for _ in range(_ATTEMPTS):
                with contextlib.suppress(Exception):
                    query.awaitTermination()
                if query.exception() is None:
                    break
                query = self._restarted(name, query, availableNow=True)

    def _restarted(self, name: str, query: Any, **trigger: Any) -> Any:
        """Start a stream again whose Python process a busy machine did not start in time."""
        error = query.exception()
        if error is None or GAVE_UP not in str(error):
            raise AssertionError(f"stream {name} ended: {error}")
        return self._started(name, **trigger)

    def _started(self, name: str, **trigger: Any) -> Any:
        writer = _SINKS[name](self, name).option(
            "checkpointLocation", str(checkpoint_of(self._place, name))
        )
        return writer.trigger(**(trigger or {"processingTime": "0 seconds"})).start()

    def _rows(self, **options: str) -> Any:
        reader = self._spark.readStream.format("lance").option("startingVersion", "1")
        given = {"maxVersionsPerTrigger": "3", "skipChangeCommits": "true", **options}
        return reader.options(**given).load(str(self._place / "source.lance"))

    def _into(self, name: str, rows: Any, **options: str) -> Any:
        writer = rows.writeStream.format("lance").option("path", str(target_of(self._place, name)))
        return writer.options(**options)

    def append(self, name: str) -> Any:
        """Append all columns, those too that the source gains."""
        return self._into(name, self._rows(), mergeSchema="true")

    def merge(self, name: str) -> Any:
        """Merge by key, in the sink."""
        return self._into(name, self._rows().select("id", "v"), mergeKeys="id")

    def upsert(self, name: str) -> Any:
        """Merge by key, in a function for batches."""
        from lancelake.spark import merge_batches

        merged = merge_batches(str(target_of(self._place, name)), ["id"])
        return self._rows().select("id", "v").writeStream.foreachBatch(merged)

    def wal(self, name: str) -> Any:
        """Upsert through the MemWAL, and merge it now and then."""
        from lancelake.spark import upsert_batches

        upserted = upsert_batches(str(target_of(self._place, name)), mergeEvery=3)
        return self._rows().select("id", "v").writeStream.foreachBatch(upserted)

    def feed(self, name: str) -> Any:
        """Append the changes of each row."""
        rows = self._rows(readChangeFeed="true", skipChangeCommits="false")
        return self._into(name, rows.select("id", "v", "_change_type", "_commit_version"))

    def each(self, name: str) -> Any:
        """Append in a function for batches."""
        path = str(target_of(self._place, name))

        def save(batch: Any, number: int) -> None:
            once = {"txnAppId": name, "txnVersion": str(number)}
            batch.write.format("lance").mode("append").options(**once).save(path)

        return self._rows().select("id", "v").writeStream.foreachBatch(save)

    def half(self, name: str) -> Any:
        """Append every other row to a table with another writer."""
        rows = self._rows().select("id", "v")
        return self._into(name, rows.where(f"id % 2 = {int(name == 'odd')}"))


_SINKS: dict[str, Callable[[Storm, str], Any]] = {
    "append": Storm.append,
    "merge": Storm.merge,
    "upsert": Storm.upsert,
    "wal": Storm.wal,
    "feed": Storm.feed,
    "each": Storm.each,
    "even": Storm.half,
    "odd": Storm.half,
}


def _batches(query: Any) -> int:
    """Return the number of batches with rows."""
    return sum(1 for progress in query.recentProgress if progress["numInputRows"])
