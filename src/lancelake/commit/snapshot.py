"""Snapshot: one version of a table, as a value that commits, scans and faces share."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lancelake.errors import LanceTableError, ObjectNotFoundError, VersionNotFoundError
from lancelake.format import index_meta, layout, manifest_codec, transaction
from lancelake.format.computed_once import computed_once
from lancelake.format.index_meta import IndexMetadata
from lancelake.format.manifest import Manifest
from lancelake.format.manifest_codec import ManifestFile
from lancelake.format.names import ManifestName
from lancelake.format.schema import Schema
from lancelake.format.transaction import Transaction
from lancelake.storage.confined import confined_path
from lancelake.storage.location import Location
from lancelake.storage.open import open_store
from lancelake.storage.store import ObjectStore
from lancelake.storage.table_files import FileAt, TableFiles
from lancelake.txn.state import TableState


@dataclass(frozen=True)
class Snapshot:
    """A version: its manifest, the sections beside it, and where its files are stored."""

    location: Location
    name: ManifestName
    file: ManifestFile
    manifest_size: int

    @staticmethod
    def load(
        location: Location, name: ManifestName, *, store: ObjectStore | None = None
    ) -> Snapshot:
        """Read the manifest of a version, from the location's own store unless one is given."""
        try:
            data = (store or open_store(location)).get(layout.manifest(name.name))
            file = manifest_codec.decode(data)
        except ObjectNotFoundError as error:
            problem = f"version {name.version} was not found"
            raise VersionNotFoundError(problem, table=location.uri, version=name.version) from error
        except LanceTableError as error:
            raise error.at(location.uri, name.version) from error.__cause__
        return Snapshot(location, name, file, len(data))

    @staticmethod
    def of_state(
        location: Location, name: ManifestName, file: ManifestFile, size: int, state: TableState
    ) -> Snapshot:
        """Return a version that was just built; what was encoded is not decoded again."""
        made = Snapshot(location, name, file, size)
        vars(made)["state"], vars(made)["indices"] = state, state.indices
        return made

    @property
    def manifest(self) -> Manifest:
        """The manifest: schema, fragments, config."""
        return self.file.manifest

    @property
    def version(self) -> int:
        """The version's number, which the manifest states."""
        return self.manifest.version

    @property
    def branch(self) -> str | None:
        """The branch the version is on; None on the main line."""
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
        """Places of the version's files."""
        return TableFiles(root=self.location, bases=self.manifest.base_paths)

    @computed_once
    def manifest_at(self) -> FileAt:
        """Place of the manifest."""
        return FileAt(root=self.location, path=layout.manifest(self.name.name))

    @computed_once
    def indices(self) -> tuple[IndexMetadata, ...]:
        """Index entries of the version."""
        if self.file.index_section is None:
            return ()
        try:
            return index_meta.decode_section(self.file.index_section)
        except LanceTableError as error:
            raise error.at(self.location.uri, self.version) from error.__cause__

    @computed_once
    def state(self) -> TableState:
        """The version as the rules of changes see it."""
        return TableState(manifest=self.manifest, indices=self.indices)

    @computed_once
    def transaction(self) -> Transaction | None:
        """The transaction of the version; None when it was not recorded or no longer is."""
        return self.transaction_in(open_store(self.location))

    def transaction_in(self, store: ObjectStore) -> Transaction | None:
        """Read the transaction: the inline copy, else its file in a store."""
        data = self.file.inline_transaction
        try:
            if data is None:
                data = self._transaction_file(store)
            return None if data is None else transaction.decode(data)
        except LanceTableError as error:
            raise error.at(self.location.uri, self.version) from error.__cause__

    def with_schema(self, schema: Schema) -> Snapshot:
        """Return the version cut down to some of its columns, to be scanned."""
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
