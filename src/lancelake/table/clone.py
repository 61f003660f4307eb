"""Branches, shallow clones and deep clones of a version."""

from __future__ import annotations

from dataclasses import replace

from lancelake.commit import ref_files
from lancelake.commit.ref_files import RefTarget
from lancelake.commit.snapshot import Snapshot, names_table
from lancelake.commit.version_line import open_line
from lancelake.format import layout
from lancelake.format.ids import Version
from lancelake.format.names import ensure_branch_name
from lancelake.format.operations import Clone
from lancelake.format.refs import Fork
from lancelake.index.segment_place import segment_place
from lancelake.storage.location import Location
from lancelake.storage.open import open_store
from lancelake.storage.store import ObjectChunks, copy_across
from lancelake.storage.table_files import FileAt
from lancelake.table.publish import (
    DEFAULT_CHOICES,
    CommitChoices,
    ensure_free,
    new_transaction,
    publish_clone,
)
from lancelake.table.refs import branch_location, load_branch


@names_table
def create_branch(
    source: Snapshot, name: str, choices: CommitChoices = DEFAULT_CHOICES
) -> Snapshot:
    """Create a branch at a version: a shallow clone below the table, then its document."""
    ensure_branch_name(name)
    main = source.main_location
    target = branch_location(main, name)
    branch = _begun(source, target, name)
    if branch is None:
        branch = _clone(source, target, is_shallow=True, branch=name, choices=choices)
    lineage = _lineage(source)
    around = choices.surroundings
    ref_files.create_branch(
        open_store(main),
        name,
        RefTarget(
            branch=source.branch,
            version=Version(source.version),
            manifest_size=source.manifest_size,
        ),
        lineage=lineage,
        clock=around.clock,
        ids=around.ids,
    )
    return branch


def shallow_clone(
    source: Snapshot, target: Location, choices: CommitChoices = DEFAULT_CHOICES
) -> Snapshot:
    """Create a table that refers to the files of another."""
    return _clone(source, target, is_shallow=True, branch=None, choices=choices)


def deep_clone(
    source: Snapshot, target: Location, choices: CommitChoices = DEFAULT_CHOICES
) -> Snapshot:
    """Copy a version with all its files; the copy is independent of the original."""
    ensure_free(target)
    for place, path in _files(source):
        store = open_store(place.root)
        copy_across(ObjectChunks(store=store, path=place.path), open_store(target), path)
    return _clone(source, target, is_shallow=False, branch=None, choices=choices)


def _clone(
    source: Snapshot,
    target: Location,
    *,
    is_shallow: bool,
    branch: str | None,
    choices: CommitChoices,
) -> Snapshot:
    operation = _operation(source, is_shallow=is_shallow, branch=branch)
    named = replace(choices, naming=source.name.naming)
    transaction = new_transaction(operation, source.version, named)
    return publish_clone(target, transaction, source, named)


def _operation(source: Snapshot, *, is_shallow: bool, branch: str | None) -> Clone:
    return Clone(
        is_shallow=is_shallow,
        ref_name=source.branch,
        ref_version=Version(source.version),
        ref_path=source.location.uri,
        branch_name=branch,
    )


def _begun(source: Snapshot, target: Location, name: str) -> Snapshot | None:
    """Return the existing clone of a branch whose creation was interrupted."""
    found = open_line(target).handler.latest()
    if found is None:
        return None
    begun = Snapshot.load(target, found)
    recorded = begun.transaction
    expected = _operation(source, is_shallow=True, branch=name)
    is_same = recorded is not None and recorded.operation == expected
    return begun if is_same else None


def _lineage(source: Snapshot) -> tuple[Fork, ...]:
    if source.branch is None:
        return ()
    return load_branch(source.main_location, source.branch).lineage or ()


def _files(source: Snapshot) -> list[tuple[FileAt, str]]:
    """Return every file of a version with its path below another root."""
    found: list[tuple[FileAt, str]] = []
    for fragment in source.manifest.fragments:
        found += [(source.files.data_file(f), layout.data_file(f.path)) for f in fragment.files]
        if fragment.deletion_file is not None:
            place = source.files.deletion_file(fragment.id, fragment.deletion_file)
            found.append((place, place.path))
    for index in source.indices:
        folder = segment_place(source, index)
        for info in open_store(folder.root).list(folder.path):
            path = f"{layout.index_dir(index.uuid)}/{info.path.removeprefix(folder.path + '/')}"
            found.append((FileAt(root=folder.root, path=info.path), path))
    return found
