"""Random table histories before a cleanup, replayed from a seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import lance as official
import pyarrow as pa

import lancelake.pylance as ours
from lancelake.errors import LanceTableError

Step = Callable[["Life"], None]


class Life:
    """A table with branches, clones, tags and strays, as chance has it."""

    def __init__(self, top: Path, seed: int) -> None:
        self.top = top
        self.chance = random.Random(seed)
        self.branches: list[str | None] = [None]
        self._number = 0
        stable = self.chance.random() < 0.5
        ours.write_dataset(self._rows(), top, enable_stable_row_ids=stable)

    def live(self, count: int, among: Sequence[Step] = ()) -> None:
        """Take random steps; those that the table as it is does not allow change nothing."""
        for _ in range(count):
            step = self.chance.choice(among or STEPS)
            with suppress(LanceTableError, ValueError, OSError, KeyError):
                step(self)

    def root(self, branch: str | None) -> Path:
        """Where a line of versions lies."""
        return self.top if branch is None else self.top / "tree" / branch

    def open(self, version: int | None = None) -> Any:
        """Open the newest version of some line, or one of its versions."""
        return ours.dataset(self.root(self.chance.choice(self.branches)), version=version)

    def rows(self) -> dict[tuple[Path, int], pa.Table]:
        """Read every version of every line and clone, detached ones too."""
        found = {}
        for path in self.top.rglob("_versions/*.manifest"):
            root = path.parent.parent
            number = int(path.stem.removeprefix("d"))
            version = number if path.stem.startswith("d") else (1 << 64) - 1 - number
            found[root, version] = ours.dataset(root, version=version).to_table()
        return found

    def unique(self) -> int:
        """Return a number not used so far."""
        self._number += 1
        return self._number

    def _rows(self) -> pa.Table:
        first = self.unique() * 100
        ids = range(first, first + self.chance.randint(1, 9))
        return pa.table({"id": pa.array(ids, pa.int64()), "v": pa.array(ids, pa.int64())})


def _fits(life: Life, dataset: Any) -> pa.Table:
    rows = life._rows()
    for name in dataset.schema.names:
        if name not in rows.schema.names:
            rows = rows.append_column(name, rows["id"])
    return rows.select(dataset.schema.names)


def append(life: Life) -> None:
    dataset = life.open()
    dataset.insert(_fits(life, dataset))


def overwrite(life: Life) -> None:
    ours.write_dataset(life._rows(), life.open().uri, mode="overwrite")


def delete(life: Life) -> None:
    divisor = life.chance.randint(2, 5)
    life.open().delete(f"id % {divisor} = 0")


def update(life: Life) -> None:
    life.open().update({"v": "v + 1"}, where=f"id % {life.chance.randint(2, 4)} = 1")


def add_column(life: Life) -> None:
    life.open().add_columns({f"c{life.unique()}": "id + 1"})


def drop_column(life: Life) -> None:
    dataset = life.open()
    others = dataset.schema.names[1:]
    if others:
        dataset.drop_columns([life.chance.choice(others)])


def compact(life: Life) -> None:
    life.open().optimize.compact_files(num_threads=1)


def restore(life: Life) -> None:
    dataset = life.open()
    version = life.chance.choice(dataset.versions())["version"]
    dataset.checkout_version(version).restore()


def tag(life: Life) -> None:
    dataset = life.open()
    version = life.chance.choice(dataset.versions())["version"]
    branch = life.branches[0]
    for name in life.branches:
        if str(life.root(name)) == str(dataset.uri):
            branch = name
    dataset.tags.create(f"t{life.unique()}", (branch, version))


def untag(life: Life) -> None:
    tags = ours.dataset(life.top).tags
    names = list(tags.list())
    if names:
        tags.delete(life.chance.choice(names))


def branch(life: Life) -> None:
    dataset = life.open()
    version = life.chance.choice(dataset.versions())["version"]
    name = life.chance.choice(["b{}", "deep/b{}", "deep/b{}/x"]).format(life.unique())
    dataset.checkout_version(version).create_branch(name)
    life.branches.append(name)


def clone_inside(life: Life) -> None:
    target = life.top / "clones" / f"n{life.unique()}"
    dataset = life.open()
    version = life.chance.choice(dataset.versions())["version"]
    dataset.checkout_version(version).shallow_clone(target, version)
    if life.chance.random() < 0.5:
        ours.dataset(target).delete("id % 2 = 0")


def detached(life: Life) -> None:
    dataset = life.open()
    whole = [f.metadata for f in dataset.get_fragments() if f.metadata.deletion_file is None]
    operation = ours.LanceOperation.Append(whole[:1])
    ours.LanceDataset.commit(dataset.uri, operation, read_version=dataset.version, detached=True)


def index(life: Life) -> None:
    name = life.chance.choice(["id", "v"])
    official.dataset(str(life.open().uri)).create_scalar_index(name, "BTREE", replace=True)


def official_append(life: Life) -> None:
    dataset = life.open()
    official.write_dataset(_fits(life, dataset), str(dataset.uri), mode="append")


def official_delete(life: Life) -> None:
    official.dataset(str(life.open().uri)).delete(f"id % {life.chance.randint(2, 5)} = 1")


def stray(life: Life) -> None:
    root = life.root(life.chance.choice(life.branches))
    number = life.unique()
    name = life.chance.choice(
        [
            f"data/stray{number}.lance",
            f"data/stray{number}/{'01' * 16}.blob",
            f"data/other{number}.txt",
            f"data/below/{number}.lance",
            f"_deletions/{number}-1-77.bin",
            f"_deletions/{number}.bin",
            f"_indices/00000000-0000-4000-8000-{number:012d}/a.lance",
            f"_indices/strange{number}/a.lance",
            f"_transactions/1-stray{number}.txn",
            f"_versions/.tmp{number}",
            f"elsewhere/{number}.lance",
        ]
    )
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x")


REUSES: list[Step] = [restore, restore, clone_inside, clone_inside, branch, tag, append, detached]
"""Steps most of which may need files of an old version."""

STEPS: list[Step] = [
    append,
    append,
    overwrite,
    delete,
    delete,
    update,
    add_column,
    drop_column,
    compact,
    restore,
    tag,
    untag,
    branch,
    clone_inside,
    detached,
    index,
    official_append,
    official_delete,
    stray,
    stray,
]
