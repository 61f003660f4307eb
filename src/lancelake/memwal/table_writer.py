"""Writer of a table's MemWAL: routes rows to the writers of their regions."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Sequence
from types import TracebackType
from typing import Self

import pyarrow as pa

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import naming
from lancelake.memwal.initialize import details_of
from lancelake.memwal.routing import Region, routed
from lancelake.memwal.shape import RowShape
from lancelake.memwal.writer import RegionWriter
from lancelake.memwal.writer_options import WriterOptions

_DEFAULT = WriterOptions()


class TableWriter:
    """Upserts and deletes of any keys; threads may share it.

    A region is claimed by the first of its rows. A call is durable when it returns; one that
    fails may have written the rows of some regions.
    """

    def __init__(self, base: Snapshot, options: WriterOptions = _DEFAULT) -> None:
        self._base = base
        self._options = options
        self._lock = threading.Lock()
        self._writers: dict[uuid.UUID, RegionWriter] = {}
        with naming(base.location.uri, base.version):
            self._shape = RowShape.of(base)
            self._spec = details_of(base).spec()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close(flush=kind is None)

    @property
    def writers(self) -> dict[uuid.UUID, RegionWriter]:
        """Writers of the regions that were claimed, for reads of this process's rows."""
        with self._lock:
            return dict(self._writers)

    def put(self, rows: pa.Table | pa.RecordBatch) -> None:
        """Insert rows, or replace those of the same key; durable when this returns."""
        with naming(self._base.location.uri, self._base.version):
            self._write(self._shape.upserts(rows))

    def delete(self, keys: pa.Table | pa.RecordBatch) -> None:
        """Delete the rows of keys, given by the key columns; durable when this returns."""
        with naming(self._base.location.uri, self._base.version):
            self._write(self._shape.tombstones(keys))

    def flush(self) -> None:
        """Write all rows in memory as generations."""
        for writer in self.writers.values():
            writer.flush()

    def close(self, *, flush: bool = True) -> None:
        """Flush and stop all writers; the first failure is raised after all have stopped."""
        failure: Exception | None = None
        for writer in self.writers.values():
            try:
                writer.close(flush=flush)
            except Exception as error:  # noqa: BLE001  # raised below
                failure = failure or error
        if failure is not None:
            raise failure

    def _write(self, batches: Sequence[pa.RecordBatch]) -> None:
        for batch in batches:
            for region, rows in routed(self._spec, self._shape, batch):
                self._writer(region).write((rows,))

    def _writer(self, region: Region) -> RegionWriter:
        with self._lock:
            found = self._writers.get(region.id)
            if found is None:
                found = RegionWriter(self._base, region.new_manifest(), options=self._options)
                self._writers[region.id] = found
            return found
