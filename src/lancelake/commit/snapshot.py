"""Snapshot: one version of a table, as a value that commits, scans and faces share."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Concatenate, ParamSpec, TypeVar

from lancelake.errors import ObjectNotFoundError, VersionNotFoundError, naming
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

Rest = ParamSpec("Rest")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Snapshot:
    """A version: its manifest, index entries and transaction, and the location of its files."""

    location: Location
    name: ManifestName
    file: ManifestFile
    manifest_size: int

    @staticmethod
    def load(
        location: Location, name: ManifestName, *, store: ObjectStore | None = None
    ) -> Snapshot:
        """Read the manifest of a version, from the location's own store unless one is given."""
        with naming(location.uri, name.version):
            try:
                data = (store or open_store(location)).get(layout.manifest(name.name))
            except ObjectNotFoundError as error:
                raise VersionNotFoundError(f"version {name.version} was not found") from error
            return Snapshot(location, name, manifest_codec.decode(data), len(data))

    @staticmethod
    def of_state(
        location: Location, name: ManifestName, file: ManifestFile, size: int, state: TableState
    ) -> Snapshot:
        """Return a version that was just built; its parts are not decoded again."""
        made = Snapshot(location, name, file, size)
        vars(made)["state"], vars(made)["indices"] = state, state.indices
        return made

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
        return self.transaction_in(open_store(self.location))

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


def names_table(
    function: Callable[Concatenate[Snapshot, Rest], Result],
) -> Callable[Concatenate[Snapshot, Rest], Result]:
    """Make the errors of a function name the table and version that it is called with."""

    @functools.wraps(function)
    def named(base: Snapshot, /, *args: Rest.args, **kwargs: Rest.kwargs) -> Result:
        with naming(base.location.uri, base.version):
            return function(base, *args, **kwargs)

    return named
