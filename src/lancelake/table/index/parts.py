"""Parts of an index that workers wrote under one uuid, as release 4.0.2 divides a build."""

from __future__ import annotations

import re
from collections.abc import Iterable
from uuid import UUID

import pyarrow as pa

from lancelake.commit.snapshot import Snapshot
from lancelake.data.codec.index_file import IndexFileReader
from lancelake.engine.port import Progress
from lancelake.engine.stages import Stages
from lancelake.errors import InvalidRequestError
from lancelake.index.kind import IndexKind
from lancelake.index.scalar.btree import files
from lancelake.index.scalar.btree.build import write_one_file, write_part
from lancelake.index.scalar.btree.kind import BTREE, page_rows_of
from lancelake.index.sort import merge_sorted, row_schema
from lancelake.index.text.kind import INVERTED
from lancelake.index.text.parts import merge_text_parts, text_parts, write_text_part
from lancelake.storage.open import open_store
from lancelake.table.index.build import DEFAULT_RUN, IndexRun, new_place, row_counter
from lancelake.table.index.request import IndexRequest, chosen_fragments, resolve
from lancelake.table.index.rows import build_input

_PART = re.compile(r"part_(\d+)_page_lookup\.lance")


def build_part(
    base: Snapshot, request: IndexRequest, unique: UUID, run: IndexRun = DEFAULT_RUN
) -> None:
    """Write the part of a BTREE or INVERTED that covers the fragments of a request."""
    target = resolve(base, request)
    covered = chosen_fragments(base, request.fragment_ids)
    if not covered:
        raise InvalidRequestError("a part of an index needs a fragment", table=base.location.uri)
    stored = target.kind.stored_ids(0, has_stable_row_ids=base.manifest.has_stable_row_ids)
    counter = row_counter(base, f"index {target.path}", covered, run.progress)
    rows = build_input(base, target, covered, stored, on_rows=counter)
    place = new_place(base, run.choices.surroundings, unique)
    if target.kind is INVERTED:
        write_text_part(place.folder, covered.min(), request.parameters, rows.batches)
        return
    number = files.part_number(covered.min())
    page_rows = page_rows_of(request.parameters, files.DEFAULT_PAGE_ROWS)
    write_part(place.folder, target.dtype, number, rows.batches, page_rows)


def merge_parts(
    base: Snapshot, unique: UUID, kind: IndexKind, progress: Progress | None = None
) -> None:
    """Merge all parts under a uuid into the files of one segment, and remove the parts."""
    folder = new_place(base, DEFAULT_RUN.choices.surroundings, unique).folder
    store = open_store(base.location)
    existing = list(store.list_names(folder.place.path))
    texts = text_parts(existing) if kind is INVERTED else []
    found = (_PART.fullmatch(name) for name in existing if kind is BTREE)
    numbers = sorted(int(match[1]) for match in found if match is not None)
    if not numbers and not texts:
        problem = f"there are no parts of an index under {unique}"
        advice = (
            f"pylance no longer supports merge_index_metadata of {kind.name}: build segments by "
            "create_index_uncommitted."
        )
        action = advice if kind is BTREE else None
        raise InvalidRequestError(problem, table=base.location.uri, action=action)
    if texts:
        merge_text_parts(folder, texts, Stages(f"merge {unique}", progress))
        store.delete_many(f"{folder.place.path}/{name}" for name in texts)
        return
    page_rows = _page_rows(folder.open(files.part_lookup(numbers[0])))
    pages = [folder.open(files.part_file(number)) for number in numbers]
    dtype = pages[0].schema.field(files.VALUES).type
    merged = merge_sorted(dtype, [_entries(part, dtype) for part in pages])
    write_one_file(folder, dtype, merged, page_rows)
    names = [name(number) for number in numbers for name in (files.part_lookup, files.part_file)]
    store.delete_many(f"{folder.place.path}/{name}" for name in names)


def _entries(part: IndexFileReader, dtype: pa.DataType) -> Iterable[pa.RecordBatch]:
    schema = row_schema(dtype)
    for batch in part.batches(columns=[files.VALUES, files.IDS]):
        yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)


def _page_rows(lookup: IndexFileReader) -> int:
    text = lookup.metadata.get(files.PAGE_ROWS, "")
    return int(text) if text.isdecimal() else files.DEFAULT_PAGE_ROWS
