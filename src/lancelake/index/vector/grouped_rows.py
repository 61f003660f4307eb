"""Encoded rows grouped by partition, in memory or, if they are many, in a temporary file."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lancelake.index.row_ids import U64Array
from lancelake.index.vector.codes import CodeMatrix

_MEMORY_BYTES = 256 << 20


@dataclass(frozen=True, slots=True, eq=False)
class _Run:
    """Rows in the order of their partitions: those of partition i end before `ends[i]`."""

    ids: U64Array
    codes: npt.NDArray[Any]
    ends: npt.NDArray[np.int64]

    def partition(self, number: int) -> tuple[U64Array, CodeMatrix]:
        start = 0 if number == 0 else int(self.ends[number - 1])
        stop = int(self.ends[number])
        return np.asarray(self.ids[start:stop]), np.asarray(self.codes[start:stop])


@dataclass(slots=True)
class GroupedRows:
    """Rows added in any order, and returned partition by partition."""

    count: int
    folder: Path
    _held: list[tuple[npt.NDArray[np.int64], U64Array, CodeMatrix]] = field(default_factory=list)
    _held_bytes: int = 0
    _runs: list[_Run] = field(default_factory=list)

    def add(self, numbers: npt.NDArray[np.int64], ids: U64Array, codes: CodeMatrix) -> None:
        """Add rows of these partitions."""
        if not len(ids):
            return
        self._held.append((numbers, ids, codes))
        self._held_bytes += codes.nbytes + ids.nbytes + numbers.nbytes
        if self._held_bytes > _MEMORY_BYTES:
            self._runs.append(self._spilled(self._sorted()))

    def finish(self) -> None:
        """Sort the rows that are still in memory."""
        if self._held:
            self._runs.append(self._sorted())

    def partition(self, number: int) -> tuple[U64Array, CodeMatrix] | None:
        """Return the rows of a partition in the order in which they were added; None if none."""
        parts = [run.partition(number) for run in self._runs]
        parts = [part for part in parts if len(part[0])]
        if not parts:
            return None
        return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])

    def _sorted(self) -> _Run:
        numbers = np.concatenate([held[0] for held in self._held])
        ids = np.concatenate([held[1] for held in self._held])
        codes = np.concatenate([held[2] for held in self._held])
        self._held, self._held_bytes = [], 0
        order = np.argsort(numbers, kind="stable")
        ends = np.cumsum(np.bincount(numbers, minlength=self.count))
        return _Run(ids[order], codes[order], ends)

    def _spilled(self, run: _Run) -> _Run:
        """Move rows to a file that is mapped into memory."""
        paths = [self.folder / f"{len(self._runs)}-{name}.npy" for name in ("ids", "codes")]
        for path, values in zip(paths, (run.ids, run.codes), strict=True):
            np.save(path, values, allow_pickle=False)
        ids, codes = (np.load(path, mmap_mode="r", allow_pickle=False) for path in paths)
        return _Run(ids, codes, run.ends)


@contextmanager
def grouped_rows(partitions: int) -> Iterator[GroupedRows]:
    """Return an empty collection of rows, whose files are removed in the end."""
    with tempfile.TemporaryDirectory(prefix="lancelake-index-") as folder:
        yield GroupedRows(partitions, Path(folder))
