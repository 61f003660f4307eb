"""Validation of a version before it is published."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np

from lancelake.errors import InvalidRequestError, UnsupportedError
from lancelake.format import primary_key
from lancelake.format.file_version import FileVersion
from lancelake.format.fragment import DataFile, Fragment
from lancelake.format.fragment_list import FragmentList
from lancelake.format.ids import BaseId, FragmentId
from lancelake.format.index_meta import IndexMetadata
from lancelake.format.manifest import Manifest
from lancelake.format.schema import Schema
from lancelake.txn import row_ids
from lancelake.txn.fragments import ensure_id
from lancelake.txn.state import TableState


def ensure_sound(after: TableState, *, before: TableState) -> None:
    """Raise for inconsistencies that the previous version did not have."""
    manifest = after.manifest
    if manifest.schema != before.manifest.schema:
        ensure_schema(manifest.schema)
    _ensure_legacy_is_complete(manifest)
    _ensure_different(after.fragments)
    ensure_id(manifest.max_fragment_id or 0)
    known = before.fragments_by_id()
    changed = after.fragments.changed_since(before.fragments)
    fresh = [f for f in changed if known.get(f.id) != f]
    bases = frozenset(b.id for b in manifest.base_paths)
    for fragment in fresh:
        _ensure_fragment(fragment, manifest.data_version, bases)
    if manifest.has_stable_row_ids:
        _ensure_row_ids(fresh, manifest.next_row_id, known)
    _ensure_indices(after, before)


def ensure_schema(schema: Schema) -> None:
    """Raise unless column names and field ids are unique."""
    names: set[str] = set()
    for name in schema.names:
        if "." in name:
            raise InvalidRequestError(f"column name {name!r} has a dot", column=name)
        if name in names:
            raise InvalidRequestError(f"column {name!r} appears twice", column=name)
        names.add(name)
    seen: set[int] = set()
    for field in schema.walk():
        if field.id < 0 or field.id in seen:
            msg = f"field {field.name!r} has id {field.id}, which is negative or not unique"
            raise InvalidRequestError(msg, field=field.name, id=field.id)
        seen.add(field.id)
    primary_key.ensure_valid(schema)


def _ensure_legacy_is_complete(manifest: Manifest) -> None:
    # Their values are stored in the manifest file itself, which is written without them.
    dictionaries = (f for f in manifest.schema.walk() if f.logical_type.startswith("dict:"))
    if manifest.data_version is FileVersion.LEGACY and any(dictionaries):
        msg = "tables with legacy data files and dictionary columns are read-only"
        raise UnsupportedError(msg)


def _ensure_different(fragments: FragmentList) -> None:
    if fragments.is_ascending:
        return
    seen: set[FragmentId] = set()
    for each in fragments.ids:
        if each in seen:
            msg = f"fragment {each} appears twice"
            raise InvalidRequestError(msg, fragment=each)
        seen.add(each)


def _ensure_fragment(fragment: Fragment, version: FileVersion, bases: frozenset[BaseId]) -> None:
    where = f"fragment {fragment.id}"
    for file in fragment.files:
        _ensure_file(file, where, version)
    deletion = fragment.deletion_file
    used = {f.base_id for f in fragment.files} | ({deletion.base_id} if deletion else set())
    for base_id in used:
        if base_id is not None and base_id not in bases:
            msg = f"{where} has files at base {base_id}, which the table does not have"
            raise InvalidRequestError(msg, base_id=base_id)
    if fragment.live_rows is not None and fragment.live_rows < 0:
        msg = f"{where} has {fragment.num_deleted_rows} deleted of {fragment.physical_rows} rows"
        raise InvalidRequestError(msg, fragment=fragment.id)


def _ensure_file(file: DataFile, where: str, version: FileVersion) -> None:
    if not file.path:
        raise InvalidRequestError(f"{where} has a data file without a path")
    if not file.fields:
        raise InvalidRequestError(f"data file {file.path} of {where} has no fields")
    if file.version is not version:
        msg = f"data file {file.path} of {where} is of version {file.version.value}"
        raise InvalidRequestError(msg, found=file.version.value, expected=version.value)
    if version is not FileVersion.LEGACY and len(file.column_indices) != len(file.fields):
        msg = (
            f"data file {file.path} of {where} lists {len(file.fields)} fields "
            f"but {len(file.column_indices)} columns"
        )
        raise InvalidRequestError(msg)
    live = [i for i in file.fields if i >= 0]
    if len(set(live)) < len(live):
        raise InvalidRequestError(f"data file {file.path} of {where} lists a field twice")


def _ensure_row_ids(
    fresh: list[Fragment], next_row_id: int, known: Mapping[FragmentId, Fragment]
) -> None:
    added: list[Fragment] = []
    for fragment in fresh:
        rows = row_ids.physical_rows(fragment)
        count = row_ids.row_id_count(fragment)
        if count != rows:
            msg = f"fragment {fragment.id} has {count} row ids for {rows} rows"
            raise InvalidRequestError(msg, found=count, expected=rows)
        old = known.get(fragment.id)
        if old is not None and old.row_ids == fragment.row_ids:
            continue
        # A restored version may have a deleted row and, with the same id, its updated copy.
        if fragment.deletion_file is None:
            added.append(fragment)
        else:
            _ensure_given([fragment], next_row_id)
    _ensure_given(added, next_row_id)


def _ensure_given(fragments: list[Fragment], next_row_id: int) -> None:
    """Raise unless every row id of the fragments was assigned, to one row each."""
    ranges = row_ids.row_id_ranges(fragments)
    if ranges is not None:
        largest = max((part.end - 1 for part in ranges), default=None)
        is_unique = all(one.end <= other.start for one, other in pairwise(ranges))
    else:
        ids = np.concatenate([row_ids.row_id_values(fragment) for fragment in fragments])
        largest = int(ids.max()) if len(ids) else None
        is_unique = len(np.unique(ids)) == len(ids)
    if largest is not None and largest >= next_row_id:
        msg = f"row id {largest} was never assigned; the next is {next_row_id}"
        raise InvalidRequestError(msg, found=largest, expected=next_row_id)
    if not is_unique:
        raise InvalidRequestError("a row id was assigned to two rows")


def _ensure_indices(after: TableState, before: TableState) -> None:
    seen: set[object] = set()
    known = {i.uuid for i in before.indices}
    fields = after.manifest.schema.by_id()
    for index in after.indices:
        if index.uuid in seen:
            raise InvalidRequestError(f"index segment {index.uuid} appears twice")
        seen.add(index.uuid)
        if index.uuid not in known:
            _ensure_new_index(index, set(fields))


def _ensure_new_index(index: IndexMetadata, fields: set[int]) -> None:
    if not index.name:
        raise InvalidRequestError(f"index segment {index.uuid} has no name")
    if missing := [i for i in index.fields if i not in fields]:
        msg = f"index {index.name!r} is on field {missing[0]}, which the table does not have"
        raise InvalidRequestError(msg, index=index.name, field_id=missing[0])
    index.fragments()
