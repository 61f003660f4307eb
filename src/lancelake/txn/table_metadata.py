"""Changes of a table's metadata and base paths, and those of a clone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lancelake.errors import InvalidRequestError
from lancelake.format import primary_key
from lancelake.format.fragment import BasePath, Fragment
from lancelake.format.frozen import FrozenMap
from lancelake.format.ids import BaseId, FieldId
from lancelake.format.index_meta import IndexMetadata
from lancelake.format.operations import Clone, MapUpdate
from lancelake.format.schema import Field, Schema
from lancelake.txn import merged_generations
from lancelake.txn.options import TableState


def changed(before: FrozenMap[str, str], update: MapUpdate | None) -> FrozenMap[str, str]:
    """Set and remove keys; a replacing update clears the map first."""
    if update is None:
        return before
    after = {} if update.replace else dict(before)
    for key, value in update.entries.items():
        if value is None:
            after.pop(key, None)
        else:
            after[key] = value
    return FrozenMap(after)


def with_schema_metadata(schema: Schema, update: MapUpdate | None) -> Schema:
    """Change the metadata of the schema."""
    return replace(schema, metadata=_changed_bytes(schema.metadata, update))


def with_field_metadata(schema: Schema, updates: Mapping[FieldId, MapUpdate]) -> Schema:
    """Change the metadata of fields; primary key entries take effect."""
    if not updates:
        return schema
    by_id = schema.by_id()
    for field_id in updates:
        if field_id not in by_id:
            msg = f"field id {field_id} does not exist"
            raise InvalidRequestError(msg, field_id=field_id)
    after = replace(schema, fields=tuple(_with_metadata(f, updates) for f in schema.fields))
    primary_key.ensure_valid(after)
    return after


def _with_metadata(node: Field, updates: Mapping[FieldId, MapUpdate]) -> Field:
    children = tuple(_with_metadata(c, updates) for c in node.children)
    if node.id not in updates:
        return node if children == node.children else node.with_children(children)
    metadata = _changed_bytes(node.metadata, updates[node.id])
    is_key, position = primary_key.marks(metadata)
    return replace(
        node,
        children=children,
        metadata=metadata,
        unenforced_primary_key=is_key,
        unenforced_primary_key_position=position,
    )


def _changed_bytes(
    before: FrozenMap[str, bytes], update: MapUpdate | None
) -> FrozenMap[str, bytes]:
    if update is None:
        return before
    entries = {} if update.replace else dict(before)
    for key, value in update.entries.items():
        if value is None:
            entries.pop(key, None)
        else:
            entries[key] = value.encode()
    return FrozenMap(entries)


_MAX_BASE_ID = (1 << 32) - 1


def extended(before: tuple[BasePath, ...], new: tuple[BasePath, ...]) -> tuple[BasePath, ...]:
    """Add bases; id 0 means the next free one. Paths, names and ids must be unique."""
    bases = list(before)
    for base in new:
        _ensure_free(base, bases)
        highest = max((b.id for b in bases), default=0)
        bases.append(base if base.id else replace(base, id=ensure_id(highest + 1)))
    return tuple(bases)


def ensure_id(base_id: int) -> BaseId:
    """Return a valid id of a base path; raise if there are none left."""
    if base_id > _MAX_BASE_ID:
        raise InvalidRequestError(
            f"the table has no ids of base paths left: the highest is {_MAX_BASE_ID}"
        )
    return BaseId(base_id)


def same_path(base: BasePath, other: BasePath) -> bool:
    """Return whether two bases have the same location, however their paths are written."""
    return _place(base) == _place(other)


def _place(base: BasePath) -> str:
    return base.path.removeprefix("file://").rstrip("/")


def _ensure_free(base: BasePath, taken: list[BasePath]) -> None:
    for other in taken:
        if same_path(base, other):
            raise InvalidRequestError(f"base path {base.path} is already registered")
        # Bases without a name count as having the same one: official readers reject a second.
        if base.name == other.name:
            raise InvalidRequestError(f"base name {base.name!r} is taken", name=base.name)
        if base.id and base.id == other.id:
            raise InvalidRequestError(f"base id {base.id} is taken", id=base.id)


def copied(op: Clone, source: TableState, source_uri: str) -> TableState:
    """Return the version of the clone, which has the source's version number.

    In a shallow clone, the source is the base of every file that has none; a deep clone owns all
    files. Indices keep their base, where their files are stored.
    """
    if not op.is_shallow:
        return _deep(source)
    before = source.manifest
    base_id = ensure_id(max((b.id + 1 for b in before.base_paths), default=0))
    base = BasePath(id=base_id, name=op.ref_name, is_dataset_root=True, path=source_uri)
    manifest = replace(
        before,
        fragments=tuple(_based(f, base_id) for f in before.fragments),
        base_paths=(*before.base_paths, base),
        branch=op.branch_name,
    )
    indices = tuple(
        _index_based(i, base_id) for i in merged_generations.kept_by_clone(source.indices)
    )
    return TableState(manifest=manifest, indices=indices)


def _deep(source: TableState) -> TableState:
    manifest = replace(
        source.manifest,
        fragments=tuple(_unbased(f) for f in source.manifest.fragments),
        base_paths=(),
        branch=None,
    )
    indices = tuple(
        replace(i, base_id=None) for i in merged_generations.kept_by_clone(source.indices)
    )
    return TableState(manifest=manifest, indices=indices)


def _based(fragment: Fragment, base_id: BaseId) -> Fragment:
    files = tuple(
        f if f.base_id is not None else replace(f, base_id=base_id) for f in fragment.files
    )
    deletion = fragment.deletion_file
    if deletion is not None and deletion.base_id is None:
        deletion = replace(deletion, base_id=base_id)
    return replace(fragment, files=files, deletion_file=deletion)


def _unbased(fragment: Fragment) -> Fragment:
    files = tuple(replace(f, base_id=None) for f in fragment.files)
    deletion = fragment.deletion_file
    if deletion is not None:
        deletion = replace(deletion, base_id=None)
    return replace(fragment, files=files, deletion_file=deletion)


def _index_based(index: IndexMetadata, base_id: BaseId) -> IndexMetadata:
    return index if index.base_id is not None else replace(index, base_id=base_id)
