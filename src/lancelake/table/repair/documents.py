"""Files beside the versions that are wrong: the hint, tags, branches, names of manifests."""

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
from lancelake.table.repair.options import Wishes


@dataclass(frozen=True, slots=True, kw_only=True)
class RightHint:
    """The hint names the newest version."""

    location: Location

    @property
    def step(self) -> str:
        """Say it."""
        return "the hint at the newest version is written anew"

    def carry_out(self) -> None:
        """Write the hint."""
        correct_hint(open_line(self.location), latest_version(self.location).version)


@dataclass(frozen=True, slots=True, kw_only=True)
class RightTag:
    """A tag says how large the manifest it names is."""

    main: Location
    name: str

    @property
    def step(self) -> str:
        """Say it."""
        return f"tag {self.name!r}: the size of its manifest"

    def carry_out(self) -> None:
        """Write the tag, for the version that it names."""
        tag = load_tag(self.main, self.name)
        place = branch_location(self.main, tag.branch)
        name = find_version(place, tag.version).name
        size = open_store(place).head(layout.manifest(name)).size_bytes
        target = RefTarget(branch=tag.branch, version=tag.version, manifest_size=size)
        ref_files.move_tag(open_store(self.main), self.name, target, clock=SystemClock())


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedTag:
    """A tag that leads nowhere goes."""

    main: Location
    name: str

    @property
    def step(self) -> str:
        """Say it."""
        return f"tag {self.name!r} is removed"

    def carry_out(self) -> None:
        """Remove the document."""
        ref_files.remove_tag(open_store(self.main), self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedBranch:
    """A branch without versions goes."""

    main: Location
    name: str

    @property
    def step(self) -> str:
        """Say it."""
        return f"branch {self.name!r} is removed"

    def carry_out(self) -> None:
        """Remove the document."""
        ref_files.remove_branch(open_store(self.main), self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class RenamedManifests:
    """All manifests get names of the current scheme."""

    location: Location

    @property
    def step(self) -> str:
        """Say it."""
        return "manifests are named by the current scheme"

    def carry_out(self) -> None:
        """Rename."""
        migrate_manifest_names(self.location)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenTransaction:
    """The file with the transaction of the newest version is there."""

    location: Location
    version: int

    @property
    def step(self) -> str:
        """Say it."""
        return f"the transaction file of version {self.version} is written anew"

    def carry_out(self) -> None:
        """Copy it from the manifest."""
        name = find_version(self.location, self.version)
        rewrite_transaction_file(open_line(self.location), name)


Action = WrittenTransaction | RightHint | RightTag | RemovedTag | RemovedBranch | RenamedManifests


def action_for(finding: Finding, main: Location, wishes: Wishes) -> Action | None:
    """Return what helps against a finding, as far as it is asked for."""
    name = _name(finding)
    here = branch_location(main, finding.branch)
    match finding.code:
        case "hint-ahead":
            return RightHint(location=here)
        case "hint-damaged" if wishes.notes:
            return RightHint(location=here)
        case "transaction-file-missing" if wishes.notes and finding.version is not None:
            return WrittenTransaction(location=here, version=finding.version)
        case "tag-manifest-size":
            return RightTag(main=main, name=name)
        case "tag-target-missing" if wishes.remove_refs:
            return RemovedTag(main=main, name=name)
        case "branch-root-missing" if wishes.remove_refs:
            return RemovedBranch(main=main, name=name)
        case "ref-damaged" if wishes.remove_refs:
            return _removed(finding, main, name)
        case "naming-mixed" if wishes.rename_manifests:
            return RenamedManifests(location=here)
        case _:
            return None


def carried_out(actions: tuple[Action, ...]) -> Iterator[str]:
    """Carry out what is to be done, and tell; what is gone already needs nothing."""
    for action in actions:
        try:
            action.carry_out()
        except ObjectNotFoundError:
            continue
        yield action.step


def _removed(finding: Finding, main: Location, name: str) -> Action | None:
    """Remove a document that cannot be read; that of a branch only if nothing lies there."""
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
