"""An immutable view of one version of a table."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Concatenate, ParamSpec, TypeVar

from lancelake.data.computed_once import computed_once
from lancelake.data.scan_source import ScanSource
from lancelake.data.table_files import FileAt, TableFiles
from lancelake.errors import ObjectNotFoundError, VersionNotFoundError, naming
from lancelake.format import index_meta, layout, manifest_codec, transaction
from lancelake.format.index_meta import IndexMetadata
from lancelake.format.manifest import Manifest
from lancelake.format.manifest_codec import ManifestFile
from lancelake.format.names import ManifestName
from lancelake.format.transaction import Transaction
from lancelake.storage.confined import confined_path
from lancelake.storage.location import Location
from lancelake.storage.open import open_store

Rest = ParamSpec("Rest")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Snapshot:
    """A version: its manifest, and the place of its files."""

    location: Location
    name: ManifestName
    file: ManifestFile
    manifest_size: int

    @staticmethod
    def load(location: Location, name: ManifestName) -> Snapshot:
        """Read the manifest of a version."""
        with naming(location.uri, name.version):
            try:
                data = open_store(location).get(layout.manifest(name.name))
            except ObjectNotFoundError as error:
                raise VersionNotFoundError(f"version {name.version} was not found") from error
            return Snapshot(location, name, manifest_codec.decode(data), len(data))

    @property
    def manifest(self) -> Manifest:
        """What the version consists of."""
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
        """Where the version's files lie."""
        return TableFiles(root=self.location, bases=self.manifest.base_paths)

    @computed_once
    def source(self) -> ScanSource:
        """The version as a scan takes it."""
        path = layout.manifest(self.name.name)
        manifest_at = FileAt(root=self.location, path=path)
        return ScanSource(files=self.files, manifest_at=manifest_at, manifest=self.manifest)

    @computed_once
    def indices(self) -> tuple[IndexMetadata, ...]:
        """Index entries of the version."""
        if self.file.index_section is None:
            return ()
        with naming(self.location.uri, self.version):
            return index_meta.decode_section(self.file.index_section)

    @computed_once
    def transaction(self) -> Transaction | None:
        """What led to the version; None when it was not recorded or no longer is."""
        data = self.file.inline_transaction
        with naming(self.location.uri, self.version):
            if data is None:
                data = self._transaction_file()
            return None if data is None else transaction.decode(data)

    def _transaction_file(self) -> bytes | None:
        if not self.manifest.transaction_file:
            return None
        path = layout.transaction(confined_path(self.manifest.transaction_file))
        try:
            return open_store(self.location).get(path)
        except ObjectNotFoundError:
            return None


def names_table(
    function: Callable[Concatenate[Snapshot, Rest], Result],
) -> Callable[Concatenate[Snapshot, Rest], Result]:
    """Make the errors of a function name the table and version that it is called with."""

    @functools.wraps(function)
    def named(base: Snapshot, /, *args: Rest.args, **kwargs: Rest.kwargs) -> Result:
        with naming(base.location.uri, base.version):
            return function(base, *args, **kwargs)

    return named
