"""Plan the corrections of the newest version of a version line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import LanceTableError, StorageUnavailableError
from lancelake.table.check.deletions import Deletions
from lancelake.table.check.file_sizes import FileSizes
from lancelake.table.check.finding import Finding, Severity
from lancelake.table.check.subject import Subject
from lancelake.table.repair.context import RepairContext
from lancelake.table.repair.draft import Draft
from lancelake.table.repair.file_entries import repair_file_entries
from lancelake.table.repair.indices import prune_coverage, repair_indices
from lancelake.table.repair.lost import drop_lost
from lancelake.table.repair.options import RepairOptions
from lancelake.table.repair.past import Past
from lancelake.table.repair.preview import findings, planned_deletions, previewed
from lancelake.table.repair.renewal import renew
from lancelake.table.repair.row_counts import repair_deletions, repair_row_counts
from lancelake.table.repair.row_ids import raise_next_row_id, renew_row_ids, repair_row_ids
from lancelake.table.repair.row_versions import repair_row_versions
from lancelake.table.repair.text import is_replaced, replace_invalid_text

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
