"""Migrations: corrections of manifests of old writers at the next commit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import groupby
from uuid import UUID

from pyroaring import BitMap

from lancelake.errors import CorruptTableError, InvalidRequestError
from lancelake.format.fragment import DataFile, FileVersion, Fragment, version_from_numbers
from lancelake.format.fragment_list import FragmentList
from lancelake.format.ids import FieldId
from lancelake.format.index_meta import IndexMetadata
from lancelake.format.manifest import Manifest, WriterVersion
from lancelake.format.schema import Field
from lancelake.txn.fragments import follow_moves, without_dropped_files
from lancelake.txn.options import Facts, MissingFacts, TableState

_COVERAGE_IS_RIGHT_SINCE = (0, 8, 15)


def wanted(state: TableState) -> MissingFacts:
    """Return which facts must be read from files before the next version is built."""
    fragments = state.fragments
    unsized = fragments.having(lambda t: t.lacks_file_size)
    files = (file for f in unsized for file in f.files)
    named = [i for i in state.indices if not i.is_system]
    return MissingFacts(
        physical_rows=frozenset(f.id for f in fragments.having(lambda t: t.lacks_rows)),
        deleted_rows=frozenset(f.id for f in fragments.having(lambda t: t.lacks_deleted_rows)),
        file_sizes=frozenset((f.base_id, f.path) for f in files if _lacks_size(f)),
        index_fragments=_without_coverage(named, state.manifest.writer_version),
        index_files=frozenset(i.uuid for i in named if not i.files),
    )


def completed(state: TableState, facts: Facts) -> TableState:
    """Fill in facts read from files, and update index coverage for moved rows."""
    filled = with_counts(state, facts)
    indices = tuple(_with_facts(i, facts) for i in filled.indices)
    return replace(filled, indices=follow_moves(indices))


def with_counts(state: TableState, facts: Facts) -> TableState:
    """Fill in counts of rows and sizes of files."""
    if not (facts.physical_rows or facts.deleted_rows or facts.file_sizes):
        return state
    fragments = state.fragments.mapped(lambda f: _counted(f, facts))
    return replace(state, manifest=replace(state.manifest, fragments=fragments))


def repaired(state: TableState, *, before: TableState) -> TableState:
    """Correct what needs no reads: fields listed twice, a wrong file version, empty fragments."""
    single = _without_double_fields(state.manifest, before.manifest)
    manifest = _with_right_file_version(single, before.manifest)
    live = FragmentList.of(manifest.fragments).without(lambda t: t.is_empty)
    manifest = replace(manifest, fragments=live)
    return replace(state, manifest=manifest)


def _lacks_size(file: DataFile) -> bool:
    return file.file_size_bytes is None and file.version is not FileVersion.LEGACY


def _without_coverage(
    indices: list[IndexMetadata], writer: WriterVersion | None
) -> frozenset[UUID]:
    if not _coverage_is_right(writer):
        return frozenset(i.uuid for i in indices)
    unbounded = {i.uuid for i in indices if i.fragments() is None}
    by_name = sorted(indices, key=lambda i: i.name)
    for _, entries in groupby(by_name, key=lambda i: i.name):
        segments = tuple(entries)
        if _overlap(segments):
            unbounded |= {i.uuid for i in segments}
    return frozenset(unbounded)


def _coverage_is_right(writer: WriterVersion | None) -> bool:
    if writer is None:
        return False
    if writer.library != "lance":
        return True
    return writer.release >= _COVERAGE_IS_RIGHT_SINCE


def _overlap(segments: tuple[IndexMetadata, ...]) -> bool:
    seen = BitMap()
    for index in segments:
        covered = index.fragments()
        if covered is None:
            continue
        if covered & seen:
            return True
        seen |= covered
    return False


def _with_facts(index: IndexMetadata, facts: Facts) -> IndexMetadata:
    covered = facts.index_fragments.get(index.uuid)
    files = facts.index_files.get(index.uuid)
    if covered is None and files is None:
        return index
    return replace(
        index,
        fragment_bitmap=index.fragment_bitmap if covered is None else covered,
        files=index.files if files is None else files,
    )


def _counted(fragment: Fragment, facts: Facts) -> Fragment:
    deletion = fragment.deletion_file
    if deletion is not None and deletion.num_deleted_rows is None:
        count = facts.deleted_rows.get(fragment.id)
        deletion = replace(deletion, num_deleted_rows=count)
    rows = fragment.physical_rows
    files = tuple(_sized(f, facts) for f in fragment.files)
    return replace(
        fragment,
        physical_rows=facts.physical_rows.get(fragment.id) if rows is None else rows,
        deletion_file=deletion,
        files=files,
    )


def _sized(file: DataFile, facts: Facts) -> DataFile:
    if file.file_size_bytes is not None:
        return file
    size = facts.file_sizes.get((file.base_id, file.path))
    return file if size is None else replace(file, file_size_bytes=size)


def _file_versions(manifest: Manifest) -> set[FileVersion]:
    traits = FragmentList.of(manifest.fragments).traits()
    numbers = {pair for t in traits for pair in t.file_numbers}
    return {version_from_numbers(*pair) for pair in numbers}


def _with_right_file_version(manifest: Manifest, before: Manifest) -> Manifest:
    versions = _file_versions(manifest)
    if versions <= {manifest.data_version}:
        return manifest
    if manifest.data_version is FileVersion.LEGACY and len(versions) == 1:
        return replace(manifest, data_version=versions.pop())
    if _file_versions(before) <= {manifest.data_version}:
        # Files that do not match come with the change, which is validated later.
        return manifest
    names = ", ".join(sorted(v.value for v in versions))
    msg = f"the table has file version {manifest.data_version.value} and data files of {names}"
    action = "Restore a version from before the files were mixed."
    raise CorruptTableError(msg, expected=manifest.data_version.value, found=names, action=action)


def _without_double_fields(manifest: Manifest, before: Manifest) -> Manifest:
    doubled = sorted(_all_double_fields(manifest))
    if not doubled:
        return manifest
    if added_fields := set(doubled) - _all_double_fields(before):
        added = min(added_fields)
        msg = f"a fragment would have field {added} in two files"
        raise InvalidRequestError(msg, field_id=added)
    listed = (i for f in manifest.fragments for file in f.files for i in file.fields)
    first = max(manifest.schema.max_field_id, *listed) + 1
    fresh = {old: FieldId(first + n) for n, old in enumerate(doubled)}
    fields = tuple(_renamed(f, fresh) for f in manifest.schema.fields)
    schema = replace(manifest.schema, fields=fields)
    by_id = schema.by_id()
    fragments = tuple(
        without_dropped_files(_last_renumbered(f, fresh), by_id) for f in manifest.fragments
    )
    return replace(manifest, schema=schema, fragments=fragments)


def _all_double_fields(manifest: Manifest) -> set[FieldId]:
    several = FragmentList.of(manifest.fragments).having(lambda t: t.has_several_files)
    return {i for f in several for i in _double_fields(f)}


def _double_fields(fragment: Fragment) -> set[FieldId]:
    seen: set[FieldId] = set()
    double: set[FieldId] = set()
    for file in fragment.files:
        live = {i for i in file.fields if i >= 0}
        double |= seen & live
        seen |= live
    return double


def _renamed(node: Field, fresh: Mapping[FieldId, FieldId]) -> Field:
    return replace(
        node,
        id=fresh.get(node.id, node.id),
        parent_id=fresh.get(node.parent_id, node.parent_id),
        children=tuple(_renamed(c, fresh) for c in node.children),
    )


def _last_renumbered(fragment: Fragment, fresh: Mapping[FieldId, FieldId]) -> Fragment:
    """Assign the new ids to the last file of each column, which takes precedence."""
    pending = dict(fresh)
    files: list[DataFile] = []
    for file in reversed(fragment.files):
        fields = tuple(pending.get(i, i) for i in file.fields)
        for i in file.fields:
            pending.pop(i, None)
        files.append(replace(file, fields=fields))
    return replace(fragment, files=tuple(reversed(files)))
