"""Plan a repair: findings, planned corrections and remaining problems."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import LanceTableError, StorageUnavailableError
from lancelake.storage.location import Location
from lancelake.table.check.finding import Finding
from lancelake.table.check.run import check
from lancelake.table.open import Latest, open_snapshot
from lancelake.table.refs import branch_location
from lancelake.table.repair.advice import advice
from lancelake.table.repair.documents import Action, action_for
from lancelake.table.repair.options import RepairOptions
from lancelake.table.repair.version_line import LinePlan, is_problem, plan_line

# Findings about the position of a version in its line, not about its contents.
_OF_THE_LINE = frozenset(
    {"manifest-name", "timestamp-order", "manifest-damaged", "transaction-file-missing"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """A remaining problem with advice."""

    finding: Finding
    advice: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairPlan:
    """The planned corrections; none is made yet."""

    location: Location
    findings: tuple[Finding, ...]
    lines: tuple[LinePlan, ...]
    actions: tuple[Action, ...]
    left: tuple[Left, ...]

    @property
    def has_work(self) -> bool:
        """Whether any correction is planned."""
        return bool(self.lines or self.actions)

    def steps(self) -> Iterator[tuple[str | None, str]]:
        """Yield descriptions of the corrections, each with its branch."""
        for line in self.lines:
            for step in line.draft.steps:
                yield line.head.branch, step
        for action in self.actions:
            yield None, action.step


def plan(location: Location, options: RepairOptions | None = None) -> RepairPlan:
    """Check the newest versions of a table and its branches, and plan corrections."""
    asked = options or RepairOptions()
    found = tuple(check(location, data=asked.reads_data))
    problems = tuple(f for f in found if is_problem(f, asked))
    if not problems:
        return RepairPlan(location=location, findings=found, lines=(), actions=(), left=())
    main, heads = _heads(location, problems)
    lines, left = [], []
    for branch, head in heads.items():
        mine = tuple(f for f in found if _concerns(f, head) and f.branch == branch)
        line = plan_line(head, mine, asked)
        if line.has_work:
            lines.append(line)
        left += [f for f in line.after if is_problem(f, asked)]
    actions: dict[Action, None] = {}
    for finding in problems:
        head_of = heads.get(finding.branch)
        if head_of is not None and _concerns(finding, head_of):
            continue
        action = action_for(finding, main, asked)
        if action is None:
            left.append(finding)
        else:
            actions[action] = None
    return RepairPlan(
        location=location,
        findings=found,
        lines=tuple(lines),
        actions=tuple(actions),
        left=tuple(Left(finding=f, advice=advice(f)) for f in left),
    )


def _heads(
    location: Location, problems: tuple[Finding, ...]
) -> tuple[Location, dict[str | None, Snapshot]]:
    """Return the table's root, and the newest versions with findings."""
    heads: dict[str | None, Snapshot] = {}
    own = _opened(location)
    main = location if own is None else own.main_location
    for branch in dict.fromkeys(f.branch for f in problems if f.version is not None):
        is_own = own is not None and own.branch == branch
        head = own if is_own else _opened(branch_location(main, branch))
        if head is not None:
            heads[branch] = head
    return main, heads


def _opened(location: Location) -> Snapshot | None:
    """Open the newest version; None if nothing can be committed after it."""
    try:
        head = open_snapshot(location, Latest())
        tuple(head.manifest.fragments)
        head.indices  # noqa: B018  # decoded here, or not at all
    except StorageUnavailableError:
        raise
    except LanceTableError:
        return None
    # The next version would leave a gap.
    return head if head.version == head.name.version else None


def _concerns(finding: Finding, head: Snapshot) -> bool:
    return finding.version == head.version and finding.code not in _OF_THE_LINE
