"""Rows as a Spark table: selected fragments or keys of a version, or uncommitted rows."""

from __future__ import annotations

import zlib
from dataclasses import replace

from lancelake.commit.snapshot import Snapshot
from lancelake.format.ids import FragmentId
from lancelake.spark.jvm.gateway import Gateway
from lancelake.spark.reading.read_plan import ReadRequest
from lancelake.spark.reading.version_table import VersionTable
from lancelake.table.merge.key_index import KeyLookup


class FragmentsTable(VersionTable):
    """Fragments of a version, each read by one partition.

    Rows keep the order of their fragment.
    """

    def __init__(
        self, gateway: Gateway, snapshot: Snapshot, name: str, ids: tuple[FragmentId, ...]
    ) -> None:
        super().__init__(gateway, snapshot, name)
        self._ids = ids

    def identity(self) -> str:
        chosen = zlib.crc32(repr(self._ids).encode())
        return f"{super().identity()}, {len(self._ids)} whole fragments ({chosen:08x})"

    def _request(self, given: dict[str, str]) -> ReadRequest:
        found = super()._request(given)
        limits = replace(found.limits, whole_fragments=True)
        return replace(found, fragment_ids=self._ids, limits=limits)


class KeyedRowsTable(VersionTable):
    """Rows of a version that may have one of some keys."""

    def __init__(self, gateway: Gateway, snapshot: Snapshot, name: str, lookup: KeyLookup) -> None:
        super().__init__(gateway, snapshot, name)
        self._lookup = lookup

    def identity(self) -> str:
        keys = self._lookup.keys.table
        buffers = (b for column in keys for chunk in column.chunks for b in chunk.buffers())
        chosen = 0
        for buffer in buffers:
            chosen = zlib.crc32(buffer or b"", chosen)
        return f"{super().identity()}, rows of {keys.num_rows} keys ({chosen:08x})"

    def _request(self, given: dict[str, str]) -> ReadRequest:
        return replace(super()._request(given), lookup=self._lookup)


class StagedRowsTable(VersionTable):
    """Rows that were written for a version but are not committed."""

    def identity(self) -> str:
        # Never equal to the version's own rows, which a session may have cached.
        paths = [file.path for f in self.snapshot.manifest.fragments for file in f.files]
        return f"{super().identity()}, staged ({zlib.crc32(repr(paths).encode()):08x})"
