"""Repair of a table: what it would do, and doing it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from lancelake import errors
from lancelake.commit import ref_files
from lancelake.commit.ref_files import RefTarget
from lancelake.commit.snapshot import (
    Latest,
    Snapshot,
    branch_location,
    correct_hint,
    find_version,
    latest_version,
    list_tags,
    load_tag,
    open_line,
    open_snapshot,
    quarantine,
    rewrite_transaction_file,
)
from lancelake.format import layout
from lancelake.format.index_meta import IndexMetadata
from lancelake.format.layout import ManifestName
from lancelake.index.kinds import kind_of
from lancelake.maintenance.check.finding import FileSizes, Finding, Severity
from lancelake.maintenance.check.refs import CheckedLine
from lancelake.maintenance.check.run import check
from lancelake.maintenance.repair.draft import RepairOptions, changes
from lancelake.maintenance.repair.rows import findings, with_replaced_text
from lancelake.maintenance.repair.version_line import LinePlan, is_problem, plan_line
from lancelake.storage.location import Location
from lancelake.table.branches import restore
from lancelake.table.config import migrate_manifest_names
from lancelake.table.index.build import IndexRun, create_index
from lancelake.table.index.refresh import RefreshOptions, refresh_indices
from lancelake.table.index.request import IndexRequest, entry_path
from lancelake.table.publish import DEFAULT_CHOICES, CommitChoices, publish
from lancelake.txn import migrations


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectHint:
    """Set the version hint to the newest version."""

    location: Location

    @property
    def step(self) -> str:
        """Describe the action."""
        return "version hint: rewritten"

    def carry_out(self) -> None:
        """Write the hint."""
        correct_hint(open_line(self.location), latest_version(self.location).version)


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectTag:
    """Correct the manifest size recorded in a tag."""

    main: Location
    name: str

    @property
    def step(self) -> str:
        """Describe the action."""
        return f"tag {self.name!r}: manifest size corrected"

    def carry_out(self) -> None:
        """Write the tag for the version it refers to."""
        tag = load_tag(self.main, self.name)
        place = branch_location(self.main, tag.branch)
        name = find_version(place, tag.version).name
        size = place.store.head(layout.manifest(name)).size_bytes
        target = RefTarget(branch=tag.branch, version=tag.version, manifest_size=size)
        ref_files.move_tag(self.main.store, self.name, target, clock=self.main.session.clock)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedTag:
    """Delete a tag that refers to nothing."""

    main: Location
    name: str

    @property
    def step(self) -> str:
        """Describe the action."""
        return f"tag {self.name!r}: deleted"

    def carry_out(self) -> None:
        """Delete the document."""
        ref_files.remove_tag(self.main.store, self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedBranch:
    """Delete a branch without versions."""

    main: Location
    name: str

    @property
    def step(self) -> str:
        """Describe the action."""
        return f"branch {self.name!r}: deleted"

    def carry_out(self) -> None:
        """Delete the document."""
        ref_files.remove_branch(self.main.store, self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class RenamedManifests:
    """Rename all manifests to the current naming scheme."""

    location: Location

    @property
    def step(self) -> str:
        """Describe the action."""
        return "manifests: renamed to the current naming scheme"

    def carry_out(self) -> None:
        """Rename the manifests."""
        migrate_manifest_names(self.location)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenTransaction:
    """Write the transaction file of the newest version."""

    location: Location
    version: int

    @property
    def step(self) -> str:
        """Describe the action."""
        return f"transaction file of version {self.version}: rewritten"

    def carry_out(self) -> None:
        """Copy the transaction from the manifest."""
        name = find_version(self.location, self.version)
        rewrite_transaction_file(open_line(self.location), name)


Action = (
    WrittenTransaction | CorrectHint | CorrectTag | RemovedTag | RemovedBranch | RenamedManifests
)


def action_for(finding: Finding, main: Location, options: RepairOptions) -> Action | None:
    """Return the action for a finding, if the options allow it."""
    name = _name(finding)
    here = branch_location(main, finding.branch)
    match finding.code:
        case "hint-ahead":
            return CorrectHint(location=here)
        case "hint-damaged" if options.notes:
            return CorrectHint(location=here)
        case "transaction-file-missing" if options.notes and finding.version is not None:
            return WrittenTransaction(location=here, version=finding.version)
        case "tag-manifest-size":
            return CorrectTag(main=main, name=name)
        case "tag-target-missing" if options.remove_refs:
            return RemovedTag(main=main, name=name)
        case "branch-root-missing" if options.remove_refs:
            return RemovedBranch(main=main, name=name)
        case "ref-damaged" if options.remove_refs:
            return _removed(finding, main, name)
        case "naming-mixed" if options.rename_manifests:
            return RenamedManifests(location=here)
        case _:
            return None


def carried_out(actions: tuple[Action, ...]) -> Iterator[str]:
    """Perform the actions and return their descriptions; missing documents need no action."""
    for action in actions:
        try:
            action.carry_out()
        except errors.ObjectNotFoundError:
            continue
        yield action.step


def _removed(finding: Finding, main: Location, name: str) -> Action | None:
    """Delete an unreadable document; that of a branch only if the branch has no files."""
    path = finding.path or ""
    if path.startswith(f"{layout.TAGS}/"):
        return RemovedTag(main=main, name=name) if layout.tag(name) == path else None
    try:
        has_versions = bool(branch_location(main, name).store.list_names(layout.VERSIONS))
    except errors.LanceTableError:
        return None
    return None if has_versions else RemovedBranch(main=main, name=name)


def _name(finding: Finding) -> str:
    path = finding.path or ""
    if finding.code == "branch-root-missing":
        return path.removeprefix(f"{layout.TREE}/")
    file = path.rpartition("/")[2]
    return layout.tag_name(file) if path.startswith(layout.TAGS) else layout.branch_name(file)


_COPY_OR_BACK = "Restore the file from a backup, or go back with --to-healthy"
_LOST_FILE = f"{_COPY_OR_BACK}; or drop the rows with --drop-lost."
_LOST_IDS = "Assign new row ids with --new-row-ids; references to the old ones become invalid."
_BACK = "Go back to the newest consistent version with --to-healthy."
_REFS = "Move it to another version, or delete it with --remove-refs."

_ADVICE = {
    "data-file-missing": _LOST_FILE,
    "data-file-size": _LOST_FILE,
    "data-file-damaged": _LOST_FILE,
    "data-file-version": _LOST_FILE,
    "file-unreadable": _LOST_FILE,
    "file-escapes": _LOST_FILE,
    "base-undeclared": "Register the base path again; or drop the rows with --drop-lost.",
    "file-columns": _LOST_FILE,
    "file-column-twice": _LOST_FILE,
    "file-field-unknown": _LOST_FILE,
    "file-version-unknown": _LOST_FILE,
    "column-unreadable": _LOST_FILE,
    "row-count": _LOST_FILE,
    "text-not-utf8": "Replace the invalid bytes with --replace-invalid-utf8; all other values "
    "remain unchanged.",
    "deletion-file-missing": f"{_COPY_OR_BACK}: without it, deleted rows cannot be identified.",
    "deletion-file-damaged": f"{_COPY_OR_BACK}: without it, deleted rows cannot be identified.",
    "row-ids-damaged": _LOST_IDS,
    "row-ids-length": _LOST_IDS,
    "row-ids-twice": _LOST_IDS,
    "manifest-damaged": _BACK,
    "index-section-damaged": _BACK,
    "fragment-damaged": _BACK,
    "fragment-id-twice": _BACK,
    "field-id-twice": _BACK,
    "field-id-negative": _BACK,
    "column-name-twice": _BACK,
    "column-name-dot": _BACK,
    "type-unknown": "Use a newer release; or go back with --to-healthy.",
    "null-forbidden": "Fill the nulls with `lancelake update`, or write the rows again.",
    "manifest-name": "Rename the file to match the manifest, or restore it from a backup.",
    "tag-target-missing": _REFS,
    "branch-root-missing": "Restore its folder, or delete the branch with --remove-refs.",
    "ref-damaged": "Write the document again; a tag, or a branch without versions, can be "
    "deleted with --remove-refs.",
    "branch-parent-missing": "Rows that the branch shares with it may be lost; clone the branch.",
    "branch-fork-missing": "Clone the branch before files that it shares are cleaned up.",
    "branch-zombie": "Delete its remaining files with `lancelake branch delete`.",
    "naming-mixed": "Stop all writers, then use --rename-manifests.",
    "versions-missing": "Only these versions are lost; later ones are complete.",
    "unknown-writer-flags": "Use the release that created the table.",
    "version-unsupported": "Use a newer release.",
}


def advice(finding: Finding) -> str:
    """Say what to do about a finding."""
    return _ADVICE.get(finding.code) or finding.hint or "Restore a consistent version."


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
    except errors.StorageUnavailableError:
        raise
    except errors.LanceTableError:
        return None
    # The next version would leave a gap.
    return head if head.version == head.name.version else None


def _concerns(finding: Finding, head: Snapshot) -> bool:
    return finding.version == head.version and finding.code not in _OF_THE_LINE


_MOST_ROUNDS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Repaired:
    """The plan, the corrections made, the versions created, and the findings afterwards."""

    done: RepairPlan
    versions: tuple[Snapshot, ...]
    since: RepairPlan


def repair(
    location: Location,
    options: RepairOptions | None = None,
    choices: CommitChoices = DEFAULT_CHOICES,
) -> Repaired:
    """Commit all possible corrections in new versions; a consistent table is unchanged."""
    return apply(plan(location, options), options, choices)


def apply(
    planned: RepairPlan,
    options: RepairOptions | None = None,
    choices: CommitChoices = DEFAULT_CHOICES,
) -> Repaired:
    """Apply a plan; if others change the table in the meantime, it is planned again."""
    for _ in range(_MOST_ROUNDS):
        made: list[Snapshot] = []
        try:
            made.extend(_committed(line, choices, options) for line in planned.lines)
        except errors.RetryableConflictError:
            planned = plan(planned.location, options)
            continue
        tuple(carried_out(planned.actions))
        since = plan(planned.location, options) if planned.has_work else planned
        return Repaired(done=planned, versions=tuple(made), since=since)
    raise errors.ContentionError(
        f"the table was changed by other writers while it was repaired, {_MOST_ROUNDS} times",
        table=planned.location.uri,
    )


def _committed(line: LinePlan, choices: CommitChoices, options: RepairOptions | None) -> Snapshot:
    store = line.head.location.store
    for path, data in line.draft.files.items():
        store.put(path, data)
    at = line.head
    draft = with_replaced_text(line.head, line.draft)
    for change in changes(line.head, draft):
        how = replace(choices, corrections=change.corrections)
        at = publish(at, change.operation, how)
    if options is not None and options.rebuild_indices:
        at = _with_rebuilt_indices(line.head, at, choices)
    return at


def _with_rebuilt_indices(before: Snapshot, after: Snapshot, choices: CommitChoices) -> Snapshot:
    """Build again what `after` lacks of the indices of `before`; return the newest version.

    Indices of a column that no longer exists, or of an unknown kind, stay dropped.
    """
    left = {index.uuid for index in after.indices}
    gone = {i.name: i for i in before.indices if i.uuid not in left and not i.is_system}
    run = IndexRun(choices=choices)
    at = after
    for name, index in gone.items():
        request = _index_request(at, index)
        if request is None:
            continue
        if any(i.name == name for i in at.indices):
            done = refresh_indices(at, RefreshOptions(index_names=(name,)), run)
            done.raise_failure()
            at = done.snapshot
        else:
            at = create_index(at, request, run)
    return at


def _index_request(at: Snapshot, index: IndexMetadata) -> IndexRequest | None:
    kind = kind_of(index)
    column = None if kind is None else entry_path(at, index, kind)
    if kind is None or column is None:
        return None
    return IndexRequest(column=column, kind=kind.name, name=index.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthyVersion:
    """The newest consistent version, and those after it.

    `unreadable` are the newest versions if nothing can be committed after them: their manifests are
    quarantined, and the number of the oldest is assigned again.
    """

    target: Snapshot
    newer: tuple[ManifestName, ...]
    unreadable: tuple[ManifestName, ...]

    @property
    def is_needed(self) -> bool:
        """Whether the newest version is not consistent."""
        return bool(self.newer)


def find_healthy(location: Location, *, data: bool = False) -> HealthyVersion:
    """Find the newest version without errors; with `data`, every value is read."""
    sizes = FileSizes()
    newer: list[ManifestName] = []
    unreadable: list[ManifestName] = []
    for name in CheckedLine.load(location, branch=None).newest_first:
        snapshot = _loaded(location, name)
        if snapshot is None:
            if len(unreadable) == len(newer):
                unreadable.append(name)
        elif not any(
            f.severity is Severity.ERROR for f in findings(snapshot, sizes, {}, data=data)
        ):
            return HealthyVersion(target=snapshot, newer=tuple(newer), unreadable=tuple(unreadable))
        newer.append(name)
    problem = "the table has no consistent version"
    raise errors.VersionNotFoundError(
        problem, table=location.uri, action="Restore its files from a backup."
    )


def restore_healthy(healthy: HealthyVersion, choices: CommitChoices = DEFAULT_CHOICES) -> Snapshot:
    """Restore the version; unreadable manifests are moved to `_damaged` first."""
    if not healthy.is_needed:
        return healthy.target
    _ensure_untagged(healthy)
    line = open_line(healthy.target.location)
    for name in healthy.unreadable:
        quarantine(line, name)
    return restore(healthy.target, choices)


def _loaded(location: Location, name: ManifestName) -> Snapshot | None:
    """Load a version as a commit would; None if that fails."""
    try:
        migrations.wanted(open_line(location).load(name).state)
        return Snapshot.load(location, name)
    except errors.StorageUnavailableError:
        raise
    except errors.LanceTableError:
        return None


def _ensure_untagged(healthy: HealthyVersion) -> None:
    """Refuse to assign a version number again that a tag refers to."""
    gone = {name.version for name in healthy.unreadable}
    here = healthy.target.branch
    for tag, named in list_tags(healthy.target.main_location).items():
        if named.version in gone and named.branch in (here, here or "main"):
            raise errors.InvalidRequestError(
                f"tag {tag} refers to version {named.version}, whose manifest cannot be read",
                table=healthy.target.location.uri,
                action="Delete the tag, or move it to another version.",
            )
