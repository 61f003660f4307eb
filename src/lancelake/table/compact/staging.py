"""Read many small files as one, by first gathering their pages in a local file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from lancelake.data.codec.readers import temporary_folder
from lancelake.data.joined_fragments import FEWEST_JOINED, MOST_JOINED, is_small, join
from lancelake.data.write_task import WriteTask
from lancelake.format import layout
from lancelake.format.fragment import Fragment
from lancelake.storage.location import Location
from lancelake.storage.table_files import TableFiles
from lancelake.table.compact.carried import CarriedRows
from lancelake.table.compact.page_copies import WholeFiles
from lancelake.table.compact.stored_rows import Source, lineage_of_all

Unit = tuple[Source, Fragment]
"""A fragment, and the locations of its files."""


@contextmanager
def staged(source: Source, fragments: Sequence[Fragment], write: WriteTask) -> Iterator[list[Unit]]:
    """Return the same rows in fewer fragments if opening each would take most of the time."""
    with temporary_folder("lancelake-compact-") as folder:
        (folder / layout.DATA).mkdir()
        place = replace(source, files=TableFiles(root=Location.parse(folder)))
        units: list[Unit] = []
        for is_joinable, run in _runs(fragments, write):
            whole = _joined(source, place, run) if is_joinable else None
            units += [(source, fragment) for fragment in run] if whole is None else [whole]
        yield units


def _runs(
    fragments: Sequence[Fragment], write: WriteTask
) -> Iterator[tuple[bool, tuple[Fragment, ...]]]:
    """Yield runs of similar adjacent fragments, and whether they are small, whole and many."""
    is_whole = WholeFiles.of(write)
    for is_like, run in groupby(fragments, key=lambda f: is_small(f) and is_whole(f)):
        alike = tuple(run)
        for start in range(0, len(alike), MOST_JOINED):
            part = alike[start : start + MOST_JOINED]
            yield is_like and len(part) >= FEWEST_JOINED, part


def _joined(source: Source, place: Source, run: tuple[Fragment, ...]) -> Unit | None:
    """Gather the pages of a run in one file; None if that is not possible."""
    whole = join(source.files, run, Path(place.files.root.uri))
    if whole is None:
        return None
    carried = CarriedRows()
    if source.has_stable_row_ids:
        for fragment in run:
            carried.add(lineage_of_all(source, fragment))
        whole = carried.given_to(whole)
    return place, whole
