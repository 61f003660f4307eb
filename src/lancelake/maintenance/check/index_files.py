"""Check of indices and their files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from uuid import UUID

from pyroaring import BitMap

from lancelake.commit.snapshot import Snapshot
from lancelake.data.codec.readers import open_end
from lancelake.engine.port import Engine
from lancelake.errors import LanceTableError, StorageUnavailableError, UnsupportedError
from lancelake.format import index_meta
from lancelake.format.index_meta import IndexMetadata
from lancelake.format.layout import ManifestName
from lancelake.index.cache import segment_place
from lancelake.index.kinds import is_untrained
from lancelake.index.stored_segment import StoredIndices, StoredSegment, reading_index
from lancelake.maintenance.check.finding import (
    Finding,
    Severity,
    Subject,
    encode,
    run_fragile_tasks,
)
from lancelake.storage.location import Location
from lancelake.storage.store import confined_path
from lancelake.storage.table_files import FileAt
from lancelake.txn.fragments import follow_moves

_REBUILD = "Queries cannot use the index; rebuild it."
_GOOD_COVERAGE = 0.8


def check_indices(subject: Subject) -> Iterator[Finding]:
    """Check every entry, entries of the same name together, and the files."""
    try:
        indices = subject.snapshot.indices
    except LanceTableError as error:
        yield subject.error("index-section-damaged", error.problem)
        return
    for uuid, count in Counter(index.uuid for index in indices).items():
        if count > 1:
            yield subject.error("index-uuid-twice", f"{count} index entries have the uuid {uuid}")
    for index in indices:
        yield from check_entry_alone(subject, index)
    yield from _overlaps(subject, indices)
    yield from _low_coverage(subject, indices)


def check_entry_alone(subject: Subject, index: IndexMetadata) -> Iterator[Finding]:
    """Check one entry and its files, independent of other entries."""
    yield from _entry(subject, index)
    yield from _kind(subject, index)
    yield from _files(subject, index)


def _entry(subject: Subject, index: IndexMetadata) -> Iterator[Finding]:
    known = subject.schema.by_id()
    gone = [f for f in index.fields if f not in known]
    if gone and not index.is_system:
        yield subject.error(
            "index-field-gone",
            f"index {index.name!r} is on field {gone[0]}, which is not in the schema",
            hint="Drop the index.",
        )
    if index.dataset_version > subject.snapshot.version:
        yield subject.error(
            "index-version",
            f"index {index.name!r} was built from version {index.dataset_version}, which is "
            "newer than this version",
        )
    covered = _coverage(index)
    if isinstance(covered, LanceTableError):
        yield subject.error("index-bitmap-damaged", covered.problem, hint=_REBUILD)
    elif covered is not None:
        stale = covered - BitMap(fragment.id for fragment in subject.fragments)
        if stale:
            yield subject.info(
                "index-bitmap-stale",
                f"index {index.name!r} covers {len(stale)} fragments that no longer exist",
            )


def _kind(subject: Subject, index: IndexMetadata) -> Iterator[Finding]:
    try:
        kind, _ = index_meta.describe(index.details)
    except LanceTableError as error:
        message = f"details of index {index.name!r}: {error.problem}"
        yield subject.error("index-details-damaged", message, hint=_REBUILD)
        return
    if kind == index_meta.UNKNOWN and index.details is not None:
        message = (
            f"index {index.name!r} has a type that this release does not support: "
            f"{index.details.type_url}"
        )
        yield subject.info("index-kind-unknown", message)


def _files(subject: Subject, index: IndexMetadata) -> Iterator[Finding]:
    try:
        folder = segment_place(subject.snapshot, index)
        places = [_file(folder, file.path) for file in index.files]
    except LanceTableError as error:
        code = "file-escapes" if subject.has_base(index.base_id) else "base-undeclared"
        message = f"files of index {index.name!r} cannot be located: {error.problem}"
        yield subject.error(code, message)
        return
    if not index.files:
        yield from _folder(subject, index, folder)
        return
    subject.sizes.load(places)
    for file, place in zip(index.files, places, strict=True):
        size = subject.sizes.of(place)
        if isinstance(size, LanceTableError):
            yield subject.error("file-unreadable", size.problem, path=place.path)
        elif size is None:
            message = f"a file of index {index.name!r} does not exist"
            yield subject.error("index-file-missing", message, path=place.path, hint=_REBUILD)
        elif size != file.size_bytes:
            message = (
                f"a file of index {index.name!r} has {size} bytes, but {file.size_bytes} "
                "are recorded"
            )
            yield subject.error("index-file-size", message, path=place.path, hint=_REBUILD)


def _folder(subject: Subject, index: IndexMetadata, folder: FileAt) -> Iterator[Finding]:
    """Check the folder of an entry without a file list; system indices may have no files."""
    if index.is_system or is_untrained(index):
        return
    if not folder.store.list_names(folder.path):
        message = f"the folder of index {index.name!r} is empty"
        yield subject.error("index-file-missing", message, path=folder.path, hint=_REBUILD)


def _overlaps(subject: Subject, indices: tuple[IndexMetadata, ...]) -> Iterator[Finding]:
    existing = BitMap(fragment.id for fragment in subject.fragments)
    covered: dict[str, BitMap] = {}
    for index in indices:
        mine = _coverage(index)
        if not isinstance(mine, BitMap):
            continue
        others = covered.setdefault(index.name, BitMap())
        shared = others & mine & existing
        if shared:
            yield subject.finding(
                subject.strict,
                "index-overlap",
                f"several segments of index {index.name!r} cover fragment {shared.min()}; "
                "rows may be found twice",
                hint=_REBUILD,
            )
        others |= mine


def _low_coverage(subject: Subject, indices: tuple[IndexMetadata, ...]) -> Iterator[Finding]:
    """Warn about indices that many rows are not in: queries scan these."""
    rows = {fragment.id: fragment.live_rows or 0 for fragment in subject.fragments}
    total = sum(rows.values())
    covered: dict[str, BitMap] = {}
    for index in _followed(indices):
        mine = _coverage(index)
        if isinstance(mine, BitMap) and not index.is_system:
            covered[index.name] = covered.get(index.name, BitMap()) | mine
    for name, fragments in covered.items():
        known = sum(count for fragment, count in rows.items() if fragment in fragments)
        if known < total * _GOOD_COVERAGE:
            yield subject.warning(
                "index-coverage-low",
                f"index {name!r} covers {known:,} of {total:,} rows; queries scan the others",
                hint="Run `lancelake index refresh` or `lancelake optimize`.",
            )


def _followed(indices: tuple[IndexMetadata, ...]) -> tuple[IndexMetadata, ...]:
    """Return entries with the coverage that recorded moves give them, where these are readable."""
    try:
        return follow_moves(indices)
    except LanceTableError:
        return ()


def _coverage(index: IndexMetadata) -> BitMap | LanceTableError | None:
    try:
        return index.fragments()
    except LanceTableError as error:
        return error


def _file(folder: FileAt, path: str) -> FileAt:
    return FileAt(root=folder.root, path=f"{folder.path}/{confined_path(path)}")


_TASK_BYTES = 256 << 20
_HINT = "Queries cannot use the index; build it again."


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckSegment:
    """A segment of an index to read."""

    location: Location
    name: ManifestName
    uuid: UUID
    index: str

    @property
    def memory_bytes(self) -> int:
        """Memory of a part of an index."""
        return _TASK_BYTES

    def run(self) -> bytes:
        """Read all entries of the segment and return the findings."""
        snapshot = _snapshot(self.location, self.name)
        entry = next(each for each in snapshot.indices if each.uuid == self.uuid)
        return encode(_segment(StoredIndices(snapshot), entry))

    def parts(self) -> tuple[CheckSegment, ...]:
        """Return the task: a segment is read as a whole."""
        return (self,)

    def lost(self, reason: str) -> bytes:
        """Return the finding about a segment that ends the process which reads it."""
        message = f"index {self.index!r} cannot be read: to read it ends the process ({reason})"
        return encode([Finding(Severity.ERROR, "index-file-damaged", message, hint=_HINT)])


def check_index_files(
    subject: Subject, seen: set[UUID], engine: Engine | None = None
) -> Iterator[Finding]:
    """Read all segments of known kinds, but for those in `seen`."""
    new = [index for index in subject.snapshot.indices if index.uuid not in seen]
    seen.update(index.uuid for index in new)
    yield from check_segments(subject, new, engine)


def check_segments(
    subject: Subject, indices: Sequence[IndexMetadata], engine: Engine | None = None
) -> Iterator[Finding]:
    """Read all entries of some segments."""
    tasks = tuple(
        CheckSegment(
            location=subject.snapshot.location,
            name=subject.snapshot.name,
            uuid=index.uuid,
            index=index.name,
        )
        for index in indices
    )
    yield from run_fragile_tasks(subject, "index files", tasks, engine)


@lru_cache(maxsize=4)
def _snapshot(location: Location, name: ManifestName) -> Snapshot:
    return Snapshot.load(location, name)


def _read_files(segment: StoredSegment) -> None:
    folder = segment.facts.folder
    place = folder.place
    names = [file.path for file in segment.entry.files]
    for name in names or place.store.list_names(place.path):
        reader = folder.open(name)
        for _ in reader.batches():
            pass
        # The first buffer is the schema.
        for number in range(1, len(open_end(folder.file(name)).global_buffers)):
            reader.buffer_at(number)


def _segment(stored: StoredIndices, index: IndexMetadata) -> Iterator[Finding]:
    try:
        with reading_index(index.name):
            segment = stored.segment(index)
            if segment is None:
                return
            _read_files(segment)
            opened = segment.open()
            opened.statistics()
            for _ in opened.entries():
                pass
            opened.verify()
    except StorageUnavailableError:
        raise
    except UnsupportedError as error:
        message = f"index {index.name!r} is not used here: {error.problem}"
        yield Finding(Severity.INFO, "index-unsupported", message)
    except LanceTableError as error:
        path = error.facts.get("path")
        yield Finding(
            Severity.ERROR,
            "index-file-damaged",
            message=error.problem,
            path=str(path) if path else None,
            hint=_HINT,
        )
