"""Indices of tables in tests: built by us and committed, or built by a release and opened."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa

import lancelake.pylance as ours
from lancelake.data.codec.index_file import SegmentFolder
from lancelake.format import index_meta
from lancelake.format.index_meta import IndexMetadata
from lancelake.format.manifest import decode_manifest
from lancelake.index.kind import IdKind, IndexKind, OpenSegment, SegmentFacts
from lancelake.pylance._dataset.index_values import Index, IndexFile
from lancelake.storage.location import Location
from lancelake.storage.table_files import FileAt
from tests.support.index_laws import Rows

# Asks with and without indices; the answers must be equal.
ASK = """
ds = lance.dataset(uri)
result = []
for text in filters:
    plan = ds.scanner(filter=text, columns=["id"]).explain_plan(True)
    found = [
        sorted(ds.to_table(filter=text, columns=["id"], use_scalar_index=use)["id"].to_pylist())
        for use in (True, False)
    ]
    result.append([text, "ScalarIndexQuery" in plan, *found])
"""


def rows_of(uri: str, column: str, stored: IdKind = IdKind.ADDRESS) -> Rows:
    """Return the live rows of a column, with what an index stores for them."""
    name = "_rowaddr" if stored is IdKind.ADDRESS else "_rowid"
    table = ours.dataset(uri).to_table(
        columns=[column], with_row_id=name == "_rowid", with_row_address=name == "_rowaddr"
    )
    values = table[column].combine_chunks()
    ids = np.asarray(table[name], dtype=np.uint64)
    order = np.argsort(ids)
    return Rows(values=values.take(pa.array(order)), ids=ids[order])


def folder_of(uri: str, uuid: str) -> SegmentFolder:
    place = FileAt(root=Location.parse(uri), path=f"_indices/{uuid}")
    return SegmentFolder(place=place)


def add_index(uri: str, kind: IndexKind, column: str, **parameters: Any) -> str:
    """Build an index of all fragments and commit it; return its name."""
    table = ours.dataset(uri)
    stored = kind.stored_ids(0, has_stable_row_ids=table.has_stable_row_ids)
    uuid = str(uuid4())
    built = kind.build(rows_of(uri, column, stored).input(**parameters), folder_of(uri, uuid))
    name = f"{column}_{kind.name.lower()}"
    entry = Index(
        uuid,
        name,
        [table.lance_schema.field(column).id()],
        table.version,
        [fragment.fragment_id for fragment in table.get_fragments()],
        built.index_version,
        files=[IndexFile(file.path, file.size_bytes) for file in built.files],
        index_details=(built.details.type_url, built.details.value),
    )
    operation = ours.LanceOperation.CreateIndex(new_indices=[entry], removed_indices=[])
    ours.LanceDataset.commit(uri, operation, read_version=table.version)
    return name


def entries_of(uri: str) -> tuple[IndexMetadata, ...]:
    """Return the index entries of the newest version."""
    paths = (Path(uri) / "_versions").glob("*.manifest")
    found = [decode_manifest(path.read_bytes()) for path in paths]
    newest = max(found, key=lambda each: each.manifest.version)
    return index_meta.decode_section(newest.index_section or b"")


def facts_of_entry(uri: str, entry: IndexMetadata, dtype: pa.DataType) -> SegmentFacts:
    rows = {f.fragment_id: f.physical_rows for f in ours.dataset(uri).get_fragments()}
    return SegmentFacts(
        folder=folder_of(uri, str(entry.uuid)),
        dtype=dtype,
        details=entry.details,
        index_version=entry.index_version or 0,
        fragment_rows=rows.get,
    )


def opened(uri: str, kind: IndexKind, name: str, dtype: pa.DataType) -> OpenSegment:
    """Open the only segment of an index."""
    (entry,) = [e for e in entries_of(uri) if e.name == name]
    return kind.open(facts_of_entry(uri, entry, dtype))
