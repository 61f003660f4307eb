"""Version history of a table, with times and statistics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from functools import partial
from itertools import repeat

from lancelake.commit.external_store import ExternalHandler
from lancelake.commit.snapshot import Snapshot
from lancelake.commit.version_line import open_line
from lancelake.commit.versions import list_versions
from lancelake.data.recently_used import RecentlyUsed
from lancelake.errors import LanceTableError, ObjectNotFoundError, VersionNotFoundError
from lancelake.format import layout
from lancelake.format.flags import ensure_readable
from lancelake.format.fragment_list import FragmentList
from lancelake.format.ids import is_detached
from lancelake.format.names import parse_manifest_name
from lancelake.format.unknown import parse
from lancelake.format.version_outline import VersionOutline, decode
from lancelake.proto import table_pb2
from lancelake.storage.location import Location
from lancelake.storage.open import open_store

_LOCAL = {"file", "memory"}
# Number of manifests requested in parallel from a store with high latency.
_REQUESTS = 32
_MOST_KNOWN = 100_000
_KINDS_OF_COUNTS = 5
_Counts = tuple[int, int, int, int, int]
"""Files, their bytes, deletion files, rows and deleted rows of a fragment."""

_Seen = tuple[str, str, str | None]
"""Key of a manifest: its table, its path, and its identity under that name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionSummary:
    """Statistics of a version from its manifest; missing counts are zero."""

    total_fragments: int
    total_data_files: int
    total_files_size: int
    total_deletion_files: int
    total_data_file_rows: int
    total_deletion_file_rows: int

    @property
    def total_rows(self) -> int:
        """Live rows."""
        return self.total_data_file_rows - self.total_deletion_file_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionFacts:
    """Statistics of a version."""

    version: int
    timestamp_ns: int | None
    summary: VersionSummary


_KNOWN: RecentlyUsed[_Seen, VersionFacts] = RecentlyUsed(_MOST_KNOWN)


def history(location: Location, *, newest_first: bool = False) -> Iterator[Snapshot]:
    """Yield every existing version, one at a time."""
    names = list_versions(location)
    for name in reversed(names) if newest_first else names:
        try:
            yield Snapshot.load(location, name)
        except VersionNotFoundError:
            # Cleaned up since the versions were listed.
            continue


def history_in_numbers(location: Location) -> list[VersionFacts]:
    """Return every existing version, oldest first.

    Little of each manifest is decoded, and nothing of those that this process has already read.
    """
    line = open_line(location)
    if isinstance(line.handler, ExternalHandler):
        # A version recorded by the commit service is listed under its own name.
        line.handler.latest()
    found: dict[_Seen, VersionFacts | None] = {}
    for info in line.store.list(layout.VERSIONS):
        seen = (location.uri, info.path, info.e_tag)
        found[seen] = _KNOWN.peek(seen) if info.e_tag is not None else None
    unknown = [seen for seen, facts in found.items() if facts is None and _is_attached(seen[1])]
    sums = FragmentSums()
    for seen, data in _manifests(location, unknown):
        facts = _facts(location, seen[1], data, sums)
        found[seen] = _KNOWN.get(seen, partial(_same, facts))
    # Both names of a version that is being renamed have the same content.
    every = {facts.version: facts for facts in found.values() if facts is not None}
    return [every[version] for version in sorted(every)]


def summarize(snapshot: Snapshot) -> VersionSummary:
    """Compute the statistics of a version."""
    fragments = snapshot.manifest.fragments
    deletions = [f.deletion_file for f in fragments if f.deletion_file is not None]
    return VersionSummary(
        total_fragments=len(fragments),
        total_data_files=sum(len(f.files) for f in fragments),
        total_files_size=sum(file.file_size_bytes or 0 for f in fragments for file in f.files),
        total_deletion_files=len(deletions),
        total_data_file_rows=sum(f.physical_rows or 0 for f in fragments),
        total_deletion_file_rows=sum(d.num_deleted_rows or 0 for d in deletions),
    )


def facts_of(snapshot: Snapshot) -> VersionFacts:
    """Return the statistics of a version."""
    return VersionFacts(
        version=snapshot.version,
        timestamp_ns=snapshot.manifest.timestamp_ns,
        summary=summarize(snapshot),
    )


class FragmentSums:
    """Sums over fragments; those that many versions share are decoded once."""

    def __init__(self) -> None:
        self._known: dict[bytes, _Counts] = {}
        self._last: tuple[frozenset[bytes], VersionSummary] = (
            frozenset(),
            self._total((), trusts=True),
        )

    def of_snapshot(self, snapshot: Snapshot) -> VersionSummary:
        """Compute the statistics of a version from those of the one before in the calls."""
        payloads = FragmentList.of(snapshot.manifest.fragments).payloads()
        found = frozenset(payloads)
        last, total = self._last
        if len(found) < len(payloads):
            return self._total(payloads, trusts=True)
        come = self._total([*(found - last)], trusts=True)
        gone = self._total([*(last - found)], trusts=True)
        sums = {
            f.name: getattr(total, f.name) + getattr(come, f.name) - getattr(gone, f.name)
            for f in fields(VersionSummary)
        }
        self._last = found, VersionSummary(**sums)
        return self._last[1]

    def of(self, outline: VersionOutline) -> VersionSummary:
        """Compute the statistics of an outline; counts of the oldest writers are ignored."""
        return self._total(outline.fragments, trusts=outline.names_writer)

    def _total(self, fragments: Sequence[bytes], *, trusts: bool) -> VersionSummary:
        found = [self._known.get(each) or self._counted(each) for each in fragments]
        columns = zip(*found, strict=True) if found else repeat((), _KINDS_OF_COUNTS)
        files, size, deletions, rows, deleted = map(sum, columns)
        return VersionSummary(
            total_fragments=len(found),
            total_data_files=files,
            total_files_size=size,
            total_deletion_files=deletions,
            total_data_file_rows=rows if trusts else 0,
            total_deletion_file_rows=deleted if trusts else 0,
        )

    def _counted(self, encoded: bytes) -> _Counts:
        message = table_pb2.DataFragment()
        parse(message, encoded, what="fragment")
        has_deletions = message.HasField("deletion_file")
        counts = (
            len(message.files),
            sum(file.file_size_bytes for file in message.files),
            int(has_deletions),
            message.physical_rows,
            message.deletion_file.num_deleted_rows if has_deletions else 0,
        )
        self._known[encoded] = counts
        return counts


def _is_attached(path: str) -> bool:
    name = parse_manifest_name(path.rpartition("/")[2])
    return name is not None and not is_detached(name.version)


def _manifests(location: Location, wanted: Sequence[_Seen]) -> Iterator[tuple[_Seen, bytes]]:
    read = partial(_manifest, location)
    if location.scheme in _LOCAL:
        yield from (pair for pair in map(read, wanted) if pair is not None)
        return
    with ThreadPoolExecutor(_REQUESTS, thread_name_prefix="versions") as pool:
        yield from (pair for pair in pool.map(read, wanted) if pair is not None)


def _manifest(location: Location, seen: _Seen) -> tuple[_Seen, bytes] | None:
    try:
        return seen, open_store(location).get(seen[1])
    except ObjectNotFoundError:
        # Cleaned up since the versions were listed.
        return None


def _facts(location: Location, path: str, data: bytes, sums: FragmentSums) -> VersionFacts:
    try:
        outline = decode(data)
        ensure_readable(outline.reader_feature_flags)
        summary = sums.of(outline)
    except LanceTableError as error:
        name = parse_manifest_name(path.rpartition("/")[2])
        version = None if name is None else name.version
        raise error.at(location.uri, version) from error.__cause__
    return VersionFacts(version=outline.version, timestamp_ns=outline.timestamp_ns, summary=summary)


def _same(facts: VersionFacts) -> VersionFacts:
    return facts
