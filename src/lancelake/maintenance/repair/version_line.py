"""Repair of the latest version of a branch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from pyroaring import BitMap

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import LanceTableError, StorageUnavailableError
from lancelake.format.fragment import DataFile, FileVersion, Fragment
from lancelake.format.ids import TOMBSTONE
from lancelake.format.index_meta import FRAGMENT_REUSE, IndexMetadata
from lancelake.maintenance.check.finding import FileSizes, Finding, Severity, Subject
from lancelake.maintenance.check.index_files import check_entry_alone, check_segments
from lancelake.maintenance.check.row_ids import Deletions
from lancelake.maintenance.repair.draft import Draft, Past, RepairContext, RepairOptions
from lancelake.maintenance.repair.rows import (
    findings,
    is_replaced,
    planned_deletions,
    previewed,
    raise_next_row_id,
    renew_row_ids,
    repair_deletions,
    repair_row_counts,
    repair_row_ids,
    repair_row_versions,
    replace_invalid_text,
)
from lancelake.storage.table_files import FileAt

_PROBLEMS = {
    "flag-missing": "feature flags recomputed from the contents of the version",
    "flag-words-differ": "feature flags set for both readers and writers",
    "fragment-id-range": "the highest fragment id",
    "fragment-empty": "fragments without rows removed from the list",
    "row-count-missing": "row counts read from the files",
    "transaction-missing": "new version with a recorded transaction",
    "transaction-damaged": "new version with a readable transaction",
    "transaction-order": "new version with a valid transaction",
}
_NOTES = {
    "flag-idle": "feature flags recomputed from the contents of the version",
    "file-dead": "files without live columns removed from the list",
    "file-size-missing": "sizes of data files read from the store",
    "operation-unknown": "new version with a known operation",
}


def renew(case: RepairContext) -> Draft:
    """Request a new version if that alone corrects a finding."""
    helped = _PROBLEMS | (_NOTES if case.options.notes else {})
    steps = tuple(dict.fromkeys(what for code, what in helped.items() if code in case.codes))
    if not steps:
        return case.draft
    return replace(case.draft, is_renewed=True, steps=(*case.draft.steps, *steps))


LOST_CODES = frozenset(
    {
        "data-file-missing",
        "data-file-size",
        "data-file-damaged",
        "data-file-version",
        "file-unreadable",
        "file-escapes",
        "base-undeclared",
        "file-columns",
        "file-column-twice",
        "file-field-unknown",
        "file-version-unknown",
        "column-unreadable",
        "row-count",
    }
)


def drop_lost(case: RepairContext) -> Draft:
    """Drop unreadable fragments if that is allowed; the rows of the others are kept."""
    if not case.options.drop_lost or not case.codes & LOST_CODES:
        return case.draft
    lost = {f.id for f in case.subject.fragments if _is_lost(case, f)}
    if not lost:
        return case.draft
    kept = tuple(f for f in case.draft.fragments if f.id not in lost)
    steps = (
        f"fragment {f.id}: dropped, with {_rows(f)}" for f in case.draft.fragments if f.id in lost
    )
    return replace(case.draft, fragments=kept, steps=(*case.draft.steps, *steps))


def _is_lost(case: RepairContext, fragment: Fragment) -> bool:
    for file in fragment.files:
        place = case.subject.place(file)
        size = case.subject.sizes.of(place) if isinstance(place, FileAt) else None
        if not isinstance(size, int):
            return True
    is_whole = case.codes.isdisjoint(LOST_CODES - {"data-file-missing", "file-unreadable"})
    return not is_whole and not case.is_readable(fragment)


def _rows(fragment: Fragment) -> str:
    rows = fragment.live_rows
    return "an unknown number of rows" if rows is None else f"{rows:,} rows"


ENTRY_CODES = frozenset(
    {
        "data-file-size",
        "file-columns",
        "file-column-twice",
        "file-field-unknown",
        "file-version-unknown",
        "file-version-mixed",
        "data-file-version",
    }
)


def repair_file_entries(case: RepairContext) -> Draft:
    """Take entries from earlier versions, and the sizes of readable files from the store."""
    if not case.codes & ENTRY_CODES:
        return case.draft
    changed, steps = [], []
    for fragment in case.subject.fragments:
        right = replace(fragment, files=tuple(_repaired(case, fragment, f) for f in fragment.files))
        if right != fragment and case.is_readable(right):
            changed.append(right)
            steps += list(_steps(fragment, right))
    return case.draft.with_fragments(changed, steps)


def _repaired(case: RepairContext, fragment: Fragment, file: DataFile) -> DataFile:
    if _is_faulty(case, file):
        found = (_renewed(file, then) for then in case.past.file(fragment, file))
        file = next((each for each in found if not _is_faulty(case, each)), file)
    place = case.subject.place(file)
    size = case.subject.sizes.of(place) if isinstance(place, FileAt) else None
    is_wrong = isinstance(size, int) and file.file_size_bytes not in (None, size)
    if is_wrong and _version(file) not in (None, FileVersion.LEGACY):
        assert isinstance(size, int)
        return replace(file, file_size_bytes=size)
    return file


def _renewed(now: DataFile, then: DataFile) -> DataFile:
    """Return the earlier entry; columns dropped since stay dropped."""
    if len(now.fields) != len(then.fields):
        return then
    pairs = zip(now.fields, then.fields, strict=True)
    return replace(then, fields=tuple(n if n == TOMBSTONE else t for n, t in pairs))


def _is_faulty(case: RepairContext, file: DataFile) -> bool:
    version = _version(file)
    if version is None or version is not case.head.manifest.data_version:
        return True
    if any(field < 0 and field != TOMBSTONE for field in file.fields):
        return True
    if version is FileVersion.LEGACY:
        return False
    if len(file.fields) != len(file.column_indices):
        return True
    pairs = zip(file.fields, file.column_indices, strict=True)
    live = [column for field, column in pairs if field >= 0 and column >= 0]
    return len(set(live)) < len(live)


def _version(file: DataFile) -> FileVersion | None:
    try:
        return file.version
    except LanceTableError:
        return None


def _steps(before: Fragment, after: Fragment) -> Iterator[str]:
    for old, new in zip(before.files, after.files, strict=True):
        sized = replace(old, file_size_bytes=new.file_size_bytes)
        if sized != new:
            yield f"data file {new.path}: columns and version restored from an earlier version"
        if old.file_size_bytes != new.file_size_bytes:
            yield f"data file {new.path}: {new.file_size_bytes} bytes, not {old.file_size_bytes}"


UNUSABLE = frozenset(
    {
        "index-field-gone",
        "index-bitmap-damaged",
        "index-details-damaged",
        "index-file-missing",
        "index-file-size",
        "index-file-damaged",
        "file-escapes",
        "base-undeclared",
    }
)


def repair_indices(case: RepairContext) -> Draft:
    """Drop unusable entries; the steps name the indices to rebuild."""
    kept: list[IndexMetadata] = []
    steps: list[str] = []
    covered: dict[str, BitMap] = {}
    for index in case.draft.indices:
        reason = None if index.is_system else _reason(case, index, kept, covered)
        if reason is not None:
            steps.append(f"index {index.name!r}: segment dropped: {reason}")
            continue
        right = _undated(index, case.head.version)
        if right != index:
            steps.append(f"index {index.name!r}: built from version {right.dataset_version}")
        kept.append(right)
    if not steps:
        return case.draft
    return replace(case.draft, indices=tuple(kept), steps=(*case.draft.steps, *steps))


def prune_coverage(case: RepairContext) -> Draft:
    """Remove fragments that do not exist from index coverage, if infos are repaired as well."""
    if not case.options.notes or any(i.name == FRAGMENT_REUSE for i in case.draft.indices):
        return case.draft
    existing = BitMap(fragment.id for fragment in case.draft.fragments)
    found = tuple(_pruned(index, existing) for index in case.draft.indices)
    names = (o.name for o, n in zip(case.draft.indices, found, strict=True) if o != n)
    steps = tuple(f"index {name!r}: coverage limited to existing fragments" for name in names)
    return replace(case.draft, indices=found, steps=(*case.draft.steps, *steps))


def _findings(case: RepairContext, index: IndexMetadata) -> Iterator[Finding]:
    yield from check_entry_alone(case.subject, index)
    if case.options.reads_data:
        yield from check_segments(case.subject, [index])


def _reason(
    case: RepairContext,
    index: IndexMetadata,
    kept: list[IndexMetadata],
    covered: dict[str, BitMap],
) -> str | None:
    """Return why an entry is unusable given those that are kept; None if it is usable."""
    if any(other.uuid == index.uuid for other in kept):
        return "it is a duplicate"
    for finding in _findings(case, index):
        if finding.code in UNUSABLE:
            action = "it is rebuilt" if case.options.rebuild_indices else "rebuild it"
            return f"{finding.message}; {action}"
    mine = index.fragments()
    others = covered.setdefault(index.name, BitMap())
    if mine is not None and mine & others & BitMap(f.id for f in case.subject.fragments):
        return "another segment covers the same fragments"
    others |= mine or BitMap()
    return None


def _undated(index: IndexMetadata, newest: int) -> IndexMetadata:
    if index.dataset_version <= newest:
        return index
    return replace(index, dataset_version=type(index.dataset_version)(newest))


def _pruned(index: IndexMetadata, existing: BitMap) -> IndexMetadata:
    try:
        covered = index.fragments()
    except LanceTableError:
        return index
    if index.is_system or covered is None or covered <= existing:
        return index
    return replace(index, fragment_bitmap=bytes((covered & existing).serialize()))


Repair = Callable[[RepairContext], Draft]

REPAIRS: tuple[Repair, ...] = (
    repair_indices,
    repair_file_entries,
    repair_row_counts,
    repair_deletions,
    replace_invalid_text,
    drop_lost,
    repair_row_ids,
    raise_next_row_id,
    renew_row_ids,
    repair_row_versions,
    prune_coverage,
    renew,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinePlan:
    """Findings, corrected draft and remaining problems of the newest version of a line."""

    head: Snapshot
    draft: Draft
    before: tuple[Finding, ...]
    after: tuple[Finding, ...]

    @property
    def has_work(self) -> bool:
        """Whether there is something to commit."""
        return bool(self.draft.steps)


def plan_line(head: Snapshot, before: tuple[Finding, ...], options: RepairOptions) -> LinePlan:
    """Try the repairs in sequence; keep those that reduce findings without adding new ones."""
    trial = _Trial(head, before, options)
    for repair in REPAIRS:
        trial.attempt(repair)
    # A repair may have been rejected only because another had to come first.
    trial.attempt_together(REPAIRS)
    return LinePlan(head=head, draft=trial.draft, before=before, after=trial.found)


def is_problem(finding: Finding, options: RepairOptions) -> bool:
    """Whether a finding needs a repair."""
    return options.notes or finding.severity is not Severity.INFO


class _Trial:
    """A draft that improves with each attempt."""

    def __init__(self, head: Snapshot, before: tuple[Finding, ...], options: RepairOptions) -> None:
        self._head = head
        self._options = options
        self._past = Past(head)
        self._sizes = FileSizes()
        self.draft = Draft.of(head)
        self.found = before

    def attempt(self, repair: Repair) -> None:
        """Keep the result of a repair if it is an improvement."""
        if self._problems(self.found):
            self._judge(repair(self._case(self.draft, self.found)))

    def attempt_together(self, repairs: Iterable[Repair]) -> None:
        """Keep the combined result of all repairs if it is an improvement."""
        if not self._problems(self.found):
            return
        draft = self.draft
        for repair in repairs:
            draft = repair(self._case(draft, self.found))
        self._judge(draft)

    def _judge(self, proposed: Draft) -> None:
        if proposed == self.draft:
            return
        try:
            after = previewed(self._head, proposed)
        except StorageUnavailableError:
            raise
        except LanceTableError:
            return
        known = planned_deletions(self._head, proposed)
        every = findings(after, self._sizes, known, data=self._options.reads_data)
        found = tuple(f for f in every if not is_replaced(f, proposed))
        if self._is_better(found):
            self.draft, self.found = proposed, found

    def _is_better(self, found: Iterable[Finding]) -> bool:
        before, after = self._problems(self.found), self._problems(found)
        return after.total() < before.total() and after <= before

    def _problems(self, found: Iterable[Finding]) -> Counter[tuple[str, str | None]]:
        return Counter((f.code, f.path) for f in found if is_problem(f, self._options))

    def _case(self, draft: Draft, found: Iterable[Finding]) -> RepairContext:
        subject = Subject(draft.on(self._head), self._sizes)
        deletions = Deletions(planned_deletions(self._head, draft))
        deletions.load(subject)
        return RepairContext(
            head=self._head,
            draft=draft,
            subject=subject,
            deletions=deletions,
            past=self._past,
            options=self._options,
            found=tuple(found),
        )
