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
from lancelake.table.repair.file_entries import mend_file_entries
from lancelake.table.repair.indices import mend_indices, prune_coverage
from lancelake.table.repair.lost import drop_lost
from lancelake.table.repair.options import Wishes
from lancelake.table.repair.past import Past
from lancelake.table.repair.preview import findings, planned_deletions, previewed
from lancelake.table.repair.renewal import renew
from lancelake.table.repair.row_counts import mend_deletions, mend_row_counts
from lancelake.table.repair.row_ids import mend_row_ids, raise_next_row_id, renew_row_ids
from lancelake.table.repair.row_versions import mend_row_versions
from lancelake.table.repair.text import is_replaced, replace_invalid_text

Mend = Callable[[RepairContext], Draft]

MENDS: tuple[Mend, ...] = (
    mend_indices,
    mend_file_entries,
    mend_row_counts,
    mend_deletions,
    replace_invalid_text,
    drop_lost,
    mend_row_ids,
    raise_next_row_id,
    renew_row_ids,
    mend_row_versions,
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


def plan_line(head: Snapshot, before: tuple[Finding, ...], wishes: Wishes) -> LinePlan:
    """Try the repairs in sequence; keep those that reduce findings without adding new ones."""
    trial = _Trial(head, before, wishes)
    for mend in MENDS:
        trial.attempt(mend)
    # A repair may have been rejected only because another had to come first.
    trial.attempt_together(MENDS)
    return LinePlan(head=head, draft=trial.draft, before=before, after=trial.found)


def is_problem(finding: Finding, wishes: Wishes) -> bool:
    """Whether a finding needs a repair."""
    return wishes.notes or finding.severity is not Severity.INFO


class _Trial:
    """A draft that improves with each attempt."""

    def __init__(self, head: Snapshot, before: tuple[Finding, ...], wishes: Wishes) -> None:
        self._head = head
        self._wishes = wishes
        self._past = Past(head)
        self._sizes = FileSizes()
        self.draft = Draft.of(head)
        self.found = before

    def attempt(self, mend: Mend) -> None:
        """Keep the result of a repair if it is an improvement."""
        if self._problems(self.found):
            self._judge(mend(self._case(self.draft, self.found)))

    def attempt_together(self, mends: Iterable[Mend]) -> None:
        """Keep the combined result of all repairs if it is an improvement."""
        if not self._problems(self.found):
            return
        draft = self.draft
        for mend in mends:
            draft = mend(self._case(draft, self.found))
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
        every = findings(after, self._sizes, known, data=self._wishes.reads_data)
        found = tuple(f for f in every if not is_replaced(f, proposed))
        if self._is_better(found):
            self.draft, self.found = proposed, found

    def _is_better(self, found: Iterable[Finding]) -> bool:
        before, after = self._problems(self.found), self._problems(found)
        return after.total() < before.total() and after <= before

    def _problems(self, found: Iterable[Finding]) -> Counter[tuple[str, str | None]]:
        return Counter((f.code, f.path) for f in found if is_problem(f, self._wishes))

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
            wishes=self._wishes,
            found=tuple(found),
        )
