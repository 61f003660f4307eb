"""Validate a caller-built transaction: the files and fields it refers to must exist."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import assert_never

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import CorruptTableError, InvalidRequestError, ObjectNotFoundError
from lancelake.format import operations as ops
from lancelake.format.fragment import DataFile, Fragment
from lancelake.format.fragment_list import FragmentList
from lancelake.format.ids import FieldId, FragmentId
from lancelake.format.index_meta import IndexMetadata
from lancelake.format.operations import Operation
from lancelake.format.schema import Schema
from lancelake.storage.location import Location
from lancelake.storage.store import confined_path
from lancelake.storage.table_files import FileAt, TableFiles
from lancelake.threads import Pool

# Above this number of files in one folder, the folder is listed.
_MOST_LOOKS = 64
_LOOKS_AT_ONCE = 8


def ensure_committable(root: Location, base: Snapshot | None, operation: Operation) -> None:
    """Raise an error if a change refers to files or fields that do not exist.

    Files of the read version are assumed to exist. Files written by this library need no
    validation.
    """
    known = _known(base, operation)
    files = _new_files(operation, known)
    _ensure_fields(base, operation, files)
    bases = () if base is None else base.manifest.base_paths
    if isinstance(operation, ops.Overwrite):
        bases += operation.initial_bases
    tables = TableFiles(root=root, bases=bases)
    places = [_place(tables, file) for file in files]
    for fragment in _fragments(operation):
        entry, old = fragment.deletion_file, known.get(fragment.id)
        if entry is not None and (old is None or old.deletion_file != entry):
            places.append(tables.deletion_file(fragment.id, entry))
    _ensure_there(root, places)
    if isinstance(operation, ops.CreateIndex):
        _ensure_complete(tables, operation.new_indices)


def _ensure_complete(tables: TableFiles, indices: tuple[IndexMetadata, ...]) -> None:
    """Refuse an index whose files are not there in full."""
    for index in indices:
        folder = tables.index_dir(index)
        store = folder.store
        for file in index.files:
            path = f"{folder.path}/{confined_path(file.path)}"
            try:
                size = store.head(path).size_bytes
            except ObjectNotFoundError as error:
                problem = f"file {path} of index {index.name!r} does not exist"
                raise InvalidRequestError(problem, path=path) from error
            if size != file.size_bytes:
                problem = (
                    f"file {path} of index {index.name!r} has {size} bytes, and should have "
                    f"{file.size_bytes}"
                )
                raise InvalidRequestError(problem, path=path)


def _known(base: Snapshot | None, operation: Operation) -> Mapping[FragmentId, Fragment]:
    """Return the fragments that a change may be based on."""
    if base is None or not isinstance(operation, ops.Delete | ops.Merge | ops.Update):
        return {}
    return FragmentList.of(base.manifest.fragments).by_id()


def _fragments(operation: Operation) -> Iterator[Fragment]:
    """Yield the fragments that a change adds or modifies."""
    match operation:
        case ops.Append() | ops.Overwrite() | ops.Merge():
            yield from operation.fragments
        case ops.Delete():
            yield from operation.updated_fragments
        case ops.Update():
            yield from operation.updated_fragments
            yield from operation.new_fragments
        case ops.Rewrite():
            for group in operation.groups:
                yield from group.new_fragments
        case (
            ops.Clone()
            | ops.CreateIndex()
            | ops.DataReplacement()
            | ops.Project()
            | ops.ReserveFragments()
            | ops.Restore()
            | ops.UpdateBases()
            | ops.UpdateConfig()
            | ops.UpdateMemWalState()
            | ops.UnknownOperation()
        ):
            return
        case _:
            assert_never(operation)


def _new_files(operation: Operation, known: Mapping[FragmentId, Fragment]) -> list[DataFile]:
    if isinstance(operation, ops.DataReplacement):
        return [each.new_file for each in operation.replacements]
    files: list[DataFile] = []
    for fragment in _fragments(operation):
        old = known.get(fragment.id)
        before = {(f.base_id, f.path) for f in old.files} if old is not None else set()
        files += [f for f in fragment.files if (f.base_id, f.path) not in before]
    return files


def _ensure_fields(base: Snapshot | None, operation: Operation, files: list[DataFile]) -> None:
    before = None if base is None else base.manifest.schema
    known: set[FieldId] = set()
    if before is not None and not isinstance(operation, ops.Overwrite):
        known |= set(before.by_id())
    if isinstance(operation, ops.Overwrite | ops.Merge):
        known |= set(operation.schema.by_id())
    if isinstance(operation, ops.Project) and before is not None:
        _ensure_projection(before, operation.schema)
    named = {i: f"data file {file.path}" for file in files for i in file.fields if i >= 0}
    if isinstance(operation, ops.Update):
        changed = (*operation.fields_modified, *operation.fields_for_preserving_frag_bitmap)
        named |= dict.fromkeys(changed, "the update")
    for number, where in named.items():
        if number not in known:
            problem = f"{where} refers to field id {number}, which is not in the table"
            raise InvalidRequestError(problem, field_id=number)


def _ensure_projection(before: Schema, after: Schema) -> None:
    """Refuse fields that are not in the table, or have another type there."""
    known = before.by_id()
    for field in after.walk():
        old = known.get(field.id)
        if old is None:
            problem = f"field {field.name!r} has id {field.id}, which is not in the table"
            raise InvalidRequestError(problem, field_id=field.id)
        if old.logical_type != field.logical_type:
            raise InvalidRequestError(
                f"field {field.name!r} with id {field.id} has type {old.logical_type} in the table "
                f"and {field.logical_type} in the projection",
                expected=old.logical_type,
                found=field.logical_type,
            )


def _place(tables: TableFiles, file: DataFile) -> FileAt:
    try:
        return tables.data_file(file)
    except CorruptTableError as error:
        raise InvalidRequestError(error.problem, path=file.path) from error


def _ensure_there(root: Location, places: list[FileAt]) -> None:
    folders: defaultdict[tuple[Location, str], list[FileAt]] = defaultdict(list)
    for place in places:
        folders[place.root, place.path.rpartition("/")[0]].append(place)
    missing = [
        place for (at, folder), each in folders.items() for place in _absent(at, folder, each)
    ]
    if missing:
        first, others = missing[0], len(missing) - 1
        more = f" and {others} more" if others else ""
        problem = f"Not found: {first.uri}{more}; files must be written before they are committed"
        raise ObjectNotFoundError(problem, table=root.uri, path=first.path)


def _absent(root: Location, folder: str, places: list[FileAt]) -> list[FileAt]:
    store = root.store
    if len(places) > _MOST_LOOKS:
        names = set(store.list_names(folder))
        return [place for place in places if place.path.rpartition("/")[2] not in names]
    if len(places) == 1:
        return [] if store.exists(places[0].path) else places
    with Pool(_LOOKS_AT_ONCE) as pool:
        there = pool.map(store.exists, [place.path for place in places])
        return [place for place, exists in zip(places, there, strict=True) if not exists]
