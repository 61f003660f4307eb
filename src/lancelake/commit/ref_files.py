"""Tag and branch documents: create, move, annotate and remove."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from lancelake import errors
from lancelake.clock import Clock, Ids, utc_from_ns
from lancelake.format import layout, refs
from lancelake.format.frozen import FrozenMap
from lancelake.format.ids import Version
from lancelake.format.layout import ensure_branch_name, ensure_tag_name
from lancelake.format.refs import Branch, Fork, Tag
from lancelake.storage.store import ObjectStore, create_once

_MOST_CHANGES = 20
_SUFFIX = ".json"
_FOLDERS: Mapping[str, tuple[str, Callable[[str], str]]] = {
    layout.TAGS: ("tags", layout.tag_name),
    layout.BRANCHES: ("branches", layout.branch_name),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RefTarget:
    """The version that a tag or branch starts from: on a branch, or None for the main line."""

    branch: str | None
    version: Version
    manifest_size: int


def create_tag(
    store: ObjectStore,
    name: str,
    target: RefTarget,
    *,
    clock: Clock,
    metadata: Mapping[str, str] | None = None,
) -> Tag:
    """Record a tag; of concurrent writers with the same name, one succeeds."""
    ensure_tag_name(name)
    now = timestamp_text(clock.now_ns())
    tag = Tag(
        branch=target.branch,
        version=target.version,
        manifest_size=target.manifest_size,
        created_at=now,
        updated_at=now,
        metadata=FrozenMap(dict(metadata or {})),
    )
    _create(store, layout.tag(name), refs.encode_tag(tag), f"tag {name}")
    return tag


def move_tag(store: ObjectStore, name: str, target: RefTarget, *, clock: Clock) -> Tag:
    """Move a tag to another version; concurrent changes are applied one after another."""
    ensure_tag_name(name)

    def moved(document: bytes) -> bytes:
        after = replace(
            refs.decode_tag(document),
            branch=target.branch,
            version=target.version,
            manifest_size=target.manifest_size,
            updated_at=timestamp_text(clock.now_ns()),
        )
        return refs.encode_tag(after)

    return refs.decode_tag(_change(store, layout.tag(name), moved, f"tag {name}"))


def annotate_tag(store: ObjectStore, name: str, metadata: Mapping[str, str]) -> None:
    """Replace the metadata of a tag."""
    ensure_tag_name(name)

    def noted(document: bytes) -> bytes:
        tag = refs.decode_tag(document)
        return refs.encode_tag(replace(tag, metadata=FrozenMap(dict(metadata))))

    _change(store, layout.tag(name), noted, f"tag {name}")


def annotate_branch(store: ObjectStore, name: str, metadata: Mapping[str, str]) -> None:
    """Replace the metadata of a branch."""
    ensure_branch_name(name)

    def noted(document: bytes) -> bytes:
        branch = refs.decode_branch(document)
        return refs.encode_branch(replace(branch, metadata=FrozenMap(dict(metadata))))

    _change(store, layout.branch(name), noted, f"branch {name}")


def remove_tag(store: ObjectStore, name: str) -> None:
    """Remove the document of a tag."""
    ensure_tag_name(name)
    _remove(store, layout.tag(name), f"tag {name}")


def create_branch(
    store: ObjectStore,
    name: str,
    target: RefTarget,
    *,
    lineage: tuple[Fork, ...],
    clock: Clock,
    ids: Ids,
    metadata: Mapping[str, str] | None = None,
) -> Branch:
    """Record a branch whose parent has the given lineage (empty for the main line)."""
    ensure_branch_name(name)
    branch = Branch(
        parent_branch=target.branch,
        parent_version=target.version,
        create_at=clock.now_ns() // 1_000_000_000,
        manifest_size=target.manifest_size,
        lineage=(*lineage, Fork(version=target.version, uuid=ids.uuid4().hex)),
        metadata=FrozenMap(dict(metadata or {})),
    )
    _create(store, layout.branch(name), refs.encode_branch(branch), f"branch {name}")
    return branch


def remove_branch(store: ObjectStore, name: str) -> None:
    """Remove the document of a branch; its files stay."""
    ensure_branch_name(name)
    _remove(store, layout.branch(name), f"branch {name}")


def ref_names(store: ObjectStore, folder: str) -> dict[str, str]:
    """Return the paths of the refs in a folder by name."""
    _, name_of = _FOLDERS[folder]
    files = [file for file in store.list_names(folder) if file.endswith(_SUFFIX)]
    return {name_of(file): f"{folder}/{file}" for file in files}


def missing_ref(store: ObjectStore, path: str, what: str) -> errors.RefNotFoundError:
    """Return the error for a ref that does not exist, with a suggestion of another name."""
    folder, _, file = path.rpartition("/")
    kind, name_of = _FOLDERS[folder]
    name = name_of(file)
    problem = f"Ref not found error: {what} does not exist"
    if folder == layout.TAGS and name in ref_names(store, layout.BRANCHES):
        return errors.RefNotFoundError(f"{problem}: {name} is a branch", path=path, branch=name)
    advice = errors.suggestion(name, sorted(ref_names(store, folder)), kind)
    return errors.RefNotFoundError(problem, path=path, action=advice)


def timestamp_text(time_ns: int) -> str:
    """Format a time for a document: RFC 3339 in UTC with nanoseconds."""
    whole = utc_from_ns(time_ns).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{whole}.{time_ns % 1_000_000_000:09d}Z"


def _create(store: ObjectStore, path: str, data: bytes, what: str) -> None:
    try:
        is_mine = create_once(store, path, data)
    except errors.StorageUnavailableError as error:
        problem = f"{what} may have been created: the store did not reply"
        raise errors.UncertainCommitError(problem, path=path) from error
    if not is_mine:
        raise errors.AlreadyExistsError(f"Ref conflict error: {what} already exists", path=path)


def _change(store: ObjectStore, path: str, changed: Callable[[bytes], bytes], what: str) -> bytes:
    """Change a document with compare-and-swap; after a concurrent change it is read again."""
    for _ in range(_MOST_CHANGES):
        before = _existing(store, path, what)
        after = changed(before)
        try:
            if store.swap(path, after, expected=before):
                return after
        except errors.StorageUnavailableError:
            if _is_there(store, path, after, what):
                return after
        except errors.ObjectNotFoundError:
            # Removed since it was read, which the next read reports.
            continue
    raise errors.ContentionError(f"{what} was changed by other writers in every attempt", path=path)


def _is_there(store: ObjectStore, path: str, data: bytes, what: str) -> bool:
    """Whether a document was written by an attempt whose reply was lost."""
    try:
        return store.get(path) == data
    except errors.ObjectNotFoundError:
        return False
    except errors.LanceTableError as error:
        problem = f"{what} may have been written: the store could not be read"
        raise errors.UncertainCommitError(problem, path=path) from error


def _existing(store: ObjectStore, path: str, what: str) -> bytes:
    try:
        return store.get(path)
    except errors.ObjectNotFoundError as error:
        raise missing_ref(store, path, what) from error


def _remove(store: ObjectStore, path: str, what: str) -> None:
    _existing(store, path, what)
    store.delete(path)
