"""Metadata of fragments and of their files."""

from __future__ import annotations

import json
import json as json_text
import operator
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Literal
from urllib.parse import unquote

from lancelake.core.values.metadata import (
    BaseId,
    DeletionFileType,
    FieldId,
    Fragment,
    FragmentId,
    found_file,
    layout,
)
from lancelake.core.values.metadata import DataFile as FileEntry
from lancelake.core.values.metadata import DeletionFile as Entry
from lancelake.errors import InvalidRequestError, LanceTableError, UnsupportedError
from lancelake.pylance._values.opened import OpenedDataset
from lancelake.pylance._values.row_sequences import (
    RowDatasetVersionMeta,
    RowIdMeta,
    RowIdSequence,
    Stored,
    to_stored,
)

__all__ = [
    "DataFile",
    "DeletionFile",
    "FragmentMetadata",
    "RowDatasetVersionMeta",
    "RowIdMeta",
    "RowIdSequence",
    "from_data_file",
    "from_fragment",
    "to_data_file",
    "to_fragment",
]

_TYPES = {"array": DeletionFileType.ARROW_ARRAY, "bitmap": DeletionFileType.BITMAP}
_NAMES: dict[DeletionFileType, Literal["array", "bitmap"]] = {
    DeletionFileType.ARROW_ARRAY: "array",
    DeletionFileType.BITMAP: "bitmap",
}


class DeletionFile:
    """The file with the deleted rows of a fragment; it is immutable."""

    __slots__ = ("_entry",)

    def __init__(
        self,
        read_version: int,
        id: int,
        file_type: Literal["array", "bitmap"],
        num_deleted_rows: int,
        base_id: int | None = None,
    ) -> None:
        count = operator.index(num_deleted_rows)
        self._entry = _entry(read_version, id, file_type, count, base_id)

    @property
    def read_version(self) -> int:
        """The version that was read when the rows were deleted."""
        return self._entry.read_version

    @property
    def id(self) -> int:
        """Distinguishes this file from others of the same fragment and version."""
        return self._entry.id

    @property
    def file_type(self) -> Literal["array", "bitmap"]:
        """Encoding of the file."""
        return _NAMES[self._entry.file_type]

    @property
    def num_deleted_rows(self) -> int | None:
        """Number of rows in the file; None if it is not recorded."""
        return self._entry.num_deleted_rows

    @property
    def base_id(self) -> int | None:
        """Base path of the file; None for the table's own root."""
        return self._entry.base_id

    def asdict(self) -> dict[str, str | int | None]:
        """Return the values by name."""
        return {
            "read_version": self.read_version,
            "id": self.id,
            "file_type": self.file_type,
            "num_deleted_rows": self.num_deleted_rows,
            "base_id": self.base_id,
        }

    def path(self, fragment_id: int, base_uri: str | None = None) -> str:
        """Return the location of the file, below the table's root or below `base_uri`."""
        below = layout.deletion_file(
            fragment_id=fragment_id,
            read_version=self.read_version,
            unique=self.id,
            suffix=self._entry.file_type.value,
        )
        base = unquote(base_uri or "").removeprefix("/").removesuffix("/")
        if "" in base.split("/")[1:]:
            msg = f"base_uri {base_uri!r} has an empty segment"
            raise InvalidRequestError(msg, action="Use a path without a scheme.")
        return f"{base}/{below}" if base else below

    def json(self) -> str:
        """Return the values as JSON text."""
        return json_text.dumps(self.asdict(), separators=(",", ":"))

    @staticmethod
    def from_json(json: str) -> DeletionFile:
        """Parse the output of `json`."""
        try:
            body = json_text.loads(json)
            count, base_id = body.get("num_deleted_rows"), body.get("base_id")
            entry = _entry(body["read_version"], body["id"], body["file_type"], count, base_id)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            msg = f"this JSON does not describe a deletion file: {error!r}"
            raise InvalidRequestError(msg) from error
        return from_entry(entry)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeletionFile) and self.asdict() == other.asdict()

    def __hash__(self) -> int:
        return hash(tuple(self.asdict().items()))

    def __repr__(self) -> str:
        count = self.num_deleted_rows
        rows = "" if count is None else f", num_deleted_rows={count}"
        return f"DeletionFile(type='{self.file_type}'{rows})"

    def __reduce__(self) -> tuple[Callable[[Entry], DeletionFile], tuple[Entry]]:
        return from_entry, (self._entry,)


def from_entry(entry: Entry) -> DeletionFile:
    """Create it from an entry of the format."""
    file = DeletionFile.__new__(DeletionFile)
    file._entry = entry
    return file


def to_entry(file: DeletionFile) -> Entry:
    """Return the entry of the format, including fields without a public attribute."""
    return file._entry


def _entry(
    read_version: int, id: int, file_type: str, count: int | None, base_id: int | None
) -> Entry:
    kind = _TYPES.get(file_type)
    if kind is None:
        msg = f"file_type must be 'array' or 'bitmap', not {file_type!r}"
        raise InvalidRequestError(msg, found=file_type)
    return Entry(
        file_type=kind,
        read_version=_unsigned("read_version", read_version, bits=64),
        id=_unsigned("id", id, bits=64),
        num_deleted_rows=None if count is None else _unsigned("num_deleted_rows", count, bits=64),
        base_id=None if base_id is None else BaseId(_unsigned("base_id", base_id, bits=32)),
    )


def _unsigned(name: str, value: int, *, bits: int) -> int:
    number = operator.index(value)
    if not 0 <= number < 1 << bits:
        msg = f"{name} must be a number below 2**{bits}, not {number}"
        raise InvalidRequestError(msg, found=number)
    return number


Json = Any  # whatever `json` can carry


class _Path(str):
    """A path that can also be called, since it used to be a method."""

    __slots__ = ()

    def __call__(self) -> str:
        warnings.warn(
            "DataFile.path() is deprecated, use DataFile.path", DeprecationWarning, stacklevel=2
        )
        return self

    def __reduce__(self) -> tuple[Callable[[object], str], tuple[str]]:
        return str, (str(self),)


@dataclass(init=False, repr=False)
class DataFile:
    """A file with some columns of a fragment."""

    _path: str
    fields: list[int]
    column_indices: list[int] = field(default_factory=list)
    file_major_version: int = 0
    file_minor_version: int = 0
    file_size_bytes: int | None = None
    base_id: int | None = None

    def __init__(
        self,
        path: str,
        fields: list[int],
        column_indices: list[int] | None = None,
        file_major_version: int = 0,
        file_minor_version: int = 0,
        file_size_bytes: int | None = None,
        base_id: int | None = None,
    ) -> None:
        self._path = path
        self.fields = fields
        self.column_indices = column_indices or []
        self.file_major_version = file_major_version
        self.file_minor_version = file_minor_version
        self.file_size_bytes = file_size_bytes
        self.base_id = base_id
        self._unknown = b""

    @classmethod
    def create(cls, dataset: OpenedDataset, path: str, *, base_id: int | None = None) -> DataFile:
        """Describe a data file in the data folder of a table."""
        snapshot = dataset._snapshot
        base = None if base_id is None else BaseId(base_id)
        return from_data_file(
            found_file(snapshot.files, path, snapshot.manifest.schema, base).entry
        )

    @property
    def path(self) -> str:
        """The file's path below the folder of data files."""
        return _Path(self._path)

    def field_ids(self) -> list[int]:
        """Return `fields`; deprecated."""
        msg = "DataFile.field_ids is deprecated, use DataFile.fields"
        warnings.warn(msg, DeprecationWarning, stacklevel=2)
        return self.fields

    def __repr__(self) -> str:
        return (
            f"DataFile(path='{self._path}', fields={self.fields}, "
            f"column_indices={self.column_indices}, "
            f"file_major_version={self.file_major_version}, "
            f"file_minor_version={self.file_minor_version}, "
            f"file_size_bytes={self.file_size_bytes})"
        )


@dataclass
class FragmentMetadata:
    """Rows of the table, and the files with their columns."""

    id: int
    files: list[DataFile]
    physical_rows: int | None
    deletion_file: DeletionFile | None = None
    row_id_meta: RowIdMeta | None = None
    created_at_version_meta: RowDatasetVersionMeta | None = None
    last_updated_at_version_meta: RowDatasetVersionMeta | None = None
    overlays: list[Json] = field(default_factory=list)
    _unknown: bytes = field(default=b"", kw_only=True, repr=False, compare=False)

    @property
    def num_deletions(self) -> int | None:
        """Number of deleted rows; None if the manifest does not record it."""
        return 0 if self.deletion_file is None else self.deletion_file.num_deleted_rows

    @property
    def num_rows(self) -> int | None:
        """Number of live rows; None if the manifest does not record it."""
        physical, deleted = self.physical_rows, self.num_deletions
        return None if physical is None or deleted is None else physical - deleted

    def data_files(self) -> list[DataFile]:
        """Return `files`; deprecated."""
        msg = "FragmentMetadata.data_files is deprecated, use .files"
        warnings.warn(msg, DeprecationWarning, stacklevel=2)
        return self.files

    def to_json(self) -> dict[str, Json]:
        """Return values that `json.dumps` accepts."""
        _ensure_no_overlays(self.overlays)
        return {
            "id": self.id,
            "files": [_show_file(file) for file in self.files],
            "overlays": [],
            "physical_rows": self.physical_rows,
            "deletion_file": _asdict(self.deletion_file),
            "row_id_meta": _asdict(self.row_id_meta),
            "created_at_version_meta": _asdict(self.created_at_version_meta),
            "last_updated_at_version_meta": _asdict(self.last_updated_at_version_meta),
        }

    @staticmethod
    def from_json(json_data: str) -> FragmentMetadata:
        """Parse the output of `to_json`, from here or from an official release."""
        try:
            return _read(json.loads(json_data))
        except LanceTableError:
            raise
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            msg = f"this JSON does not describe a fragment: {error!r}"
            raise InvalidRequestError(msg) from error


def from_fragment(fragment: Fragment) -> FragmentMetadata:
    """Create it from a fragment of the format."""
    deletion = fragment.deletion_file
    created, updated = fragment.created_at_versions, fragment.last_updated_at_versions
    return FragmentMetadata(
        fragment.id,
        [from_data_file(file) for file in fragment.files],
        fragment.physical_rows,
        None if deletion is None else from_entry(deletion),
        None if fragment.row_ids is None else RowIdMeta(fragment.row_ids),
        None if created is None else RowDatasetVersionMeta(created),
        None if updated is None else RowDatasetVersionMeta(updated),
        _unknown=fragment.unknown,
    )


def to_fragment(metadata: FragmentMetadata) -> Fragment:
    """Return the fragment of the format, including fields without a public attribute."""
    _ensure_no_overlays(metadata.overlays)
    deletion = metadata.deletion_file
    return Fragment(
        id=FragmentId(metadata.id),
        files=tuple(to_data_file(file) for file in metadata.files),
        deletion_file=None if deletion is None else to_entry(deletion),
        row_ids=_to_stored(metadata.row_id_meta),
        last_updated_at_versions=_to_stored(metadata.last_updated_at_version_meta),
        created_at_versions=_to_stored(metadata.created_at_version_meta),
        physical_rows=metadata.physical_rows,
        unknown=metadata._unknown,
    )


def from_data_file(file: FileEntry) -> DataFile:
    """Create it from a data file of the format."""
    shown = DataFile(
        file.path,
        list(file.fields),
        list(file.column_indices),
        file.file_major_version,
        file.file_minor_version,
        file.file_size_bytes,
        file.base_id,
    )
    shown._unknown = file.unknown
    return shown


def to_data_file(file: DataFile) -> FileEntry:
    """Return the data file of the format, including fields without a public attribute."""
    return FileEntry(
        path=str(file.path),
        fields=tuple(FieldId(i) for i in file.fields),
        column_indices=tuple(file.column_indices),
        file_major_version=file.file_major_version,
        file_minor_version=file.file_minor_version,
        file_size_bytes=file.file_size_bytes or None,
        base_id=None if file.base_id is None else BaseId(file.base_id),
        unknown=file._unknown,
    )


def _to_stored(meta: RowIdMeta | RowDatasetVersionMeta | None) -> Stored | None:
    return None if meta is None else to_stored(meta)


def _show_file(file: DataFile) -> dict[str, Json]:
    shown = asdict(file)
    shown["path"] = shown.pop("_path")
    return shown


def _asdict(value: DeletionFile | RowIdMeta | RowDatasetVersionMeta | None) -> Json:
    return None if value is None else value.asdict()


def _read(body: dict[str, Json]) -> FragmentMetadata:
    _ensure_no_overlays(body.get("overlays") or [])
    deletion, row_ids = body.get("deletion_file"), body.get("row_id_meta")
    created = body.get("created_at_version_meta")
    updated = body.get("last_updated_at_version_meta")
    return FragmentMetadata(
        body["id"],
        [DataFile(**file) for file in body["files"]],
        body["physical_rows"],
        None if deletion is None else DeletionFile.from_json(json.dumps(deletion)),
        None if row_ids is None else RowIdMeta.from_dict(row_ids),
        None if created is None else RowDatasetVersionMeta.from_dict(created),
        None if updated is None else RowDatasetVersionMeta.from_dict(updated),
    )


def _ensure_no_overlays(overlays: list[Json]) -> None:
    if overlays:
        raise UnsupportedError("data overlays are not supported")
