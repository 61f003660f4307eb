"""Columns of texts: strings, lists of strings, and strings of structs in lists.

The path of a string in the structs of a list leaves the elements out, as in release 14: `d.t` for
the strings `t` of a list `d`. All strings of a row are one document.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lancelake.expr.literals import is_text
from lancelake.format.schema import Field, Schema, follow, join_path, split_path
from lancelake.index.kind import indexed_type

_SEPARATOR = " "
_IN_LISTS = pa.large_list(pa.string())


def is_document(dtype: pa.DataType) -> bool:
    """Whether rows of a type are documents: strings, or lists of strings of any length."""
    is_list = pa.types.is_list(dtype) or pa.types.is_large_list(dtype)
    return is_text(dtype.value_type) if is_list else is_text(dtype)


def documents(values: pa.Array) -> pa.Array:
    """Return one text per row, which has no nulls: the strings of a list are joined by spaces.

    Official releases from 14 on index the same document; null elements are left out.
    """
    if is_text(values.type):
        return values
    elements = values.flatten()
    rows = np.asarray(pc.list_parent_indices(values), dtype=np.int64)
    is_valid = np.asarray(elements.is_valid())
    counts = np.bincount(rows[is_valid], minlength=len(values))
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    # Arrow joins elements of this type only; one chunk of a text index is far below 2 GB.
    strings = elements.filter(pa.array(is_valid)).cast(pa.string())
    return pc.binary_join(pa.LargeListArray.from_arrays(offsets, strings), _SEPARATOR)


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentColumn:
    """A column whose rows may be documents."""

    trail: tuple[Field, ...]
    """The fields from the top to the one that is indexed, with the elements of lists."""

    @property
    def path(self) -> str:
        """The path of the field."""
        return join_path(_names(self.trail))

    @property
    def source(self) -> str:
        """The path of the column that is read: the list that has the field, or the field itself."""
        return join_path(field.name for field in self.trail[: self._num_read])

    @property
    def dtype(self) -> pa.DataType:
        """The type of the documents; if it is not one of texts, they cannot be indexed."""
        dtype = indexed_type(self.trail[-1])
        is_inside = self._num_read < len(self.trail)
        return _IN_LISTS if is_inside and is_document(dtype) else dtype

    def documents(self, values: pa.Array) -> pa.Array:
        """Return the documents of rows of the column that is read."""
        if isinstance(values, pa.ExtensionArray):
            values = values.storage
        if self._num_read == len(self.trail):
            return values
        names = _names(self.trail[self._num_read - 1 :])[1:]
        rows, texts = np.arange(len(values)), values
        while names or pa.types.is_nested(texts.type):
            if pa.types.is_struct(texts.type):
                texts = pc.struct_field(texts, names.pop(0))
            else:
                rows = rows[np.asarray(pc.list_parent_indices(texts), dtype=np.int64)]
                texts = texts.flatten()
        ends = np.cumsum(np.bincount(rows, minlength=len(values)), dtype=np.int64)
        offsets = pa.array(np.append(np.zeros(1, np.int64), ends))
        return pa.LargeListArray.from_arrays(offsets, texts.cast(pa.string()))

    @property
    def _num_read(self) -> int:
        """The number of fields up to the first list that has others below it."""
        lists = (i for i, field in enumerate(self.trail[:-1], 1) if _is_list(field))
        return next(lists, len(self.trail))


def find_text_column(schema: Schema, path: str) -> DocumentColumn | None:
    """Return the column of a path; None if there is none."""
    names = split_path(path)
    trail = _trail(schema.fields, names, exact=True) or _trail(schema.fields, names, exact=False)
    return DocumentColumn(trail=trail) if trail else None


def text_column_of(schema: Schema, field_id: int) -> DocumentColumn | None:
    """Return the column of a field; None if there is none."""
    trail = schema.trail_of(field_id)
    return DocumentColumn(trail=trail) if trail else None


def _trail(level: tuple[Field, ...], names: Sequence[str], *, exact: bool) -> tuple[Field, ...]:
    trail = follow(level, names[:1], exact=exact)
    if not trail or len(names) == 1:
        return trail
    while _is_list(trail[-1]):
        trail = (*trail, trail[-1].children[0])
    below = _trail(trail[-1].children, names[1:], exact=exact)
    return (*trail, *below) if below else ()


def _names(trail: Iterable[Field]) -> list[str]:
    """Return the names of fields that are no elements of lists."""
    names, is_element = [], False
    for field in trail:
        if not is_element:
            names.append(field.name)
        is_element = _is_list(field)
    return names


def _is_list(field: Field) -> bool:
    return field.logical_type.startswith(("list", "large_list")) and bool(field.children)
