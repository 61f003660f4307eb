"""Registry of index kinds, by name and by index entry.

Indices of other kinds, or of newer versions, are preserved by commits and never used.
"""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa

from lancelake.errors import InvalidRequestError, suggestion
from lancelake.format.index_meta import IndexMetadata
from lancelake.index.kind import IndexKind
from lancelake.index.scalar.bitmap import BITMAP
from lancelake.index.scalar.bloom_filter import BLOOM_FILTER
from lancelake.index.scalar.btree.kind import BTREE
from lancelake.index.scalar.label_list import LABEL_LIST
from lancelake.index.scalar.ngram import NGRAM
from lancelake.index.scalar.zone_map import ZONE_MAP
from lancelake.index.text.kind import INVERTED
from lancelake.index.vector.kind import VECTOR, VECTOR_TYPES

KINDS: tuple[IndexKind, ...] = (
    BTREE,
    BITMAP,
    LABEL_LIST,
    ZONE_MAP,
    BLOOM_FILTER,
    NGRAM,
    INVERTED,
    VECTOR,
)
"""Kinds of stored indices; searches ask exact ones first."""
_BUILT = (*(kind for kind in KINDS if kind is not VECTOR), *VECTOR_TYPES)


def kind_of(entry: IndexMetadata) -> IndexKind | None:
    """Return the kind of an entry; None for an index that must not be used."""
    kind = _recorded_kind(entry)
    if kind is None or entry.details is None or (entry.index_version or 0) > kind.max_version:
        return None
    return kind if kind.supports(entry.details) else None


def is_untrained(entry: IndexMetadata) -> bool:
    """Whether an index has no files yet: it was created without rows, or without training."""
    kind = _recorded_kind(entry)
    return kind is not None and kind.is_untrained(entry)


def _recorded_kind(entry: IndexMetadata) -> IndexKind | None:
    if entry.details is None:
        return None
    return next((kind for kind in KINDS if kind.details_type == entry.details.kind), None)


def kind_of_files(names: Collection[str], dtype: pa.DataType) -> IndexKind | None:
    """Return the kind of a segment whose entry has no details, as some releases commit it."""
    return next((kind for kind in KINDS if kind.wrote(names, dtype)), None)


def kind_named(name: str) -> IndexKind:
    """Return the kind of a name."""
    wanted = name.upper()
    kind = next((kind for kind in (*_BUILT, VECTOR) if kind.name == wanted), None)
    if kind is not None:
        return kind
    advice = suggestion(name, [kind.name for kind in _BUILT], "kinds")
    raise InvalidRequestError(f"{name!r} is not a kind of index", found=name, action=advice)
