"""Concatenate fragments by copying pages without decoding them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lancelake.clock import Ids
from lancelake.data.byte_source import StoreSource
from lancelake.data.codec.page_copy import LARGE_PAGE_BYTES, PageCopy, page_copy
from lancelake.data.file_schema import column_ids
from lancelake.data.joined_fragments import has_movable_columns, joined_fragment
from lancelake.data.write_task import WriteTask
from lancelake.format import layout
from lancelake.format.file_version import FileVersion
from lancelake.format.fragment import Fragment
from lancelake.format.ids import FieldId
from lancelake.format.names import data_file_name
from lancelake.storage.open import open_store
from lancelake.storage.table_files import TableFiles
from lancelake.table.compact.options import CompactionMode

# Small pages are slow to read, so most bytes must be in large ones.
_LARGE_SHARE = 0.9


def planned_copy(
    files: TableFiles,
    fragments: Sequence[Fragment],
    write: WriteTask,
    mode: CompactionMode | None,
) -> PageCopy | None:
    """Return the plan to copy the fragments into one file; None if values must be encoded again."""
    if mode is CompactionMode.REENCODE or not is_copyable(fragments, write):
        return None
    if mode is None and not _may_have_large_pages(fragments):
        return None
    places = [files.data_file(fragment.files[0]) for fragment in fragments]
    found = page_copy(StoreSource(open_store(place.root), place.path) for place in places)
    if found is None or (mode is None and found.large_share < _LARGE_SHARE):
        return None
    return found


def copied(plan: PageCopy, fragments: Sequence[Fragment], write: WriteTask, ids: Ids) -> Fragment:
    """Write the file and return its fragment."""
    name = data_file_name(ids.uuid4())
    size_bytes = plan.write(open_store(write.root), layout.data_file(name))
    return joined_fragment(fragments, name, size_bytes)


def is_copyable(fragments: Sequence[Fragment], write: WriteTask) -> bool:
    """Whether each fragment consists of one file with exactly the table's columns."""
    size_bytes = sum(f.file_size_bytes or 0 for fragment in fragments for f in fragment.files)
    return size_bytes <= write.full_at_bytes and all(map(WholeFiles.of(write), fragments))


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeFiles:
    """Decides whether a fragment consists of one file with exactly the table's columns.

    Without fields, because some columns cannot be copied, no fragment qualifies.
    """

    version: FileVersion
    fields: tuple[FieldId, ...] | None
    column_indices: tuple[int, ...]

    @staticmethod
    def of(write: WriteTask) -> WholeFiles:
        """Create the check for the files that a task would write."""
        fields = column_ids(write.schema, write.file_version)
        return WholeFiles(
            version=write.file_version,
            fields=fields if has_movable_columns(write.schema) else None,
            column_indices=tuple(range(len(fields))),
        )

    def __call__(self, fragment: Fragment) -> bool:
        """Whether the fragment is such a file."""
        if len(fragment.files) != 1 or fragment.deletion_file is not None:
            return False
        (file,) = fragment.files
        return (
            fragment.physical_rows is not None
            and file.fields == self.fields
            and file.column_indices == self.column_indices
            and file.version is self.version
        )


def _may_have_large_pages(fragments: Sequence[Fragment]) -> bool:
    sizes = [file.file_size_bytes or 0 for fragment in fragments for file in fragment.files]
    return sum(s for s in sizes if s >= LARGE_PAGE_BYTES) >= _LARGE_SHARE * sum(sizes)
