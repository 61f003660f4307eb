"""Columns that can be searched."""

from __future__ import annotations

from lancelake.commit.snapshot import Snapshot
from lancelake.format.column_path import quote_segment
from lancelake.index.stored_segment import indexed_type
from lancelake.index.vector.vectors import VectorType
from lancelake.table.describe.documents import Json
from lancelake.table.describe.summary import index_coverage

_TEXT_KIND = "Inverted"


def searchable_columns(snapshot: Snapshot) -> Json:
    """Return the columns with vectors and their dimensions, and those with a text index."""
    fields = snapshot.manifest.schema.fields
    found = [(field.name, VectorType.of(indexed_type(field))) for field in fields]
    texts = [
        column
        for index, _ in index_coverage(snapshot)
        if index.kind == _TEXT_KIND
        for column in index.columns
    ]
    return {
        "vectors": [
            {"column": quote_segment(name), "dimension": kind.dimension, "is_multi": kind.is_multi}
            for name, kind in found
            if kind is not None
        ],
        "texts": list(dict.fromkeys(texts)),
    }
