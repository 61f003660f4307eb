"""Snapshot: one version of a table, as a value that commits, scans and faces share."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from lancelake.errors import ObjectNotFoundError, VersionNotFoundError, naming
from lancelake.format import index_meta, layout, manifest_codec, transaction
from lancelake.format.frozen import computed_once
from lancelake.format.index_meta import IndexMetadata
from lancelake.format.layout import ManifestName
from lancelake.format.manifest import Manifest
from lancelake.format.manifest_codec import ManifestFile
from lancelake.format.schema import Schema
from lancelake.format.transaction import Transaction
from lancelake.storage.location import Location
from lancelake.storage.store import ObjectStore, confined_path
from lancelake.storage.table_files import FileAt, TableFiles
from lancelake.txn.options import TableState


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitMetrics:
    """What a commit took.

    Attributes:
        attempts: Manifests that were written; 0 if an earlier call had committed the change.
        concurrent_commits: Commits of other writers that were checked for conflicts.
        rebases: How often the change was rebased on a newer version.
        lost_replies: Requests to the store whose replies were lost.
        milliseconds: Duration of the commit, without the work before it.
        manifest_bytes: Size of the manifest.
    """

    attempts: int = 0
    concurrent_commits: int = 0
    rebases: int = 0
    lost_replies: int = 0
    milliseconds: int = 0
    manifest_bytes: int = 0


@dataclass(frozen=True)
class Snapshot:
    """A version: its manifest, index entries and transaction, and the location of its files."""

    location: Location
    name: ManifestName
    file: ManifestFile
    manifest_size: int
    commit: CommitMetrics | None = field(default=None, compare=False)
    """What its commit took, if this process has just made it."""

    @staticmethod
    def load(
        location: Location, name: ManifestName, *, store: ObjectStore | None = None
    ) -> Snapshot:
        """Read the manifest of a version, from the location's own store unless one is given."""
        with naming(location.uri, name.version):
            try:
                data = (store or location.store).get(layout.manifest(name.name))
            except ObjectNotFoundError as error:
                raise VersionNotFoundError(f"version {name.version} was not found") from error
            return Snapshot(location, name, manifest_codec.decode(data), len(data))

    @staticmethod
    def of_state(
        location: Location, name: ManifestName, file: ManifestFile, size: int, state: TableState
    ) -> Snapshot:
        """Return a version that was just built; its parts are not decoded again."""
        snapshot = Snapshot(location, name, file, size)
        vars(snapshot)["state"], vars(snapshot)["indices"] = state, state.indices
        return snapshot

    def after(self, commit: CommitMetrics) -> Snapshot:
        """Return the version with what its commit took."""
        snapshot = Snapshot.__new__(Snapshot)
        vars(snapshot).update(vars(self), commit=commit)
        return snapshot

    @property
    def manifest(self) -> Manifest:
        """The manifest: schema, fragments, config."""
        return self.file.manifest

    @property
    def version(self) -> int:
        """Version number, from the manifest."""
        return self.manifest.version

    @property
    def branch(self) -> str | None:
        """Branch of the version; None on the main line."""
        return self.manifest.branch

    @computed_once
    def main_location(self) -> Location:
        """Root of the table's main line, where tags and branches are recorded."""
        if self.branch is None:
            return self.location
        suffix = f"/{layout.branch_root(self.branch)}"
        return replace(self.location, uri=self.location.uri.removesuffix(suffix))

    @computed_once
    def files(self) -> TableFiles:
        """Locations of the version's files."""
        return TableFiles(root=self.location, bases=self.manifest.base_paths)

    @computed_once
    def manifest_at(self) -> FileAt:
        """Location of the manifest."""
        return FileAt(root=self.location, path=layout.manifest(self.name.name))

    @computed_once
    def indices(self) -> tuple[IndexMetadata, ...]:
        """Index entries of the version."""
        if self.file.index_section is None:
            return ()
        with naming(self.location.uri, self.version):
            return index_meta.decode_section(self.file.index_section)

    @computed_once
    def state(self) -> TableState:
        """Manifest and index entries, as conflict rules and builders use them."""
        return TableState(manifest=self.manifest, indices=self.indices)

    @computed_once
    def transaction(self) -> Transaction | None:
        """The transaction of the version; None if it was not recorded or was removed."""
        return self.transaction_in(self.location.store)

    def transaction_in(self, store: ObjectStore) -> Transaction | None:
        """Read the transaction: the inline copy, else its file in a store."""
        data = self.file.inline_transaction
        with naming(self.location.uri, self.version):
            if data is None:
                data = self._transaction_file(store)
            return None if data is None else transaction.decode(data)

    def with_schema(self, schema: Schema) -> Snapshot:
        """Return the version with a projected schema, for scans."""
        manifest = replace(self.manifest, schema=schema)
        return replace(self, file=replace(self.file, manifest=manifest))

    def _transaction_file(self, store: ObjectStore) -> bytes | None:
        if not self.manifest.transaction_file:
            return None
        path = layout.transaction(confined_path(self.manifest.transaction_file))
        try:
            return store.get(path)
        except ObjectNotFoundError:
            return None
