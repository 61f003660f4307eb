"""Registry of index kinds, by name and by index entry.

Indices of other kinds, or of newer versions, are preserved by commits and never used.
"""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa

from lancelake.errors import InvalidRequestError
from lancelake.format.index_meta import IndexMetadata
from lancelake.index.kind import IndexKind
from lancelake.index.scalar.bitmap import BITMAP
from lancelake.index.scalar.bloom_filter import BLOOM_FILTER
from lancelake.index.scalar.btree import files as btree_files
from lancelake.index.scalar.btree.kind import BTREE
from lancelake.index.scalar.keyed_sets import FILE as BITMAP_FILE
from lancelake.index.scalar.label_list import LABEL_LIST
from lancelake.index.scalar.ngram.kind import NGRAM
from lancelake.index.scalar.zone_map import ZONE_MAP
from lancelake.index.text.kind import INVERTED
from lancelake.index.text.layout import EARLY_POSTINGS_FILE, METADATA_FILE
from lancelake.index.text.parameters import unsupported
from lancelake.index.vector.files import CENTERS_FILE
from lancelake.index.vector.kind import VECTOR, VECTOR_TYPES
from lancelake.suggest import suggestion

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
_TEXT_FILES = frozenset((METADATA_FILE, EARLY_POSTINGS_FILE))
_NAMED: tuple[IndexKind, ...] = (*KINDS, *VECTOR_TYPES)


def kind_of(entry: IndexMetadata) -> IndexKind | None:
    """Return the kind of an entry; None for an index that must not be used."""
    if entry.details is None:
        return None
    kind = next((kind for kind in KINDS if kind.details_type == entry.details.kind), None)
    if kind is INVERTED and unsupported(entry.details) is not None:
        return None
    return kind if kind is not None and (entry.index_version or 0) <= kind.max_version else None


def is_reliable(entry: IndexMetadata, kind: IndexKind) -> bool:
    """Whether searches of an entry find all rows.

    Releases before 0.29 recorded no version. When they compacted or refreshed, their BITMAP lost
    nulls and their BTREE moved rows to other pages; their NGRAM has other tokens.
    """
    return entry.index_version is not None or kind is VECTOR


def kind_of_files(names: Collection[str], dtype: pa.DataType) -> IndexKind | None:
    """Return the kind of a segment whose entry has no details, as some releases commit it."""
    if BITMAP_FILE in names:
        return LABEL_LIST if LABEL_LIST.accepts(dtype) else BITMAP
    if CENTERS_FILE in names:
        return VECTOR
    if not _TEXT_FILES.isdisjoint(names) and INVERTED.accepts(dtype):
        return INVERTED
    return BTREE if btree_files.LOOKUP_FILE in names else None


def kind_named(name: str) -> IndexKind:
    """Return the kind of a name."""
    wanted = name.upper()
    kind = next((kind for kind in _NAMED if kind.name == wanted), None)
    if kind is not None:
        return kind
    names = [kind.name for kind in _NAMED if kind is not VECTOR]
    advice = suggestion(name, names, "kinds")
    raise InvalidRequestError(f"{name!r} is not a kind of index", found=name, action=advice)
