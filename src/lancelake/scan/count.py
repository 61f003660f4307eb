"""How many live rows a fragment or a version has."""

from __future__ import annotations

from lancelake.data.deletion_files import load_deletions
from lancelake.data.fragment_reader import FragmentReader
from lancelake.format.fragment import Fragment
from lancelake.format.schema import Schema
from lancelake.scan.plan import ScanSource

_NOTHING = Schema(fields=())


def live_rows(source: ScanSource, fragment: Fragment) -> int:
    """Count the rows of a fragment that are not deleted, from the manifest where it knows."""
    known = fragment.live_rows
    if known is not None:
        return known
    deleted = fragment.num_deleted_rows
    if deleted is None:
        deleted = len(load_deletions(source.files, fragment))
    return physical_rows(source, fragment) - deleted


def physical_rows(source: ScanSource, fragment: Fragment) -> int:
    """Count the rows in a fragment's files, deleted ones included."""
    reader = FragmentReader(source.files, source.manifest_at, fragment, _NOTHING)
    return reader.physical_rows


def count_rows(source: ScanSource) -> int:
    """Count the live rows of a version without reading any column."""
    return sum(live_rows(source, fragment) for fragment in source.manifest.fragments)
