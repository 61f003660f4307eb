"""Loading of a version: its manifest, index entries and transaction."""

from __future__ import annotations

from dataclasses import dataclass

from lancelake.commit.version_line import VersionLine, open_line
from lancelake.errors import LanceTableError, ObjectNotFoundError, VersionNotFoundError
from lancelake.format import index_meta, layout, manifest_codec, transaction
from lancelake.format.manifest_codec import ManifestFile
from lancelake.format.names import ManifestName
from lancelake.format.transaction import Transaction
from lancelake.storage.confined import confined_path
from lancelake.storage.location import Location
from lancelake.txn.state import TableState


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A version as stored."""

    name: ManifestName
    file: ManifestFile
    state: TableState
    size_bytes: int

    @property
    def version(self) -> int:
        """The version's number, which the manifest states."""
        return self.state.manifest.version


def load_state(location: Location, name: ManifestName) -> tuple[ManifestFile, TableState]:
    """Read a version of the table at a location."""
    loaded = load(open_line(location), name)
    return loaded.file, loaded.state


def load(line: VersionLine, name: ManifestName) -> Loaded:
    """Read a version."""
    try:
        data = line.store.get(layout.manifest(name.name))
        file = manifest_codec.decode(data)
        section = file.index_section
        indices = () if section is None else index_meta.decode_section(section)
    except ObjectNotFoundError as error:
        problem = f"version {name.version} was not found"
        raise VersionNotFoundError(
            problem, table=line.location.uri, version=name.version
        ) from error
    except LanceTableError as error:
        raise error.at(line.location.uri, name.version) from error.__cause__
    state = TableState(manifest=file.manifest, indices=indices)
    return Loaded(name=name, file=file, state=state, size_bytes=len(data))


def transaction_of(line: VersionLine, loaded: Loaded) -> Transaction | None:
    """Return the transaction of a version: the inline copy, else the file; None without both."""
    data = loaded.file.inline_transaction
    try:
        if data is None:
            data = _transaction_file(line, loaded.state.manifest.transaction_file)
        return None if data is None else transaction.decode(data)
    except LanceTableError as error:
        raise error.at(line.location.uri, loaded.version) from error.__cause__


def _transaction_file(line: VersionLine, name: str) -> bytes | None:
    if not name:
        return None
    try:
        return line.store.get(layout.transaction(confined_path(name)))
    except ObjectNotFoundError:
        return None
