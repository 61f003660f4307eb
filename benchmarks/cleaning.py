"""Benchmarks of cleanup and of listing many versions."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

import lancelake
from benchmarks import tables
from benchmarks.measure import Case, compare
from benchmarks.rows import fresh_copy
from lancelake.storage import disk_sync

ROUNDS = 5

_WORK = tables.ROOT / "cleaning-work.lance"
_ALL = timedelta(microseconds=1)
_ROWS = 10


def cases(versions: int = 2_000, listed: int = 5_000) -> Iterator[Case]:
    """Yield the comparisons of cleanups and of histories; neither waits for the disk."""
    for name, path in (("overwrites", overwritten(versions)), ("appends", appended(versions))):
        yield _case(f"clean up {versions:,} versions, {name}", Path(path))
    source = Path(tables.many_versions(listed))
    yield _case_of_versions(f"versions() of {listed:,} versions", source, target=0.5, is_new=False)
    name = f"versions() of {listed:,} versions, never seen before"
    yield _case_of_versions(name, source, target=1.0, is_new=True)


def overwritten(count: int) -> str:
    """Make a table whose every version replaces all rows."""
    return _made(count, "overwritten", "overwrite")


def appended(count: int) -> str:
    """Make a table that grew by a file with every version, and was compacted at the end."""
    return _made(count, "appended", "append")


def _made(count: int, name: str, mode: str) -> str:
    path = tables.ROOT / f"{name}-{count}.lance"
    if not path.exists():
        rows = pa.table({"id": pa.array(range(_ROWS), pa.int64())})
        lance.write_dataset(rows, str(path))
        for _ in range(count - 1):
            lance.write_dataset(rows, str(path), mode=mode)
        lance.dataset(str(path)).optimize.compact_files()
    return str(path)


def _case(name: str, path: Path) -> Case:
    return Case(
        name=name,
        target=1.0,
        before=lambda: fresh_copy(path, _WORK),
        ours=_ours,
        official=lambda: _cleaned(lance),
        rounds=ROUNDS,
    )


def _case_of_versions(name: str, source: Path, *, target: float, is_new: bool) -> Case:
    """Compare histories; a table that this process has not read is at another path."""
    numbers = itertools.count()
    at = [source]

    def moved() -> None:
        shutil.rmtree(_WORK, ignore_errors=True)
        at[0] = _WORK / f"{next(numbers)}.lance"
        fresh_copy(source, at[0])

    return Case(
        name=name,
        target=target,
        before=moved if is_new else None,
        ours=lambda: _versions(lancelake, str(at[0])),
        official=lambda: _versions(lance, str(at[0])),
        rounds=ROUNDS,
    )


def _ours() -> tuple[int, ...]:
    with disk_sync.waiting(waits=False):
        return _cleaned(lancelake)


def _cleaned(library: Any) -> tuple[int, ...]:
    """Remove all versions but the newest, and return what was removed."""
    stats = library.dataset(str(_WORK)).cleanup_old_versions(_ALL)
    return (
        stats.old_versions,
        stats.bytes_removed,
        stats.data_files_removed,
        stats.transaction_files_removed,
    )


def _versions(library: Any, uri: str) -> list[int]:
    return [version["version"] for version in library.dataset(uri).versions()]


def main() -> None:
    """Measure and print."""
    tables.ROOT.mkdir(exist_ok=True)
    for case in cases():
        result = compare(case)
        print(
            f"{result.name:44s} ours {result.ours_s:6.3f} s  official {result.official_s:6.3f} s  "
            f"ratio {result.ratio:5.2f}  target {result.target}",
            flush=True,
        )


if __name__ == "__main__":
    main()
