"""Fragments as a Spark table: selected fragments of a version, or uncommitted ones."""

from __future__ import annotations

import zlib
from dataclasses import replace

from lancelake.commit.snapshot import Snapshot
from lancelake.format.ids import FragmentId
from lancelake.spark.jvm.gateway import Gateway
from lancelake.spark.reading.read_plan import ReadRequest
from lancelake.spark.reading.version_table import VersionTable


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


class StagedRowsTable(VersionTable):
    """Rows that were written for a version but are not committed."""

    def identity(self) -> str:
        # Never equal to the version's own rows, which a session may have cached.
        paths = [file.path for f in self.snapshot.manifest.fragments for file in f.files]
        return f"{super().identity()}, staged ({zlib.crc32(repr(paths).encode()):08x})"
