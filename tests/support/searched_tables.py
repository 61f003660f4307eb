"""Tables whose indices are built segment by segment, and committed without building all again."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from typing import Any

import numpy as np
import pyarrow as pa

import lancelake.pylance as lance
from lancelake.data.codec.index_file import SegmentFolder
from lancelake.index.kind import IdKind, IndexKind
from lancelake.index.kinds import kind_named
from lancelake.pylance._dataset.index_values import Index, IndexFile
from lancelake.storage.location import Location
from lancelake.storage.table_files import FileAt
from tests.support.index_segments import build_input


def add_segment(
    uri: str,
    column: str,
    kind: str | IndexKind,
    *,
    name: str | None = None,
    fragments: Collection[int] | None = None,
    index_version: int | None = None,
    **parameters: Any,
) -> str:
    """Index a column of some fragments, of all unless they are named; return the index's name."""
    kind = kind_named(kind) if isinstance(kind, str) else kind
    name = name or f"{column}_{kind.name.lower()}"
    table = lance.dataset(uri)
    parts = [f for f in table.get_fragments() if fragments is None or f.fragment_id in fragments]
    unique = str(uuid.uuid4())
    place = FileAt(root=Location.parse(uri), path=f"_indices/{unique}")
    values, ids = _rows(table, parts, column, kind, index_version or 0)
    built = kind.build(
        build_input(kind, values, ids, parameters=parameters), SegmentFolder(place=place)
    )
    entry = Index(
        unique,
        name,
        [table.lance_schema.field(column).id()],
        table.version,
        {part.fragment_id for part in parts},
        built.index_version if index_version is None else index_version,
        files=[IndexFile(file.path, file.size_bytes) for file in built.files],
        index_details=(built.details.type_url, built.details.value),
    )
    operation = lance.LanceOperation.CreateIndex([entry], [])
    lance.LanceDataset.commit(uri, operation, read_version=table.version)
    return name


def _rows(
    table: lance.LanceDataset,
    parts: list[lance.LanceFragment],
    column: str,
    kind: IndexKind,
    index_version: int,
) -> tuple[pa.Array, list[int]]:
    stored = kind.stored_ids(index_version, has_stable_row_ids=table.has_stable_row_ids)
    name = "_rowaddr" if stored is IdKind.ADDRESS else "_rowid"
    found = table.scanner(
        columns=[column], fragments=parts, with_row_address=True, with_row_id=True
    ).to_table()
    ids = np.asarray(found[name], dtype=np.uint64)
    order = np.argsort(ids)
    values = found[column].combine_chunks().take(pa.array(order))
    return values, ids[order].tolist()
