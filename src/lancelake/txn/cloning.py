"""Clones of a version, shallow and deep."""

from __future__ import annotations

from dataclasses import replace

from lancelake.format.bases import BasePath
from lancelake.format.fragment import Fragment
from lancelake.format.ids import BaseId
from lancelake.format.index_meta import IndexMetadata
from lancelake.format.operations import Clone
from lancelake.txn import mem_wal
from lancelake.txn.bases import ensure_id
from lancelake.txn.state import TableState


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
    indices = tuple(_index_based(i, base_id) for i in mem_wal.kept_by_clone(source.indices))
    return TableState(manifest=manifest, indices=indices)


def _deep(source: TableState) -> TableState:
    manifest = replace(
        source.manifest,
        fragments=tuple(_unbased(f) for f in source.manifest.fragments),
        base_paths=(),
        branch=None,
    )
    indices = tuple(replace(i, base_id=None) for i in mem_wal.kept_by_clone(source.indices))
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
