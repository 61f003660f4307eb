"""Context of a repair: the draft of a version, and its findings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain

from lancelake.commit.snapshot import Snapshot
from lancelake.format.fragment import Fragment
from lancelake.table.check.deletions import Deletions
from lancelake.table.check.finding import Finding
from lancelake.table.check.footers import check_footers
from lancelake.table.check.rows import INVALID_TEXT, check_rows
from lancelake.table.check.subject import Subject
from lancelake.table.repair.draft import Draft
from lancelake.table.repair.options import RepairOptions
from lancelake.table.repair.past import Past


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
