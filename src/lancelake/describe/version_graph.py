"""The versions of a table and of its branches as a graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby

from lancelake.commit.snapshot import branch_location, list_versions
from lancelake.describe.documents import Json
from lancelake.describe.log import line_entries, log_document, tags_on
from lancelake.errors import LanceTableError
from lancelake.format.layout import ManifestName
from lancelake.format.refs import Branch
from lancelake.maintenance.check.refs import CheckedRefs
from lancelake.maintenance.reachable import KnownRefs
from lancelake.storage.location import Location

MAIN = "main"


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphLine:
    """The versions of the main line or of a branch, newest first, and its place in the graph."""

    branch: str
    location: Location
    names: tuple[ManifestName, ...]
    parent: str | None = None
    parent_version: int | None = None
    lane: int = 0
    first_row: int = 0
    last_row: int = 0
    fork_row: int | None = None
    """Row of the version that the branch was created from; None if it no longer exists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphRow:
    """A version: its line, and its position there."""

    branch: str
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionGraph:
    """All versions in an order in which each follows the versions made from it."""

    lines: Mapping[str, GraphLine]
    rows: tuple[GraphRow, ...]
    refs: KnownRefs

    @staticmethod
    def load(main: Location) -> VersionGraph:
        """List the versions of every line; no manifest is read."""
        checked = CheckedRefs.load(main)
        refs = KnownRefs(tags=checked.tags, branches=checked.branches)
        lines = {MAIN: _line(main, MAIN, None)}
        lines |= {name: _line(main, name, branch) for name, branch in refs.branches.items()}
        rows = tuple(_order(lines))
        return VersionGraph(lines=_place(lines, rows), rows=rows, refs=refs)

    def page(self, offset: int, limit: int) -> Json:
        """Return some rows with their log entries, and the lines that pass them."""
        end = min(len(self.rows), offset + limit)
        lines = [line for line in self.lines.values() if _passes(line, offset, end)]
        return {
            "total": len(self.rows),
            "offset": offset,
            "lines": [_line_document(line) for line in lines],
            "rows": list(self._documents(offset, end)),
        }

    def row_of(self, branch: str, version: int) -> int | None:
        """Return the row of a version; None if it does not exist."""
        line = self.lines.get(branch)
        names = () if line is None else line.names
        for number, row in enumerate(self.rows):
            if row.branch == branch and names[row.position].version == version:
                return number
        return None

    def _documents(self, start: int, end: int) -> Iterator[Json]:
        for branch, group in groupby(self.rows[start:end], key=lambda row: row.branch):
            rows = list(group)
            line = self.lines[branch]
            first, last = rows[0].position, rows[-1].position
            labels = tags_on(self.refs, None if branch == MAIN else branch)
            forks = self.refs.forks(None if branch == MAIN else branch)
            # One version more, with which the oldest one shown is compared.
            entries = line_entries(line.location, line.names[first : last + 2], labels)
            for _, entry in zip(rows, entries, strict=False):
                here = sorted(name for name, at in forks.items() if at == entry.version)
                yield {**log_document(entry), "branch": branch, "forks": here}


def _line(main: Location, name: str, branch: Branch | None) -> GraphLine:
    place = branch_location(main, None if name == MAIN else name)
    try:
        names = tuple(reversed(list_versions(place)))
    except LanceTableError:
        # The health of the table reports it.
        names = ()
    return GraphLine(
        branch=name,
        location=place,
        names=names,
        parent=None if branch is None else branch.parent_branch or MAIN,
        parent_version=None if branch is None else branch.parent_version,
    )


def _order(lines: Mapping[str, GraphLine]) -> Iterator[GraphRow]:
    """Yield versions so that a branch precedes the version that it was created from."""
    children: dict[str, list[GraphLine]] = {}
    for line in lines.values():
        if line.parent is not None:
            children.setdefault(line.parent, []).append(line)
    done: set[str] = set()
    for root in lines:
        if root in done:
            continue
        done.add(root)
        walks = [_walk(lines[root], children.get(root, []))]
        while walks:
            step = next(walks[-1], None)
            if step is None:
                walks.pop()
            elif isinstance(step, GraphRow):
                yield step
            elif step.branch not in done:
                done.add(step.branch)
                walks.append(_walk(step, children.get(step.branch, [])))


def _walk(line: GraphLine, children: list[GraphLine]) -> Iterator[GraphRow | GraphLine]:
    waiting = sorted(children, key=lambda c: (-(c.parent_version or 0), c.branch))
    for position, name in enumerate(line.names):
        while waiting and (waiting[0].parent_version or 0) >= name.version:
            yield waiting.pop(0)
        yield GraphRow(branch=line.branch, position=position)
    yield from waiting


def _place(lines: Mapping[str, GraphLine], rows: tuple[GraphRow, ...]) -> dict[str, GraphLine]:
    """Give each line a lane that is free from its first row to the version it was created from."""
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    at: dict[tuple[str, int], int] = {}
    for number, row in enumerate(rows):
        first.setdefault(row.branch, number)
        last[row.branch] = number
        at[row.branch, lines[row.branch].names[row.position].version] = number
    placed: dict[str, GraphLine] = {}
    free_from: list[int] = []
    for name in sorted(first, key=lambda n: (n != MAIN, first[n])):
        line = lines[name]
        parent = (line.parent or "", line.parent_version or 0)
        fork = at.get(parent)
        if fork is not None and fork < last[name]:
            fork = None
        end = last[name] if fork is None else fork
        lane = next((i for i, free in enumerate(free_from) if free <= first[name]), len(free_from))
        free_from[lane : lane + 1] = [len(rows) if name == MAIN else end]
        placed[name] = replace(
            line, lane=lane, first_row=first[name], last_row=last[name], fork_row=fork
        )
    return placed


def _passes(line: GraphLine, start: int, end: int) -> bool:
    last = line.last_row if line.fork_row is None else line.fork_row
    return line.first_row < end and last >= start


def _line_document(line: GraphLine) -> Json:
    return {
        "branch": line.branch,
        "parent": line.parent,
        "parent_version": line.parent_version,
        "versions": len(line.names),
        "lane": line.lane,
        "first_row": line.first_row,
        "last_row": line.last_row,
        "fork_row": line.fork_row,
    }
