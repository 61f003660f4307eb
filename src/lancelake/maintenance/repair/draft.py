"""Draft of a repaired version."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from uuid import UUID

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import LanceTableError, StorageUnavailableError
from lancelake.format import index_meta
from lancelake.format import operations as ops
from lancelake.format.fragment import DataFile, Fragment
from lancelake.format.fragment_list import FragmentList
from lancelake.format.frozen import FrozenMap
from lancelake.format.ids import BaseId, FragmentId
from lancelake.format.index_meta import IndexMetadata
from lancelake.format.operations import Operation
from lancelake.maintenance.check.data_files import INVALID_TEXT, check_footers, check_rows
from lancelake.maintenance.check.finding import Finding, Subject
from lancelake.maintenance.check.refs import CheckedLine
from lancelake.maintenance.check.row_ids import Deletions
from lancelake.txn.options import NO_CORRECTIONS, Corrections


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairOptions:
    """Repairs to perform beyond the lossless ones."""

    data: bool = False
    """Read every value, to find wrong row counts and unreadable files."""

    notes: bool = False
    """Also repair harmless findings."""

    drop_lost: bool = False
    """Drop fragments with missing or unreadable files, with all their rows."""

    replace_invalid_utf8: bool = False
    """Replace invalid UTF-8 bytes of strings with U+FFFD; every value is read."""

    rebuild_indices: bool = False
    """Build indices again of which a segment was dropped; their columns are read for it."""

    new_row_ids: bool = False
    """Assign new row ids to rows with lost ids; references to the old ids become invalid."""

    remove_refs: bool = False
    """Delete tags and branches that refer to nothing."""

    rename_manifests: bool = False
    """Rename all manifests to one naming scheme; there must be no other writers in the meantime."""

    @property
    def reads_data(self) -> bool:
        """Whether every value is read."""
        return self.data or self.replace_invalid_utf8


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftChange:
    """A change to commit, and what it corrects in the previous version."""

    operation: Operation
    corrections: Corrections = NO_CORRECTIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class TextReplacement:
    """A top-level column of a fragment to rewrite as valid UTF-8."""

    fragment_id: FragmentId
    column: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A version as it should be.

    `files` are deletion files to write first, by their path below the root. `text` are columns to
    write first, whose files are not in the fragments yet. `is_renewed` requests a new version even
    without other differences, since every commit corrects some fields. `steps` describes the
    corrections.
    """

    fragments: tuple[Fragment, ...]
    indices: tuple[IndexMetadata, ...]
    next_row_id: int
    files: FrozenMap[str, bytes] = field(default_factory=FrozenMap)
    text: tuple[TextReplacement, ...] = ()
    is_renewed: bool = False
    steps: tuple[str, ...] = ()

    @staticmethod
    def of(head: Snapshot) -> Draft:
        """Start from an existing version."""
        manifest = head.manifest
        return Draft(
            fragments=tuple(manifest.fragments),
            indices=head.indices,
            next_row_id=manifest.next_row_id,
        )

    def with_fragments(self, changed: Iterable[Fragment], steps: Iterable[str]) -> Draft:
        """Return the draft with new entries for some fragments."""
        by_id = {fragment.id: fragment for fragment in changed}
        fragments = tuple(by_id.get(f.id, f) for f in self.fragments)
        return replace(self, fragments=fragments, steps=(*self.steps, *steps))

    def on(self, head: Snapshot) -> Snapshot:
        """Return a version with the contents of the draft; it exists in memory only."""
        manifest = replace(head.manifest, fragments=self.fragments, next_row_id=self.next_row_id)
        section = index_meta.encode_section(self.indices) if self.indices else None
        return replace(head, file=replace(head.file, manifest=manifest, index_section=section))


def changes(head: Snapshot, draft: Draft) -> Iterator[DraftChange]:
    """Yield the changes from a version to a draft; none if they are the same."""
    before = {fragment.id: fragment for fragment in head.manifest.fragments}
    kept = {fragment.id for fragment in draft.fragments}
    gone = tuple(number for number in before if number not in kept)
    changed = tuple(f for f in draft.fragments if before[f.id] != f)
    has_ids_left = draft.next_row_id > head.manifest.next_row_id
    entries = _entries(head.indices, draft.indices)
    if entries:
        yield _index_change(head, entries)
    if gone:
        delete = ops.Delete(updated_fragments=(), deleted_fragment_ids=gone, predicate="")
        yield DraftChange(operation=delete)
    if changed or has_ids_left:
        merge = ops.Merge(
            fragments=draft.fragments, schema=head.manifest.schema, preserves_nullability=True
        )
        corrections = Corrections(fragments=changed, next_row_id=draft.next_row_id)
        yield DraftChange(operation=merge, corrections=corrections)
    if draft.is_renewed and not (entries or gone or changed or has_ids_left):
        yield DraftChange(operation=ops.UpdateConfig())


def _entries(
    before: tuple[IndexMetadata, ...], after: tuple[IndexMetadata, ...]
) -> FrozenMap[UUID, IndexMetadata | None]:
    """Return the changed index entries by uuid; None for removed ones."""
    wanted = {index.uuid: index for index in after}
    counts = Counter(index.uuid for index in before)
    return FrozenMap(
        {
            index.uuid: wanted.get(index.uuid)
            for index in before
            if counts[index.uuid] > 1 or wanted.get(index.uuid) != index
        }
    )


def _index_change(head: Snapshot, entries: FrozenMap[UUID, IndexMetadata | None]) -> DraftChange:
    operation = ops.CreateIndex(
        new_indices=tuple(index for index in entries.values() if index is not None),
        removed_indices=tuple(_readable(i) for i in head.indices if entries.get(i.uuid, i) is None),
    )
    return DraftChange(operation=operation, corrections=Corrections(indices=entries))


def _readable(index: IndexMetadata) -> IndexMetadata:
    """Return an entry that can be recorded: readers decode transactions, too."""
    try:
        index.fragments()
    except LanceTableError:
        return replace(index, fragment_bitmap=b"")
    return index


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


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairContext:
    """A draft to repair; `found` has its findings."""

    head: Snapshot
    draft: Draft
    subject: Subject
    deletions: Deletions
    past: Past
    options: RepairOptions
    found: tuple[Finding, ...]

    @property
    def codes(self) -> frozenset[str]:
        """The codes of the findings."""
        return frozenset(finding.code for finding in self.found)

    def is_readable(self, fragment: Fragment) -> bool:
        """Whether all values of a fragment can be read, and match its row count.

        Invalid UTF-8 is ignored, since it can be replaced.
        """
        alone = replace(self.draft, fragments=(fragment,)).on(self.head)
        subject = Subject(alone, self.subject.sizes)
        # Readers may be cached; footers are always read from the store.
        found = chain(check_footers(subject), check_rows(subject, set()))
        return all(finding.code == INVALID_TEXT for finding in found)
