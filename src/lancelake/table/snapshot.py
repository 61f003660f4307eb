"""An immutable view of one version of a table."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lancelake.data.computed_once import computed_once
from lancelake.data.scan_source import ScanSource
from lancelake.data.table_files import FileAt, TableFiles
from lancelake.errors import LanceTableError, ObjectNotFoundError, VersionNotFoundError
from lancelake.format import index_meta, layout, manifest_codec, transaction
from lancelake.format.index_meta import IndexMetadata
from lancelake.format.manifest import Manifest
from lancelake.format.manifest_codec import ManifestFile
from lancelake.format.names import ManifestName
from lancelake.format.transaction import Transaction
from lancelake.storage.confined import confined_path
from lancelake.storage.location import Location
from lancelake.storage.open import open_store


@dataclass(frozen=True)
class Snapshot:
    """A version: its manifest, and the location of its files."""

    location: Location
    name: ManifestName
    file: ManifestFile
    manifest_size: int

    @staticmethod
    def load(location: Location, name: ManifestName) -> Snapshot:
        """Read the manifest of a version."""
        try:
            data = open_store(location).get(layout.manifest(name.name))
            file = manifest_codec.decode(data)
        except ObjectNotFoundError as error:
            problem = f"version {name.version} was not found"
            raise VersionNotFoundError(problem, table=location.uri, version=name.version) from error
        except LanceTableError as error:
            raise error.at(location.uri, name.version) from error.__cause__
        return Snapshot(location, name, file, len(data))

    @property
    def manifest(self) -> Manifest:
        """The manifest of the version."""
        return self.file.manifest

    @property
    def version(self) -> int:
        """The version number stated in the manifest."""
        return self.manifest.version

    @property
    def branch(self) -> str | None:
        """The branch the version is on; None on the main line."""
        return self.manifest.branch

    @computed_once
    def main_location(self) -> Location:
        """Root of the table's main line, where tags and branches are stored."""
        if self.branch is None:
            return self.location
        suffix = f"/{layout.branch_root(self.branch)}"
        return replace(self.location, uri=self.location.uri.removesuffix(suffix))

    @computed_once
    def files(self) -> TableFiles:
        """Locations of the version's files."""
        return TableFiles(root=self.location, bases=self.manifest.base_paths)

    @computed_once
    def source(self) -> ScanSource:
        """The version as the source of a scan."""
        path = layout.manifest(self.name.name)
        manifest_at = FileAt(root=self.location, path=path)
        return ScanSource(files=self.files, manifest_at=manifest_at, manifest=self.manifest)

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
    def transaction(self) -> Transaction | None:
        """The transaction that created the version; None if it is not recorded or was removed."""
        data = self.file.inline_transaction
        try:
            if data is None:
                data = self._transaction_file()
            return None if data is None else transaction.decode(data)
        except LanceTableError as error:
            raise error.at(self.location.uri, self.version) from error.__cause__

    def _transaction_file(self) -> bytes | None:
        if not self.manifest.transaction_file:
            return None
        path = layout.transaction(confined_path(self.manifest.transaction_file))
        try:
            return open_store(self.location).get(path)
        except ObjectNotFoundError:
            return None
