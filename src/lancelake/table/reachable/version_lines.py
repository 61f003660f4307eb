"""Version lines that may need files of a table: its own, its branches, and clones within it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lancelake.commit.external_store import ExternalHandler
from lancelake.commit.version_line import open_line
from lancelake.format import layout
from lancelake.format.refs import Branch, Tag
from lancelake.storage.local import has_link
from lancelake.storage.location import Location
from lancelake.storage.open import open_store
from lancelake.table.reachable.file_kinds import FOLDERS
from lancelake.table.refs import branch_location, list_branches, list_tags

_OWN = frozenset({*FOLDERS, layout.VERSIONS})
_MANIFEST = re.compile(r"d?\d{1,20}\.manifest")
# Depth of nested folders that are searched for clones.
_DEPTH = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ReachableLine:
    """The manifests below one root, by file name."""

    location: Location
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownRefs:
    """The tags and branches of a table."""

    tags: Mapping[str, Tag]
    branches: Mapping[str, Branch]

    @staticmethod
    def load(main: Location) -> KnownRefs:
        """Read all tags and branches."""
        return KnownRefs(tags=list_tags(main), branches=list_branches(main))

    def tagged(self, branch: str | None) -> dict[str, int]:
        """Return the tags of a line and the versions they refer to."""
        return {
            tag: found.version for tag, found in self.tags.items() if _same(found.branch, branch)
        }

    def forks(self, branch: str | None) -> dict[str, int]:
        """Return the branches forked from a line, and the version of each fork."""
        return {
            name: found.parent_version
            for name, found in self.branches.items()
            if _same(found.parent_branch, branch)
        }

    def held(self, branch: str | None) -> frozenset[int]:
        """Return the versions of a line that a tag refers to or a branch was forked from."""
        return frozenset((*self.tagged(branch).values(), *self.forks(branch).values()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A line of versions, and the others that may need its files."""

    own: ReachableLine
    others: tuple[ReachableLine, ...]
    refs: KnownRefs

    @staticmethod
    def load(location: Location, main: Location) -> Family:
        """Find all lines of the table at `main`; `location` may be a branch being created.

        Tags and branches are read before versions are listed, so that the versions they refer to
        are in the listing.
        """
        refs = KnownRefs.load(main)
        roots = {main.uri: main}
        roots |= {place.uri: place for place in (branch_location(main, b) for b in refs.branches)}
        roots |= {place.uri: place for place in _tables_within(main, _DEPTH)}
        roots.pop(location.uri, None)
        others = tuple(_line(root) for root in roots.values())
        return Family(own=_line(location), others=others, refs=refs)


def is_manifest(name: str) -> bool:
    """Whether a file in the versions folder has the name of a manifest."""
    return _MANIFEST.fullmatch(name) is not None


def _same(recorded: str | None, branch: str | None) -> bool:
    return (recorded or "main") == (branch or "main")


def _line(location: Location) -> ReachableLine:
    handler = open_line(location).handler
    if isinstance(handler, ExternalHandler):
        # A version recorded by the commit service is listed under its own name.
        handler.latest()
    names = open_store(location).list_names(layout.VERSIONS)
    return ReachableLine(location=location, names=tuple(filter(is_manifest, names)))


def _tables_within(root: Location, depth: int) -> Iterator[Location]:
    """Yield the roots of tables in folders that do not belong to the table itself."""
    for folder in _own_folders(root):
        if folder in _OWN or (folder.startswith("_") and folder != layout.TREE):
            continue
        yield from _tables_at(root.child(folder), depth - 1)


def _tables_at(place: Location, depth: int) -> Iterator[Location]:
    folders = _own_folders(place)
    if layout.VERSIONS in folders:
        yield place
    is_table = layout.VERSIONS in folders
    for folder in folders if depth else ():
        if not folder.startswith("_") and not (is_table and folder == layout.DATA):
            yield from _tables_at(place.child(folder), depth - 1)


def _own_folders(place: Location) -> list[str]:
    """Return the folders directly at a location; links are skipped."""
    folders = open_store(place).list_dirs("")
    if place.scheme != "file":
        return folders
    return [folder for folder in folders if not has_link(place.uri, folder)]
