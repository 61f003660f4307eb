"""Repair files next to the versions: the version hint, tags, branches and manifest names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lancelake.clock import SystemClock
from lancelake.commit import ref_files
from lancelake.commit.ref_files import RefTarget
from lancelake.commit.transaction_file import rewrite_transaction_file
from lancelake.commit.version_hint import correct_hint
from lancelake.commit.version_line import open_line
from lancelake.commit.versions import find_version, latest_version
from lancelake.errors import LanceTableError, ObjectNotFoundError
from lancelake.format import layout
from lancelake.storage.location import Location
from lancelake.storage.open import open_store
from lancelake.table.check.finding import Finding
from lancelake.table.migrate import migrate_manifest_names
from lancelake.table.refs import branch_location, load_tag
from lancelake.table.repair.options import RepairOptions


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
        size = open_store(place).head(layout.manifest(name)).size_bytes
        target = RefTarget(branch=tag.branch, version=tag.version, manifest_size=size)
        ref_files.move_tag(open_store(self.main), self.name, target, clock=SystemClock())


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
        ref_files.remove_tag(open_store(self.main), self.name)


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
        ref_files.remove_branch(open_store(self.main), self.name)


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
        except ObjectNotFoundError:
            continue
        yield action.step


def _removed(finding: Finding, main: Location, name: str) -> Action | None:
    """Delete an unreadable document; that of a branch only if the branch has no files."""
    path = finding.path or ""
    if path.startswith(f"{layout.TAGS}/"):
        return RemovedTag(main=main, name=name) if layout.tag(name) == path else None
    try:
        has_versions = bool(open_store(branch_location(main, name)).list_names(layout.VERSIONS))
    except LanceTableError:
        return None
    return None if has_versions else RemovedBranch(main=main, name=name)


def _name(finding: Finding) -> str:
    path = finding.path or ""
    if finding.code == "branch-root-missing":
        return path.removeprefix(f"{layout.TREE}/")
    file = path.rpartition("/")[2]
    return layout.tag_name(file) if path.startswith(layout.TAGS) else layout.branch_name(file)
