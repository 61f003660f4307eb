"""Metadata of fragments and files in earlier versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import LanceTableError, StorageUnavailableError
from lancelake.format.fragment import DataFile, Fragment
from lancelake.format.fragment_list import FragmentList
from lancelake.format.ids import BaseId, FragmentId
from lancelake.table.check.version_lines import CheckedLine

_MOST_VERSIONS = 100

Place = tuple[BaseId | None, str]


class Past:
    """The versions before one, newest first; unreadable versions are skipped."""

    def __init__(self, head: Snapshot) -> None:
        """Start before a version; nothing is read until it is requested."""
        self._head = head
        self._seen: list[Mapping[FragmentId, Fragment]] = []
        self._reading = self._read()

    def fragments(self, now: Fragment) -> Iterator[Fragment]:
        """Yield earlier entries of a fragment with the same first file."""
        for by_id in self._versions():
            try:
                then = by_id.get(now.id)
            except LanceTableError:
                continue
            if then is not None and _first(then) == _first(now):
                yield then

    def file(self, now: Fragment, file: DataFile) -> Iterator[DataFile]:
        """Yield earlier entries of a data file."""
        for then in self.fragments(now):
            yield from (f for f in then.files if (f.base_id, f.path) == (file.base_id, file.path))

    @cached_property
    def _line(self) -> CheckedLine:
        return CheckedLine.load(self._head.location, self._head.branch)

    def _versions(self) -> Iterator[Mapping[FragmentId, Fragment]]:
        yield from self._seen
        for by_id in self._reading:
            self._seen.append(by_id)
            yield by_id

    def _read(self) -> Iterator[Mapping[FragmentId, Fragment]]:
        older = (n for n in self._line.newest_first if n.version < self._head.version)
        for name, _ in zip(older, range(_MOST_VERSIONS), strict=False):
            try:
                snapshot = Snapshot.load(self._head.location, name)
                yield FragmentList.of(snapshot.manifest.fragments).by_id()
            except StorageUnavailableError:
                raise
            except LanceTableError:
                continue


def _first(fragment: Fragment) -> Place | None:
    return (fragment.files[0].base_id, fragment.files[0].path) if fragment.files else None
