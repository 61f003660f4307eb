"""Open copies of tables of which one file has other bytes, in a process that may die.

Reads lines of JSON, one per mutant, and answers each with one: what happened to every action. The
process that starts this one learns from a missing answer that a mutant ended it.
"""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import struct
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

import lancelake.pylance as lance
from lancelake.maintenance.check.run import check
from lancelake.storage import disk_sync
from lancelake.storage.location import Location
from tests.hostile import actions, indexed_table, memwal_table, rich_table
from tests.hostile.actions import Opened, attempt
from tests.hostile.cases import SIZES
from tests.hostile.guarded import peak_mb
from tests.hostile.mutations import flip

Actions = dict[str, Callable[[Opened], object]]

# Of address space, most of which threads and libraries only reserve.
_MEMORY = 16 << 30
_FOOTER_BYTES = 40
# As long values are stored.
_ZIPPED = pa.field("item", pa.string(), metadata={"lance-encoding:structural-encoding": "fullzip"})
_INDEX_READS = {
    "id": ("btree", "btree range", "count"),
    "kind": ("bitmap",),
    "tags": ("labels",),
    "zone": ("zones",),
    "hash": ("bloom filter",),
    "name": ("ngrams",),
    "text": ("words", "phrase"),
    "pq": ("quantized",),
    "graph": ("graph",),
}
FOLDERS = {
    "data": ("data",),
    "index": ("_indices",),
    "memwal": ("_mem_wal",),
    "transaction": ("_transactions",),
    "ref": ("_refs",),
}
"""Folders of the files that are changed, by family."""


def build(root: Path) -> None:
    """Write the tables whose copies are changed."""
    for version in ("2.0", "2.1", "2.2"):
        _build_values(root / "data" / f"values {version}.lance", version)
    _copied(rich_table.build, root / "data" / "rich.lance")
    for column in _INDEX_READS:
        build_indexed(root / "index" / f"{column}.lance", column)
    _copied(memwal_table.build, root / "memwal" / "memwal.lance")
    _copied(rich_table.build, root / "transaction" / "rich.lance")
    _copied(rich_table.build, root / "ref" / "rich.lance")


def _copied(make: Callable[[Path], Path], target: Path) -> None:
    """Write a table and copy it; the place of its base stays what the table says."""
    shutil.copytree(make(target.with_suffix("")), target)


def _build_values(target: Path, version: str) -> None:
    for first in (0, 300):
        numbers = range(first, first + 300)
        vectors = np.arange(4 * len(numbers), dtype=np.float32)
        rows = {
            "id": pa.array(numbers, pa.int64()),
            "text": [None if n % 7 == 0 else f"text {n}" for n in numbers],
            "long": ["x" * (n % 50) * 10 for n in numbers],
            "word": pa.array([f"w{n % 3}" for n in numbers]).dictionary_encode(),
            "flag": [n % 3 == 0 for n in numbers],
            "none": pa.nulls(len(numbers), pa.int32()),
            "items": [None if n % 11 == 0 else [f"i{n}"] * (n % 4) for n in numbers],
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors), 4),
            "data": [random.Random(n).randbytes(n % 30) for n in numbers],
        }
        if version != "2.0":
            rows["pair"] = [None if n % 5 == 0 else {"a": n, "b": f"b{n}"} for n in numbers]
        zipped = pa.array([None if n % 5 == 0 else f"zipped {n}" for n in numbers])
        lists = pa.array([[f"z{n}"] * (n % 4) for n in numbers], pa.list_(_ZIPPED))
        table = pa.table(rows)
        table = table.append_column(_ZIPPED.with_name("zipped"), zipped)
        table = table.append_column(_ZIPPED.with_name("lists").with_type(lists.type), lists)
        lance.write_dataset(table, target, mode="append", data_storage_version=version)


def build_indexed(target: Path, column: str) -> Path:
    """Write a table with an index, fragments to compact and rows to add to the index."""
    rows = indexed_table.rows(0, 256)
    table = lance.write_dataset(rows, target, max_rows_per_file=128, max_rows_per_group=128)
    kind = indexed_table._INDICES[column]
    if kind.startswith("IVF"):
        options = {"num_sub_vectors": 2} if kind == "IVF_PQ" else {}
        table.create_index(column, kind, num_partitions=2, **options)
    else:
        table.create_scalar_index(
            column, kind, **({"with_position": True} if column == "text" else {})
        )
    table.delete("id = 5")
    table.insert(indexed_table.rows(1_000, 1_010))
    return target


def files_of(table: Path, family: str) -> list[Path]:
    """Return the files of a table that are changed, in an order that its names do not decide."""
    found = [f for folder in FOLDERS[family] for f in (table / folder).rglob("*") if f.is_file()]
    return sorted(found, key=lambda file: (file.suffix, file.stat().st_size, file.name))


def changed(data: bytes, chance: random.Random) -> bytes:
    """Return other bytes: some bits, a number that is too large or too small, or fewer of them."""
    kind = chance.choice(("bits", "bits", "number", "number", "end", "end", "cut"))
    if kind == "bits" or not data:
        return flip(data or b"\0", chance)
    if kind == "cut":
        return data[: chance.randrange(len(data))]
    first = (
        0 if kind == "number" else max(0, len(data) - chance.choice((_FOOTER_BYTES, 600, 3_000)))
    )
    size = chance.choice((4, 8))
    offset = chance.randrange(first, max(first + 1, len(data) - size))
    number = chance.choice((0, 1, 255, 1 << 16, len(data), *SIZES)) & ((1 << 8 * size) - 1)
    put = struct.pack("<Q", number)[:size]
    return data[:offset] + put + data[offset + size :]


def _scan(table: Opened) -> None:
    for batch in table.to_batches(batch_size=64):
        batch.validate(full=True)


_VALUES: Actions = {
    "scan": _scan,
    "take": lambda table: table.take([0, 5, 299, 310]),
    "filter": lambda table: table.to_table(columns=["text", "items"], filter="id > 290"),
    "count": lambda table: table.count_rows("text IS NULL"),
    "one": lambda table: table.to_table(columns=["vector"], limit=3, offset=2),
    "some": lambda table: table.to_table(columns=["zipped", "lists"], limit=30, offset=200),
    "compact": lambda table: table.optimize.compact_files(),
    "update": lambda table: table.update({"text": "'x'"}, where="id = 8"),
    "index": lambda table: table.create_scalar_index("text", "BTREE"),
}


def actions_of(family: str, table: str, chance: random.Random) -> Actions:
    """Return what is done with a mutant: what uses the file, and something that writes."""
    if family == "index":
        reads = {name: indexed_table.READS[name] for name in _INDEX_READS[table]}
        writes = {name: indexed_table.WRITES[name] for name in ("refresh", "compact", "append")}
        return {**reads, "statistics": indexed_table.READS["statistics"], **writes}
    if family == "memwal":
        return memwal_table.READS | memwal_table.WRITES
    if table.startswith("values"):
        return _VALUES
    reads, writes = dict(actions.READS), dict(actions.WRITES)
    del reads["check"]
    if family == "data":
        some = ("scan", "filter", "take", "blobs")
        return {n: reads[n] for n in some} | {n: writes[n] for n in ("compact", "update", "merge")}
    write = chance.choice(sorted(writes))
    return reads | {write: writes[write]}


def run(family: str, original: Path, seed: int, work: Path, *, checks: bool) -> list[str]:
    """Change a file of a copy of a table, use the copy, and return the untyped errors."""
    chance = random.Random(f"{family} {original.name} {seed}")
    copy = work / f"{family}-{original.stem}-{seed}.lance"
    shutil.copytree(original, copy, copy_function=os.link)
    try:
        victim = chance.choice(files_of(copy, family))
        data = changed(victim.read_bytes(), chance)
        victim.unlink()
        victim.write_bytes(data)
        tried = actions_of(family, original.stem, chance)
        if checks:
            tried = {**tried, "check": _check}
        name = str(victim.relative_to(copy))
        outcomes = [attempt(n, act, str(copy)) for n, act in tried.items()]
        return [f"{name}: {o.name}: {o.text}" for o in outcomes if not o.is_typed]
    finally:
        shutil.rmtree(copy)


def _check(table: Opened) -> None:
    place = table._snapshot.location
    for _ in check(Location(uri=place.uri, confine_to=place.confine_to), data=True):
        pass


def main() -> None:
    """Answer until the input ends."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with disk_sync.waiting(waits=False):
        for line in sys.stdin:
            asked = json.loads(line)
            failures = run(
                asked["family"],
                Path(asked["table"]),
                asked["seed"],
                Path(asked["work"]),
                checks=asked["checks"],
            )
            Path("/proc/self/clear_refs").write_text("5")
            sys.stdout.write(json.dumps({"failures": failures, "peak_mb": peak_mb()}) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
