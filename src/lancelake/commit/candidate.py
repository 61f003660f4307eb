"""Candidate versions: a transaction and its manifest, encoded for publishing."""

from __future__ import annotations

from dataclasses import dataclass

from lancelake.commit.handler import Outcome
from lancelake.commit.lookup import taken_apart
from lancelake.commit.snapshot import Snapshot
from lancelake.commit.version_line import VersionLine
from lancelake.format import index_meta, layout, manifest_codec, transaction
from lancelake.format.manifest_codec import ManifestFile
from lancelake.format.names import (
    ManifestName,
    ManifestNaming,
    manifest_name,
)
from lancelake.format.transaction import Transaction
from lancelake.storage.location import Location
from lancelake.txn.state import TableState


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A version that is ready to be published."""

    transaction: Transaction
    name: ManifestName
    state: TableState
    index_section: bytes | None
    transaction_bytes: bytes
    manifest_bytes: bytes

    @property
    def version(self) -> int:
        """Number of the version."""
        return self.name.version

    @property
    def transaction_path(self) -> str | None:
        """Path of the transaction file."""
        name = self.state.manifest.transaction_file
        return layout.transaction(name) if name else None

    def as_snapshot(self, location: Location) -> Snapshot:
        """Return the version as a reader would load it."""
        file = ManifestFile(
            manifest=self.state.manifest,
            index_section=self.index_section,
            inline_transaction=self.transaction_bytes,
        )
        return Snapshot.of_state(location, self.name, file, len(self.manifest_bytes), self.state)


def make_candidate(mine: Transaction, state: TableState, naming: ManifestNaming) -> Candidate:
    """Encode a version with its transaction inline."""
    manifest = state.manifest
    section = index_meta.encode_section(state.indices) if state.indices else None
    inline = transaction.encode(mine)
    return Candidate(
        transaction=mine,
        name=taken_apart(manifest_name(manifest.version, naming)),
        state=state,
        index_section=section,
        transaction_bytes=inline,
        manifest_bytes=manifest_codec.encode(manifest, index_section=section, transaction=inline),
    )


class Publisher:
    """Publishes the candidates of one transaction; writes each transaction file once."""

    __slots__ = ("_line", "_stored")

    def __init__(self, line: VersionLine) -> None:
        """Create a publisher for a version line."""
        self._line = line
        self._stored: tuple[str, bytes] | None = None

    def publish(self, candidate: Candidate) -> Outcome:
        """Write the transaction file, then the manifest if its version is free."""
        path, data = candidate.transaction_path, candidate.transaction_bytes
        if path is not None and (path, data) != self._stored:
            # The manifest has a copy, so this file may be lost when a machine stops.
            self._line.store.put(path, data, durable=False)
            self._stored = (path, data)
        return self._line.handler.create(
            candidate.version, candidate.name.name, candidate.manifest_bytes
        )
