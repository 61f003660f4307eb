"""Sets and sequences of rows."""

from __future__ import annotations

import json as json_text
import operator
from collections.abc import Callable, Iterable, Iterator, MutableSet, Set
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from lancelake.core.values.metadata import ExternalFile, Range, Segment, rowids
from lancelake.core.values.metadata import RowIdSequence as Ids
from lancelake.errors import InvalidRequestError, UnsupportedError
from lancelake.pylance._values.opened import call_text

Json = Any  # whatever `json` can carry
Stored = bytes | ExternalFile

_MAX_ID = (1 << 64) - 1
_SHOWN_IDS = 10


class _Meta:
    """Bytes in the manifest, or a slice of a file with them."""

    __slots__ = ("_stored",)

    _inline: ClassVar[str]
    _external: ClassVar[str]

    def __init__(self, stored: Stored) -> None:
        self._stored = stored

    def __repr__(self) -> str:
        return call_text(self, self._stored)

    def asdict(self) -> dict[str, Json]:
        """Return the data, or its location, by kind of storage."""
        if isinstance(self._stored, bytes):
            return {self._inline: list(self._stored)}
        file = self._stored
        return {self._external: {"path": file.path, "offset": file.offset, "size": file.size}}

    @classmethod
    def from_dict(cls, dict: dict[str, Json]) -> Self:
        """Parse the output of `asdict`; names are case-insensitive, as releases differ."""
        try:
            ((name, body),) = dict.items()
            if name.lower() == "inline":
                return cls(bytes(body))
            if name.lower() == "external":
                file = ExternalFile(path=body["path"], offset=body["offset"], size=body["size"])
                return cls(file)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            msg = f"this does not describe a {cls.__name__}: {error!r}"
            raise InvalidRequestError(msg) from error
        raise UnsupportedError(f"unknown storage {name!r} of a {cls.__name__}", found=name)

    def json(self) -> str:
        """Return `asdict` as JSON text."""
        return json_text.dumps(self.asdict(), separators=(",", ":"))

    @classmethod
    def from_json(cls, json: str) -> Self:
        """Parse the output of `json`."""
        try:
            body = json_text.loads(json)
        except ValueError as error:
            raise InvalidRequestError(f"this text is not JSON: {error}") from error
        return cls.from_dict(body)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and isinstance(other, _Meta) and self._same(other)

    def _same(self, other: _Meta) -> bool:
        return self._stored == other._stored

    def __hash__(self) -> int:
        return hash(self._stored)


class RowIdMeta(_Meta):
    """The stable row ids of a fragment, encoded."""

    __slots__ = ()

    _inline = "Inline"
    _external = "External"


class RowDatasetVersionMeta(_Meta):
    """Encoded created-at or last-updated-at versions of a fragment's rows."""

    __slots__ = ()

    _inline = "inline"
    _external = "external"


class RowIdSequence:
    """The stable row ids of a fragment in row order, to pass with a new fragment.

    A sequence shorter than the fragment belongs to its first rows; the others get ids at commit.
    """

    __slots__ = ("_ids",)

    def __init__(self, row_ids: range | pa.Array | pa.ChunkedArray | Iterable[int]) -> None:
        self._ids = Ids(_segments(row_ids))

    @staticmethod
    def from_inline_metadata(metadata: RowIdMeta) -> RowIdSequence:
        """Decode the ids in a fragment's metadata."""
        stored = to_stored(metadata)
        if not isinstance(stored, bytes):
            raise UnsupportedError("row ids in a separate file are not supported")
        sequence = RowIdSequence.__new__(RowIdSequence)
        sequence._ids = Ids(rowids.decode_row_ids(stored))
        return sequence

    def to_inline_metadata(self) -> RowIdMeta:
        """Return the ids as a fragment's `row_id_meta`."""
        return RowIdMeta(self._ids.encode())

    def to_pyarrow(self) -> pa.UInt64Array:
        """Return the ids as an array."""
        return pa.array(self._ids.values(), pa.uint64())

    def __len__(self) -> int:
        return len(self._ids)

    def __iter__(self) -> Iterator[int]:
        return iter(self._ids.values().tolist())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RowIdSequence):
            return NotImplemented
        return bool(np.array_equal(self._ids.values(), other._ids.values()))

    def __hash__(self) -> int:
        return hash(self._ids.values().tobytes())

    def __repr__(self) -> str:
        shown = ", ".join(str(i) for i in self._ids.values()[:_SHOWN_IDS])
        if len(self) > _SHOWN_IDS:
            return f"RowIdSequence([{shown}, ...], len={len(self)})"
        return f"RowIdSequence([{shown}])"

    def __reduce__(self) -> tuple[Callable[[RowIdMeta], RowIdSequence], tuple[RowIdMeta]]:
        return RowIdSequence.from_inline_metadata, (self.to_inline_metadata(),)


def to_stored(meta: _Meta) -> Stored:
    """Return the form stored by the format."""
    return meta._stored


def _segments(row_ids: range | pa.Array | pa.ChunkedArray | Iterable[int]) -> tuple[Segment, ...]:
    if isinstance(row_ids, range) and row_ids.step == 1:
        if len(row_ids) == 0:
            return ()
        if not 0 <= row_ids.start <= row_ids.stop <= _MAX_ID:
            problem = f"Row ids must be non-negative and fit in a uint64, not {row_ids}"
            raise InvalidRequestError(problem)
        return (Range(start=row_ids.start, end=row_ids.stop),)
    values = _values(row_ids)
    known, times = np.unique(values, return_counts=True)
    if len(known) < len(values):
        repeated = known[times > 1][0]
        raise InvalidRequestError(f"Row ids must be unique, but {repeated} appears more than once")
    return (rowids.build(values),) if len(values) else ()


def _values(row_ids: pa.Array | pa.ChunkedArray | Iterable[int]) -> rowids.U64Array:
    try:
        if not isinstance(row_ids, pa.Array | pa.ChunkedArray):
            if not isinstance(row_ids, Iterable):
                kind = type(row_ids).__name__
                problem = f"Row ids must be an iterable of integers or an Arrow array, not {kind}"
                raise TypeError(problem)
            numbers = (operator.index(row_id) for row_id in row_ids)
            return np.fromiter(numbers, dtype=np.uint64)
        if not pa.types.is_integer(row_ids.type):
            raise TypeError(f"Row ids must be an array of integers, not of {row_ids.type}")
        if row_ids.null_count:
            raise InvalidRequestError(f"Row ids must not be null, but {row_ids.null_count} are")
        return np.asarray(row_ids.cast(pa.uint64()).to_numpy(), dtype=np.uint64)
    except (OverflowError, pa.ArrowInvalid) as error:
        raise InvalidRequestError(f"Row ids must fit in a uint64: {error}") from error


_LIMIT = 1 << 32


class Bitmap(MutableSet[int]):
    """A set of integers below 2**32; equal to any collection with the same values."""

    def __init__(self, values: Iterable[int] | None = None) -> None:
        """Take the values; raise ValueError if one does not fit in 32 bits."""
        self._rows = BitMap(map(_check, values or ()))

    @classmethod
    def _from_iterable(cls, it: Iterable[Any]) -> Bitmap:  # type: ignore[override]  # of integers
        return cls(it)

    def __contains__(self, value: object) -> bool:
        return isinstance(value, int) and 0 <= value < _LIMIT and value in self._rows

    def __iter__(self) -> Iterator[int]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Set):
            return len(self) == len(other) and all(value in other for value in self)
        if not isinstance(other, Iterable) or isinstance(other, str | bytes):
            return NotImplemented
        try:
            return self._rows == Bitmap(other)._rows
        except (TypeError, ValueError):
            return False

    __hash__ = None  # type: ignore[assignment]  # mutable

    def __reduce__(self) -> tuple[Any, ...]:
        return (Bitmap, (list(self),))

    def __repr__(self) -> str:
        return f"Bitmap({{{', '.join(map(str, self))}}})"

    def add(self, value: int) -> None:
        """Add a value."""
        self._rows.add(_check(value))

    def discard(self, value: int) -> None:
        """Remove a value, if it is present."""
        if value in self:
            self._rows.discard(value)

    def update(self, values: Iterable[int]) -> None:
        """Add values."""
        self._rows.update(map(_check, values))

    def copy(self) -> Bitmap:
        """Return a copy, which changes by itself."""
        return Bitmap(self)

    def union(self, other: Iterable[int]) -> Bitmap:
        """Return the values of either set."""
        return Bitmap(self._rows | Bitmap(other)._rows)

    def intersection(self, other: Iterable[int]) -> Bitmap:
        """Return the values of both sets."""
        return Bitmap(self._rows & Bitmap(other)._rows)

    def difference(self, other: Iterable[int]) -> Bitmap:
        """Return the values that the other set does not have."""
        return Bitmap(self._rows - Bitmap(other)._rows)

    def symmetric_difference(self, other: Iterable[int]) -> Bitmap:
        """Return the values of exactly one of the sets."""
        return Bitmap(self._rows ^ Bitmap(other)._rows)

    def issubset(self, other: Iterable[int]) -> bool:
        """Whether the other set has all values."""
        return self._rows.issubset(Bitmap(other)._rows)

    def issuperset(self, other: Iterable[int]) -> bool:
        """Whether the set has all values of the other."""
        return self._rows.issuperset(Bitmap(other)._rows)


def _check(value: Any) -> int:
    number = operator.index(value)
    if not 0 <= number < _LIMIT:
        raise ValueError(f"Bitmap values must fit in an unsigned 32-bit integer, got {number}")
    return number
