"""Small fragments read as one, by first gathering their pages in a local file.

Opening a small file takes far longer than copying it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lancelake.data.byte_source import LoadedSource
from lancelake.data.codec.page_copy import PageCopy, page_copy
from lancelake.errors import CorruptTableError, NotFoundError, StorageError
from lancelake.format import layout
from lancelake.format.fragment import DataFile, Fragment
from lancelake.format.ids import FragmentId
from lancelake.format.layout import data_file_name
from lancelake.format.logical_types import has_blobs
from lancelake.format.schema import Schema
from lancelake.storage.table_files import TableFiles
from lancelake.threads import Pool

# Opening a file takes about as long as copying this many bytes.
_SMALL_BYTES = 128 << 10
_REMOTE_READS = 16

FEWEST_JOINED = 8
"""Number of fragments from which joining them is faster."""

MOST_JOINED = 256
"""Number of fragments in one local file."""


def is_small(fragment: Fragment) -> bool:
    """Whether opening the files of a fragment takes longer than copying them."""
    return sum(file.file_size_bytes or _SMALL_BYTES for file in fragment.files) < _SMALL_BYTES


def has_movable_columns(schema: Schema) -> bool:
    """Whether no column has an encoding that depends on its file."""
    nodes = [node for field in schema.fields for node in field.walk()]
    special = any(node.is_json or node.is_packed for node in nodes)
    return not special and not any(has_blobs(field) for field in schema.fields)


def join(files: TableFiles, fragments: Sequence[Fragment], folder: Path) -> Fragment | None:
    """Gather the pages of fragments of one file each in a table folder.

    Return the fragment with all rows; None if pages cannot be copied unchanged, or if a file
    is missing, damaged or differs from its description.
    """
    try:
        plan = page_copy(_loaded(files, fragments))
    except (CorruptTableError, NotFoundError, StorageError):
        # Reading the fragments one by one finds the one with the defect.
        return None
    if plan is None or not _has_described_rows(plan, fragments):
        return None
    name = data_file_name(files.root.session.ids.uuid4())
    size_bytes = plan.write_local(folder / layout.data_file(name))
    return joined_fragment(fragments, name, size_bytes)


def joined_fragment(fragments: Sequence[Fragment], name: str, size_bytes: int) -> Fragment:
    """Describe the file that contains the pages of these fragments."""
    like = fragments[0].files[0]
    entry = DataFile(
        path=name,
        fields=like.fields,
        column_indices=like.column_indices,
        file_major_version=like.file_major_version,
        file_minor_version=like.file_minor_version,
        file_size_bytes=size_bytes,
    )
    rows = sum(fragment.physical_rows or 0 for fragment in fragments)
    return Fragment(id=FragmentId(0), files=(entry,), physical_rows=rows)


def _has_described_rows(plan: PageCopy, fragments: Sequence[Fragment]) -> bool:
    return all(
        file.descriptor.length == fragment.physical_rows
        for file, fragment in zip(plan.files, fragments, strict=True)
    )


def _loaded(files: TableFiles, fragments: Sequence[Fragment]) -> list[LoadedSource]:
    if files.root.scheme in ("file", "memory"):
        return [_load(files, fragment) for fragment in fragments]
    with Pool(_REMOTE_READS) as pool:
        return list(pool.map(lambda fragment: _load(files, fragment), fragments))


def _load(files: TableFiles, fragment: Fragment) -> LoadedSource:
    (file,) = fragment.files
    at = files.data_file(file)
    # A file that is longer than described does not end there, and is refused.
    size_bytes = file.file_size_bytes or 0
    return LoadedSource(at.path, at.store.get_range(at.path, start=0, length=size_bytes))
