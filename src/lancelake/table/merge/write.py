"""Write the rows of a merge: changed rows with their row ids first, then new rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lancelake.clock import SystemIds
from lancelake.data.fragment_writer import write_fragments
from lancelake.data.read_ahead import read_ahead
from lancelake.data.write_task import WriteTask
from lancelake.engine.port import Engine, Job, Progress
from lancelake.format.fragment import Fragment
from lancelake.format.fragment_bytes import from_bytes, to_bytes
from lancelake.table.merge.match import Addresses, Pairs
from lancelake.table.merge.row_builder import Recipe
from lancelake.table.merge.scope import SOURCE, TARGET
from lancelake.table.merge.source import RowNumbers, SourceRows, taken
from lancelake.table.merge.target import TargetRows, row_ids
from lancelake.table.row_steps.files import with_row_ids

_TASK_BYTES = 256 << 20

Made = tuple[pa.RecordBatch, pa.Array | None]
"""Rows to write, and the row ids they keep."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """Updated rows of the table; `numbers` is None without source rows."""

    recipe: Recipe
    target: TargetRows | None
    addresses: Addresses
    numbers: RowNumbers | None
    source: SourceRows
    keeps_row_ids: bool

    def __len__(self) -> int:
        return len(self.addresses)

    def part(self, start: int, stop: int) -> Changed:
        """Return a range of the rows."""
        return Changed(
            recipe=self.recipe,
            target=self.target,
            addresses=self.addresses[start:stop],
            numbers=None if self.numbers is None else self.numbers[start:stop],
            source=self.source,
            keeps_row_ids=self.keeps_row_ids,
        )

    def rows(self) -> Iterator[Made]:
        """Build the rows."""
        theirs = None if self.numbers is None else self.source.columns(self.recipe.needs(SOURCE))
        step = self.source.batch_rows
        if self.target is not None:
            step = min(step, self.target.batch_rows)
        for start in range(0, len(self), step):
            sides: dict[str, pa.RecordBatch] = {}
            ids = None
            if self.target is not None:
                mine = self.target.at(self.addresses[start : start + step])
                if self.keeps_row_ids:
                    mine, ids = row_ids(mine)
                sides[TARGET] = mine
            if theirs is not None and self.numbers is not None:
                sides[SOURCE] = taken(theirs, self.numbers[start : start + step])
            yield self.recipe.make(sides), ids


@dataclass(frozen=True, slots=True, kw_only=True)
class New:
    """Rows of the source."""

    recipe: Recipe
    numbers: RowNumbers
    source: SourceRows

    def __len__(self) -> int:
        return len(self.numbers)

    def part(self, start: int, stop: int) -> New:
        """Return a range of the rows."""
        return New(recipe=self.recipe, numbers=self.numbers[start:stop], source=self.source)

    def rows(self) -> Iterator[Made]:
        """Build the rows."""
        for batch in self.source.batches(self.numbers, self.recipe.needs(SOURCE)):
            yield self.recipe.make({SOURCE: batch}), None

    def keys(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Build only some columns of the rows."""
        part = self.recipe.only(names)
        for batch in self.source.batches(self.numbers, part.needs(SOURCE)):
            yield part.make({SOURCE: batch})


Portion = Changed | New


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteMerged:
    """Portions written to new files."""

    portions: tuple[Portion, ...]
    write: WriteTask

    @property
    def memory_bytes(self) -> int:
        """Estimated memory of a run."""
        return _TASK_BYTES

    def run(self) -> bytes:
        """Write the rows and return their fragments."""
        ids: list[pa.Array] = []
        schema = self.portions[0].recipe.schema
        rows = sum(map(len, self.portions))
        with closing(read_ahead(self._batches(ids), rows=rows)) as batches:
            reader = pa.RecordBatchReader.from_batches(schema, batches)
            fragments = write_fragments(self.write, reader, ids=SystemIds())
        return to_bytes(with_row_ids(fragments, ids) if ids else fragments)

    def _batches(self, ids: list[pa.Array]) -> Iterator[pa.RecordBatch]:
        for portion in self.portions:
            for batch, kept in portion.rows():
                if kept is not None:
                    ids.append(kept)
                yield batch


def write_merged(
    portions: Sequence[Portion],
    write: WriteTask,
    engine: Engine,
    *,
    progress: Progress | None = None,
) -> tuple[Fragment, ...]:
    """Write portions, in files as full as allowed, and return their fragments."""
    tasks = [
        WriteMerged(portions=group, write=write)
        for group in _grouped(portions, write.max_rows_per_file)
    ]
    job = Job(description=f"write rows of {write.root.uri}", tasks=tasks, progress=progress)
    return tuple(fragment for result in engine.run(job) for fragment in from_bytes(result))


def by_target(pairs: Pairs) -> tuple[Addresses, RowNumbers]:
    """Return pairs in table order."""
    order = np.argsort(pairs.target, kind="stable")
    return pairs.target[order], pairs.source[order]


def _grouped(portions: Sequence[Portion], most: int) -> Iterator[tuple[Portion, ...]]:
    """Split portions into groups of one file each, in order."""
    group: list[Portion] = []
    room = most
    for portion in portions:
        start = 0
        while start < len(portion):
            stop = min(start + room, len(portion))
            group.append(portion.part(start, stop))
            room -= stop - start
            start = stop
            if room == 0:
                yield tuple(group)
                group, room = [], most
    if group:
        yield tuple(group)
