"""Sync files of many fragments to disk while the next ones are written."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Self

from lancelake.data.column_file import sync_file, sync_names
from lancelake.format.fragment import DataFile
from lancelake.storage.location import Location

# Disks write the files of several sync calls in parallel.
_FILES_AT_ONCE = 16


class Syncing:
    """Syncs files written below a root; all are durable when the context exits."""

    def __init__(self, root: Location) -> None:
        self._root = root
        self._pool = ThreadPoolExecutor(_FILES_AT_ONCE, thread_name_prefix="sync")
        self._started: list[Future[None]] = []

    def __enter__(self) -> Self:
        return self

    def add(self, file: DataFile | None) -> None:
        """Start syncing a file."""
        self._started.append(self._pool.submit(sync_file, self._root, file))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Wait for all files, then for their folder entries; after an error for none."""
        self._pool.shutdown(cancel_futures=kind is not None)
        if kind is None:
            for future in self._started:
                future.result()
            sync_names(self._root)
