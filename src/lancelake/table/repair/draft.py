"""Draft of a repaired version, and the changes that lead to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from uuid import UUID

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import LanceTableError
from lancelake.format import index_meta
from lancelake.format import operations as ops
from lancelake.format.fragment import Fragment
from lancelake.format.frozen import FrozenMap
from lancelake.format.ids import FragmentId
from lancelake.format.index_meta import IndexMetadata
from lancelake.format.operations import Operation
from lancelake.txn.corrections import NO_CORRECTIONS, Corrections


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
