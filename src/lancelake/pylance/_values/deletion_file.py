"""Deletion files of fragments."""

from __future__ import annotations

import json as json_text
import operator
from collections.abc import Callable
from typing import Literal
from urllib.parse import unquote

from lancelake.errors import InvalidRequestError
from lancelake.format import layout
from lancelake.format.fragment import DeletionFile as Entry
from lancelake.format.fragment import DeletionFileType
from lancelake.format.ids import BaseId

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
    made = DeletionFile.__new__(DeletionFile)
    made._entry = entry
    return made


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
