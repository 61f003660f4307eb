"""Walks: the modules of the library that one warm call of an operation enters.

Run `python scripts/walks.py` for the embedded operations, `--spark` for MERGE on Spark as well, and
`--list` for the modules. Threads of the library are followed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import numpy as np
import pyarrow as pa

import lancelake

PACKAGE = str(Path(lancelake.__file__).parent)
_COLUMNS = 16


class Walk:
    """Functions of the library that were called, by file."""

    def __init__(self) -> None:
        self.calls: Counter[tuple[str, str, int]] = Counter()

    @property
    def modules(self) -> Counter[str]:
        """Number of functions that were called, by module."""
        return Counter(
            str(Path(file).relative_to(PACKAGE).with_suffix("")) for file, _, _ in self.calls
        )


_walks: list[Walk] = []
"""Walks that are being followed."""


def follow(frame: FrameType, event: str, _: object) -> None:
    """Count a call, in the walks that are being followed."""
    code = frame.f_code
    if event == "call" and _walks and code.co_filename.startswith(PACKAGE):
        for walk in _walks:
            walk.calls[code.co_filename, code.co_qualname, code.co_firstlineno] += 1


@contextmanager
def followed() -> Iterator[Walk]:
    """Follow the calls of a block, in all threads that were started after `main` began."""
    walk = Walk()
    _walks.append(walk)
    try:
        yield walk
    finally:
        _walks.remove(walk)


@dataclass(frozen=True)
class Operation:
    """An operation whose walk is followed, and what is done before it each time."""

    title: str
    call: Callable[[], object]
    prepare: Callable[[], object] = lambda: None

    def walk(self) -> Walk:
        """Return the walk of the second call."""
        self.prepare()
        self.call()
        self.prepare()
        with followed() as walk:
            self.call()
        return walk


def operations(folder: Path) -> Iterator[Operation]:
    """Yield operations on small tables, each of which can be called again."""
    uri = str(folder / "rows.lance")
    rows = pa.table({"id": range(1000), "value": [float(n) for n in range(1000)]})
    dataset = lancelake.write_dataset(rows, uri)
    yield Operation("filtered read", lambda: lancelake.dataset(uri).to_table(filter="id < 10"))
    yield Operation(
        "append", lambda: lancelake.write_dataset(rows.slice(0, 10), uri, mode="append")
    )
    upsert = rows.slice(0, 10)
    yield Operation(
        "merge_insert",
        lambda: (
            lancelake.dataset(uri)
            .merge_insert("id")
            .when_matched_update_all()
            .when_not_matched_insert_all()
            .execute(upsert)
        ),
    )
    yield Operation("delete", lambda: lancelake.dataset(uri).delete("id = 5"))
    yield Operation(
        "update", lambda: lancelake.dataset(uri).update({"value": "value + 1"}, where="id = 6")
    )
    yield Operation("take", lambda: dataset.take([1, 2]))
    yield Operation("count", lambda: lancelake.dataset(uri).count_rows())
    yield Operation("vector search", _vector_search(folder))
    yield _wal_merge(folder)


def _vector_search(folder: Path) -> Callable[[], object]:
    vectors = np.arange(1000 * _COLUMNS, dtype=np.float32) % 97
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors), _COLUMNS)
    dataset = lancelake.write_dataset(pa.table({"v": column}), str(folder / "vectors.lance"))
    dataset.create_index("v", "IVF_FLAT", num_partitions=4)
    nearest = {"column": "v", "q": [0.5] * _COLUMNS, "k": 5}
    return lambda: lancelake.dataset(dataset.uri).to_table(nearest=nearest)


def _wal_merge(folder: Path) -> Operation:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("n", pa.int64())])
    rows = pa.table({"id": [1, 2], "n": [1, 2]}, schema=schema)
    dataset = lancelake.write_dataset(rows, str(folder / "wal.lance"))
    dataset.wal.initialize(buckets=1, key="id")

    def put() -> None:
        with dataset.wal.writer() as writer:
            writer.put(rows)

    def merge() -> None:
        lancelake.dataset(dataset.uri).wal.merge()

    return Operation("MemWAL merge", merge, put)


def _spark_merge(folder: Path) -> Operation:
    from lancelake.spark import LanceTable, session  # noqa: PLC0415  # only with --spark

    spark = session(**{"spark.master": "local[2]", "spark.ui.enabled": "false"})
    uri = str(folder / "spark.lance")
    spark.range(1000).withColumnRenamed("id", "k").write.format("lance").save(uri)
    source = spark.range(10).withColumnRenamed("id", "k")

    def merge() -> None:
        table = LanceTable.forPath(spark, uri).alias("t")
        clauses = table.merge(source.alias("s"), "t.k = s.k").whenMatchedUpdateAll()
        clauses.whenNotMatchedInsertAll().execute()

    return Operation("Spark MERGE", merge)


def main(*, lists: bool, with_spark: bool) -> None:
    """Print modules, functions and calls of each walk."""
    threading.setprofile(follow)
    sys.setprofile(follow)
    print(f"{'walk':16} {'modules':>8} {'functions':>10} {'calls':>8}")
    with tempfile.TemporaryDirectory() as name:
        walks = operations(Path(name))
        for operation in (*walks, *((_spark_merge(Path(name)),) if with_spark else ())):
            walk = operation.walk()
            modules, calls = walk.modules, walk.calls
            print(f"{operation.title:16} {len(modules):8} {len(calls):10} {calls.total():8,}")
            if lists:
                print("".join(f"    {name:48} {n:4}\n" for name, n in sorted(modules.items())))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", dest="lists")
    parser.add_argument("--spark", action="store_true")
    given = parser.parse_args()
    main(lists=given.lists, with_spark=given.spark)
