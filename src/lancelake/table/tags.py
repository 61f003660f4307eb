"""Create, move, annotate and delete tags."""

from __future__ import annotations

from collections.abc import Mapping

from lancelake.commit import ref_files
from lancelake.commit.ref_files import RefTarget
from lancelake.commit.snapshot import Snapshot, names_table
from lancelake.errors import VersionNotFoundError
from lancelake.format.ids import Version
from lancelake.format.refs import Tag
from lancelake.storage.open import open_store
from lancelake.storage.store import ObjectStore
from lancelake.table.open import OnBranch, Reference, open_snapshot
from lancelake.table.publish import SYSTEM, Surroundings


@names_table
def create_tag(
    base: Snapshot, name: str, reference: Reference, around: Surroundings = SYSTEM
) -> Tag:
    """Create a tag for a version."""
    target = _target(base, reference)
    return ref_files.create_tag(_store(base), name, target, clock=around.clock)


@names_table
def move_tag(base: Snapshot, name: str, reference: Reference, around: Surroundings = SYSTEM) -> Tag:
    """Move an existing tag to another version."""
    return ref_files.move_tag(_store(base), name, _target(base, reference), clock=around.clock)


@names_table
def annotate_tag(base: Snapshot, name: str, metadata: Mapping[str, str]) -> None:
    """Replace the metadata of a tag."""
    ref_files.annotate_tag(_store(base), name, metadata)


@names_table
def remove_tag(base: Snapshot, name: str) -> None:
    """Delete a tag; the version is kept."""
    ref_files.remove_tag(_store(base), name)


def _store(base: Snapshot) -> ObjectStore:
    return open_store(base.main_location)


def _target(base: Snapshot, reference: Reference) -> RefTarget:
    try:
        found = open_snapshot(base.location, reference, main=base.main_location)
    except VersionNotFoundError as error:
        if not isinstance(reference, OnBranch) or reference.version is None:
            raise
        named = f"{reference.branch or 'main'}:{reference.version}"
        problem = f"Version not found error: version {named} does not exist"
        raise VersionNotFoundError(problem, version=reference.version) from error
    return RefTarget(
        branch=found.branch, version=Version(found.version), manifest_size=found.manifest_size
    )
