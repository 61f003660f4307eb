"""Commit rewritten fragments; fragments that others changed in the meantime are skipped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import RetryableConflictError
from lancelake.format.fragment import Fragment
from lancelake.format.ids import FragmentId
from lancelake.format.index_meta import IndexMetadata
from lancelake.format.operations import ReserveFragments, Rewrite
from lancelake.format.operations.rewrite import RewriteGroup, RewrittenIndex
from lancelake.table.compact.coverage import coverage_by_index, covers_part, covers_some
from lancelake.table.compact.index_moves import recorded_moves
from lancelake.table.compact.index_remap import remapped_indices
from lancelake.table.open import Latest, open_snapshot
from lancelake.table.publish import CommitChoices, new_transaction, publish


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """Fragments as read, and the new fragments with their rows, which have no ids yet.

    `is_sorted` means that the rows were reordered.
    """

    old: tuple[Fragment, ...]
    new: tuple[Fragment, ...]
    is_sorted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Landing:
    """Result of committing rewrites: the version, and the rewrites that were committed and skipped.

    `conflict` is the conflict that caused rewrites to be skipped, if any.
    """

    snapshot: Snapshot
    landed: tuple[Rewritten, ...]
    void: tuple[Rewritten, ...] = ()
    conflict: RetryableConflictError | None = None


def land(
    base: Snapshot, done: Sequence[Rewritten], choices: CommitChoices, *, record_moves: bool = False
) -> Landing:
    """Commit all rewrites of fragments of `base` that are still valid, in one version.

    A fragment that was changed since is not replaced: its rewrite is discarded, the others are
    committed. Indices of row addresses are remapped; with `record_moves` the moves are recorded
    instead. An index no longer covers rows that were sorted.
    """
    if not done:
        return Landing(snapshot=base, landed=())
    reserved = _reserved(base, sum(len(rewrite.new) for rewrite in done), choices)
    at, valid = base, _numbered(done, reserved.manifest.max_fragment_id or 0)
    void: list[Rewritten] = []
    conflict: RetryableConflictError | None = None
    while valid:
        groups = tuple(RewriteGroup(old_fragments=r.old, new_fragments=r.new) for r in valid)
        version = max(reserved.version, at.version)
        records = record_moves and not at.manifest.has_stable_row_ids
        moves = _moves(at, valid, version, choices) if records else None
        remapped = () if records else _remapped(at, valid, choices)
        chosen = replace(choices, fragment_reuse=moves)
        operation = Rewrite(groups=groups, rewritten_indices=remapped)
        transaction = new_transaction(operation, at.version, chosen)
        try:
            made = publish(at, transaction, chosen)
        except RetryableConflictError as error:
            conflict = error
            at = open_snapshot(base.location, Latest(), main=base.main_location)
            keeps = _StillValid(at)
            void += [rewrite for rewrite in valid if not keeps(rewrite)]
            valid = [rewrite for rewrite in valid if keeps(rewrite)]
        else:
            landed = tuple(valid)
            return Landing(snapshot=made, landed=landed, void=tuple(void), conflict=conflict)
    return Landing(snapshot=at, landed=(), void=tuple(void), conflict=conflict)


def _reserved(base: Snapshot, count: int, choices: CommitChoices) -> Snapshot:
    """Reserve ids for new fragments; they are the highest of the version."""
    operation = ReserveFragments(num_fragments=count)
    return publish(base, new_transaction(operation, base.version, choices), choices)


def _numbered(done: Sequence[Rewritten], highest: int) -> list[Rewritten]:
    following = highest - sum(len(rewrite.new) for rewrite in done) + 1
    found = []
    for rewrite in done:
        new = tuple(
            replace(f, id=FragmentId(n)) for n, f in enumerate(rewrite.new, start=following)
        )
        following += len(new)
        found.append(replace(rewrite, new=new))
    return found


def _moves(
    at: Snapshot, valid: Sequence[Rewritten], version: int, choices: CommitChoices
) -> IndexMetadata | None:
    """Record new row addresses if an index needs them and the rows keep their order."""
    coverage = coverage_by_index(at)
    followed = [
        RewriteGroup(old_fragments=rewrite.old, new_fragments=rewrite.new)
        for rewrite in valid
        if not rewrite.is_sorted and covers_some(coverage, rewrite.old)
    ]
    return recorded_moves(at, followed, version, choices.surroundings) if followed else None


def _remapped(
    at: Snapshot, valid: Sequence[Rewritten], choices: CommitChoices
) -> tuple[RewrittenIndex, ...]:
    """Remap the indices of rows that keep their order; others cannot be remapped."""
    if any(rewrite.is_sorted for rewrite in valid):
        return ()
    groups = [RewriteGroup(old_fragments=r.old, new_fragments=r.new) for r in valid]
    return remapped_indices(at, groups, choices.surroundings)


class _StillValid:
    """Decides whether a rewrite is still valid for the contents of a version."""

    def __init__(self, at: Snapshot) -> None:
        self._fragments = {fragment.id: fragment for fragment in at.manifest.fragments}
        self._coverage = coverage_by_index(at)
        self._has_stable_row_ids = at.manifest.has_stable_row_ids

    def __call__(self, rewrite: Rewritten) -> bool:
        is_same = all(_is_same(old, self._fragments.get(old.id)) for old in rewrite.old)
        # Indices do not follow sorted rows by address, whatever they cover.
        is_followed = self._has_stable_row_ids or not rewrite.is_sorted
        return is_same and not (is_followed and covers_part(self._coverage, rewrite.old))


def _is_same(old: Fragment, current: Fragment | None) -> bool:
    """Whether a fragment still has the same rows and values."""
    return current is not None and _content(old) == _content(current)


def _content(fragment: Fragment) -> object:
    deletion = fragment.deletion_file
    return (
        [(f.base_id, f.path, f.fields, f.column_indices) for f in fragment.files],
        None if deletion is None else (deletion.base_id, deletion.read_version, deletion.id),
        fragment.row_ids,
        fragment.created_at_versions,
        fragment.last_updated_at_versions,
    )
