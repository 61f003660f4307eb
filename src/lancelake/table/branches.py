"""Branches, tags, clones and restored versions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lancelake.commit import ref_files
from lancelake.commit.ref_files import RefTarget
from lancelake.commit.snapshot import (
    Latest,
    OnBranch,
    Reference,
    Snapshot,
    branch_location,
    list_branches,
    list_tags,
    load_branch,
    open_line,
    open_snapshot,
)
from lancelake.errors import InvalidRequestError, RefNotFoundError, VersionNotFoundError
from lancelake.format import layout
from lancelake.format.fragment import BasePath
from lancelake.format.ids import Version
from lancelake.format.layout import ensure_branch_name
from lancelake.format.operations import Clone, Restore, UpdateBases
from lancelake.format.refs import Branch, Fork, Tag
from lancelake.index.cache import segment_place
from lancelake.storage.local import remove_leftovers
from lancelake.storage.location import Location
from lancelake.storage.store import ObjectChunks, ObjectStore, copy_across
from lancelake.storage.table_files import FileAt
from lancelake.table import publish


def annotate_branch(main: Location, name: str, metadata: Mapping[str, str]) -> None:
    """Replace the metadata of a branch."""
    ref_files.annotate_branch(main.store, name, metadata)


def remove_branch(main: Location, name: str) -> None:
    """Delete a branch and its files, unless another branch forked from it or a tag refers to it.

    Files of a branch whose document was already deleted, for example by an interrupted call, are
    deleted too.
    """
    try:
        branch = load_branch(main, name)
    except RefNotFoundError:
        if not _delete_files(main, name):
            raise
        return
    _ensure_unused(main, name, branch)
    ref_files.remove_branch(main.store, name)
    _delete_files(main, name)


def _delete_files(main: Location, name: str) -> bool:
    """Delete the files of a branch except nested branches; return whether there were any."""
    below = tuple(
        f"{layout.branch_root(other)}/"
        for other in list_branches(main)
        if other.startswith(f"{name}/")
    )
    # Listed below the table's root, where links are not followed, not below the branch's.
    folder = layout.branch_root(name)
    store = main.store
    paths = [info.path for info in store.list(folder) if not info.path.startswith(below)]
    store.delete_many(paths)
    remove_leftovers(main, folder, keep=below)
    return bool(paths)


def _ensure_unused(main: Location, name: str, branch: Branch) -> None:
    lineage = branch.lineage or ()
    children = [
        (other, document.parent_version)
        for other, document in list_branches(main).items()
        if other != name and lineage and (document.lineage or ())[: len(lineage)] == lineage
    ]
    tags = [(tag, named.version) for tag, named in list_tags(main).items() if named.branch == name]
    for what, users in (("branches", children), ("tags", tags)):
        if users:
            shown = ", ".join(f"{user} at version {version}" for user, version in users)
            problem = f"Branch {name} is referenced by {what} ({shown}), can not delete"
            action = f"Delete these {what} first."
            raise InvalidRequestError(problem, table=main.uri, branch=name, action=action)


def create_tag(base: Snapshot, name: str, reference: Reference) -> Tag:
    """Create a tag for a version."""
    target = _target(base, reference)
    clock = base.location.session.clock
    return ref_files.create_tag(_store(base), name, target, clock=clock)


def move_tag(base: Snapshot, name: str, reference: Reference) -> Tag:
    """Move an existing tag to another version."""
    target, clock = _target(base, reference), base.location.session.clock
    return ref_files.move_tag(_store(base), name, target, clock=clock)


def annotate_tag(base: Snapshot, name: str, metadata: Mapping[str, str]) -> None:
    """Replace the metadata of a tag."""
    ref_files.annotate_tag(_store(base), name, metadata)


def remove_tag(base: Snapshot, name: str) -> None:
    """Delete a tag; the version is kept."""
    ref_files.remove_tag(_store(base), name)


def _store(base: Snapshot) -> ObjectStore:
    return base.main_location.store


def _target(base: Snapshot, reference: Reference) -> RefTarget:
    try:
        snapshot = open_snapshot(base.location, reference, main=base.main_location)
    except VersionNotFoundError as error:
        if not isinstance(reference, OnBranch) or reference.version is None:
            raise
        named = f"{reference.branch or 'main'}:{reference.version}"
        problem = f"Version not found error: version {named} does not exist"
        raise VersionNotFoundError(problem, version=reference.version) from error
    return RefTarget(
        branch=snapshot.branch,
        version=Version(snapshot.version),
        manifest_size=snapshot.manifest_size,
    )


def create_branch(
    source: Snapshot, name: str, choices: publish.CommitChoices = publish.DEFAULT_CHOICES
) -> Snapshot:
    """Create a branch at a version: a shallow clone below the table, then its document."""
    ensure_branch_name(name)
    main = source.main_location
    target = branch_location(main, name)
    branch = _begun(source, target, name)
    if branch is None:
        branch = _clone(source, target, is_shallow=True, branch=name, choices=choices)
    lineage = _lineage(source)
    session = main.session
    ref_files.create_branch(
        main.store,
        name,
        RefTarget(
            branch=source.branch,
            version=Version(source.version),
            manifest_size=source.manifest_size,
        ),
        lineage=lineage,
        clock=session.clock,
        ids=session.ids,
    )
    return branch


def shallow_clone(
    source: Snapshot, target: Location, choices: publish.CommitChoices = publish.DEFAULT_CHOICES
) -> Snapshot:
    """Create a table that refers to the files of another."""
    return _clone(source, target, is_shallow=True, branch=None, choices=choices)


def deep_clone(
    source: Snapshot, target: Location, choices: publish.CommitChoices = publish.DEFAULT_CHOICES
) -> Snapshot:
    """Copy a version with all its files; the copy is independent of the original."""
    publish.ensure_free(target)
    for place, path in _files(source):
        store = place.store
        copy_across(ObjectChunks(store=store, path=place.path), target.store, path)
    return _clone(source, target, is_shallow=False, branch=None, choices=choices)


def _clone(
    source: Snapshot,
    target: Location,
    *,
    is_shallow: bool,
    branch: str | None,
    choices: publish.CommitChoices,
) -> Snapshot:
    operation = _operation(source, is_shallow=is_shallow, branch=branch)
    named = replace(choices, naming=source.name.naming)
    transaction = publish.new_transaction(operation, source.version, named, ids=target.session.ids)
    return publish.publish_clone(target, transaction, source, named)


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
    latest = open_line(target).handler.latest()
    if latest is None:
        return None
    begun = Snapshot.load(target, latest)
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
    files: list[tuple[FileAt, str]] = []
    for fragment in source.manifest.fragments:
        files += [(source.files.data_file(f), layout.data_file(f.path)) for f in fragment.files]
        if fragment.deletion_file is not None:
            place = source.files.deletion_file(fragment.id, fragment.deletion_file)
            files.append((place, place.path))
    for index in source.indices:
        folder = segment_place(source, index)
        for info in folder.store.list(folder.path):
            path = f"{layout.index_dir(index.uuid)}/{info.path.removeprefix(folder.path + '/')}"
            files.append((FileAt(root=folder.root, path=info.path), path))
    return files


def restore(
    snapshot: Snapshot, choices: publish.CommitChoices = publish.DEFAULT_CHOICES
) -> Snapshot:
    """Make this version the newest; row ids and fragment ids are never reused."""
    head = open_snapshot(snapshot.location, Latest())
    operation = Restore(version=Version(snapshot.version))
    return publish.publish(head, operation, choices)


def add_bases(
    base: Snapshot,
    bases: tuple[BasePath, ...],
    choices: publish.CommitChoices = publish.DEFAULT_CHOICES,
) -> Snapshot:
    """Register additional base paths under which files of the table may be stored."""
    operation = UpdateBases(new_bases=bases)
    return publish.publish(base, operation, choices)
