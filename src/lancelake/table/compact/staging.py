"""Many small files read as one: their pages are gathered in a local file first."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from lancelake.clock import SystemIds
from lancelake.data.table_files import TableFiles
from lancelake.data.write_task import WriteTask
from lancelake.format import layout
from lancelake.format.fragment import Fragment
from lancelake.format.names import data_file_name
from lancelake.storage.location import Location
from lancelake.table.compact.carried import CarriedRows
from lancelake.table.compact.options import CompactionMode
from lancelake.table.compact.page_copies import is_copyable, joined, planned_copy
from lancelake.table.compact.stored_rows import Source, lineage_of_all

Unit = tuple[Source, Fragment]
"""A fragment, and where its files lie."""

# Opening a file costs about as much as copying so many bytes.
_SMALL_BYTES = 128 << 10
_FEWEST = 8
_MOST = 256


@contextmanager
def staged(source: Source, fragments: Sequence[Fragment], write: WriteTask) -> Iterator[list[Unit]]:
    """Return the same rows in fewer fragments, where opening each would take most of the time."""
    with tempfile.TemporaryDirectory(prefix="lancelake-compact-") as folder:
        Path(folder, layout.DATA).mkdir()
        place = replace(source, files=TableFiles(root=Location.parse(folder)))
        yield [
            unit for run in _runs(fragments, write) for unit in _units(source, place, run, write)
        ]


def _runs(fragments: Sequence[Fragment], write: WriteTask) -> Iterator[tuple[Fragment, ...]]:
    """Yield neighbours that are alike: small and whole, or not."""
    for _, run in groupby(fragments, key=lambda f: _is_small(f) and is_copyable([f], write)):
        alike = tuple(run)
        yield from (alike[start : start + _MOST] for start in range(0, len(alike), _MOST))


def _is_small(fragment: Fragment) -> bool:
    return sum(file.file_size_bytes or _SMALL_BYTES for file in fragment.files) < _SMALL_BYTES


def _units(
    source: Source, place: Source, run: tuple[Fragment, ...], write: WriteTask
) -> list[Unit]:
    alone = [(source, fragment) for fragment in run]
    if len(run) < _FEWEST or not (_is_small(run[0]) and is_copyable(run, write)):
        return alone
    plan = planned_copy(source.files, run, write, CompactionMode.TRY_BINARY_COPY)
    if plan is None:
        return alone
    name = data_file_name(SystemIds().uuid4())
    size_bytes = plan.write_local(Path(place.files.root.uri, layout.data_file(name)))
    whole = joined(run, name, size_bytes)
    carried = CarriedRows()
    if source.has_stable_row_ids:
        for fragment in run:
            carried.add(lineage_of_all(source, fragment))
        whole = carried.given_to(whole)
    return [(place, whole)]
