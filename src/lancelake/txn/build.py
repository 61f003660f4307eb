"""The next version of a table, by the rules of its operation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any, assert_never

import numpy as np

from lancelake.errors import InvalidRequestError, UnsupportedError
from lancelake.format import layout, primary_key
from lancelake.format import operations as ops
from lancelake.format.fragment import DEFAULT_VERSION, DataFile, FileVersion, Fragment
from lancelake.format.fragment_list import FragmentList
from lancelake.format.ids import BaseId, FragmentId, Version
from lancelake.format.index_meta import IndexMetadata
from lancelake.format.layout import DETACHED_BIT
from lancelake.format.manifest import FeatureFlags, Manifest, ensure_writable
from lancelake.format.operations import Operation, Transaction
from lancelake.format.schema import Schema
from lancelake.txn import migrations, rules, table_metadata
from lancelake.txn.fragments import (
    ensure_id,
    physical_rows,
    row_id_count,
    row_id_ranges,
    row_id_values,
    without_dead_files,
)
from lancelake.txn.ops import files, schema, whole
from lancelake.txn.ops.rows import APPEND, DELETE, UPDATE
from lancelake.txn.options import BuildOptions, TableState


def conflicts(mine: Operation, theirs: Operation, context: rules.Context) -> rules.Verdict:
    """Check whether mine conflicts with theirs, which was committed first."""
    if isinstance(mine, ops.UnknownOperation) or isinstance(theirs, ops.UnknownOperation):
        return rules.Incompatible("an operation of a newer release")
    if isinstance(theirs, ops.ReserveFragments):
        return rules.OK
    return rules_of(mine).conflicts(mine, theirs, context)


def unseen(mine: Operation, context: rules.Context) -> rules.Verdict:
    """Check whether mine is still valid after commits that are not known."""
    return rules_of(mine).unseen(mine, context)


def rebase(
    mine: Transaction,
    head: TableState,
    *,
    base: TableState,
    affected_rows: rules.AffectedRows | None,
    port: rules.RebasePort,
) -> Transaction | rules.Retryable:
    """Rebase mine onto the head, after a verdict that requires it.

    Returns Retryable when the rebase finds that both changed the same row.
    """
    rebasing = rules.Rebasing(base=base, head=head, affected_rows=affected_rows, port=port)
    operation = rules_of(mine.operation).rebase(mine.operation, rebasing)
    if isinstance(operation, rules.Retryable):
        return operation
    if isinstance(operation, ops.Delete | ops.Update):
        return replace(mine, operation=operation, read_version=head.manifest.version)
    return replace(mine, operation=operation)


def rules_of(op: Operation) -> rules.Rules[Any]:  # noqa: C901  # one case per operation
    """Find the rules by the type of the operation."""
    match op:
        case ops.Append():
            return APPEND
        case ops.Clone():
            return whole.CLONE
        case ops.CreateIndex():
            return files.CREATE_INDEX
        case ops.DataReplacement():
            return files.DATA_REPLACEMENT
        case ops.Delete():
            return DELETE
        case ops.Merge():
            return schema.MERGE
        case ops.Overwrite():
            return whole.OVERWRITE
        case ops.Project():
            return schema.PROJECT
        case ops.ReserveFragments():
            return whole.RESERVE_FRAGMENTS
        case ops.Restore():
            return whole.RESTORE
        case ops.Rewrite():
            return files.REWRITE
        case ops.Update():
            return UPDATE
        case ops.UpdateBases():
            return schema.UPDATE_BASES
        case ops.UpdateConfig():
            return schema.UPDATE_CONFIG
        case ops.UpdateMemWalState():
            return whole.UPDATE_MEM_WAL_STATE
        case ops.UnknownOperation():
            return whole.UNKNOWN
        case _:
            assert_never(op)


_DECIDED_HERE = (
    FeatureFlags.DELETION_FILES
    | FeatureFlags.STABLE_ROW_IDS
    | FeatureFlags.V2_FILES
    | FeatureFlags.TABLE_CONFIG
    | FeatureFlags.BASE_PATHS
    | FeatureFlags.NO_TRANSACTION_FILES
)


def with_flags(manifest: Manifest, *, has_transaction_file: bool) -> Manifest:
    """Set both flag words by the content of the version; bits of other features stay."""
    shared = FeatureFlags(0)
    traits = FragmentList.of(manifest.fragments).traits()
    if any(t.has_deletions for t in traits):
        shared |= FeatureFlags.DELETION_FILES
    if manifest.has_stable_row_ids or any(t.has_row_ids for t in traits):
        shared |= FeatureFlags.STABLE_ROW_IDS
    if manifest.base_paths:
        shared |= FeatureFlags.BASE_PATHS
    for_writers = shared
    if manifest.config:
        for_writers |= FeatureFlags.TABLE_CONFIG
    if not has_transaction_file:
        for_writers |= FeatureFlags.NO_TRANSACTION_FILES
    return replace(
        manifest,
        reader_feature_flags=int(shared) | _others(manifest.reader_feature_flags),
        writer_feature_flags=int(for_writers) | _others(manifest.writer_feature_flags),
    )


def _others(flags: int) -> int:
    return flags & ~int(_DECIDED_HERE)


def ensure_sound(after: TableState, *, before: TableState) -> None:
    """Raise for inconsistencies that the previous version did not have."""
    manifest = after.manifest
    if manifest.schema != before.manifest.schema:
        ensure_schema(manifest.schema)
    _ensure_legacy_is_complete(manifest)
    _ensure_different(after.fragments)
    ensure_id(manifest.max_fragment_id or 0)
    earlier = before.fragments_by_id()
    changed = after.fragments.changed_since(before.fragments)
    fresh = [f for f in changed if earlier.get(f.id) != f]
    bases = frozenset(b.id for b in manifest.base_paths)
    for fragment in fresh:
        _ensure_fragment(fragment, manifest.data_version, bases)
    if manifest.has_stable_row_ids:
        _ensure_row_ids(fresh, manifest.next_row_id, earlier)
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
    fresh: list[Fragment], next_row_id: int, earlier: Mapping[FragmentId, Fragment]
) -> None:
    added: list[Fragment] = []
    for fragment in fresh:
        rows = physical_rows(fragment)
        count = row_id_count(fragment)
        if count != rows:
            msg = f"fragment {fragment.id} has {count} row ids for {rows} rows"
            raise InvalidRequestError(msg, found=count, expected=rows)
        old = earlier.get(fragment.id)
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
    ranges = row_id_ranges(fragments)
    if ranges is not None:
        largest = max((part.end - 1 for part in ranges), default=None)
        is_unique = all(one.end <= other.start for one, other in pairwise(ranges))
    else:
        ids = np.concatenate([row_id_values(fragment) for fragment in fragments])
        largest = int(ids.max()) if len(ids) else None
        is_unique = len(np.unique(ids)) == len(ids)
    if largest is not None and largest >= next_row_id:
        msg = f"row id {largest} was never assigned; the next is {next_row_id}"
        raise InvalidRequestError(msg, found=largest, expected=next_row_id)
    if not is_unique:
        raise InvalidRequestError("a row id was assigned to two rows")


def _ensure_indices(after: TableState, before: TableState) -> None:
    seen: set[object] = set()
    uuids = {i.uuid for i in before.indices}
    fields = after.manifest.schema.by_id()
    for index in after.indices:
        if index.uuid in seen:
            raise InvalidRequestError(f"index segment {index.uuid} appears twice")
        seen.add(index.uuid)
        if index.uuid not in uuids:
            _ensure_new_index(index, set(fields))


def _ensure_new_index(index: IndexMetadata, fields: set[int]) -> None:
    if not index.name:
        raise InvalidRequestError(f"index segment {index.uuid} has no name")
    if missing := [i for i in index.fields if i not in fields]:
        msg = f"index {index.name!r} is on field {missing[0]}, which the table does not have"
        raise InvalidRequestError(msg, index=index.name, field_id=missing[0])
    index.fragments()


def create(transaction: Transaction, options: BuildOptions) -> TableState:
    """Build version 1 of a table that does not exist yet."""
    if not isinstance(transaction.operation, ops.Overwrite):
        kind = type(transaction.operation).__name__
        msg = f"{kind} cannot create a table; only Overwrite and Clone can"
        raise InvalidRequestError(msg, operation=kind)
    return next_state(transaction, _nothing(options), options)


def next_state(
    transaction: Transaction,
    head: TableState,
    options: BuildOptions,
    *,
    restored: TableState | None = None,
) -> TableState:
    """Build the version after `head`; `restored` is the version that a Restore refers to."""
    ensure_writable(head.manifest.writer_feature_flags)
    target = rules.VersionTarget(
        version=options.version or _next_version(head.manifest),
        transaction_uuid=transaction.uuid,
        options=options,
        restored=restored,
    )
    corrected = migrations.completed(options.choices.corrections.applied(head), options.facts)
    operation = transaction.operation
    after = rules_of(operation).apply(operation, corrected, target)
    if not isinstance(operation, ops.Restore):
        after = _ordered(migrations.with_counts(after, options.facts))
        after = migrations.repaired(after, before=head)
        # A restored version keeps its writer: readers correct known defects of writers.
        after = replace(after, manifest=replace(after.manifest, writer_version=options.writer))
    finished = _finished(after, transaction, target)
    ensure_sound(finished, before=head)
    return finished


def clone(
    transaction: Transaction,
    source: TableState,
    source_uri: str,
    options: BuildOptions,
) -> TableState:
    """Build the first version of a clone of `source`."""
    operation = transaction.operation
    if not isinstance(operation, ops.Clone):
        kind = type(operation).__name__
        raise InvalidRequestError(f"{kind} does not clone a table", operation=kind)
    ensure_writable(source.manifest.writer_feature_flags)
    copied = table_metadata.copied(operation, source, source_uri)
    authored = replace(copied, manifest=replace(copied.manifest, writer_version=options.writer))
    target = rules.VersionTarget(
        version=options.version or source.manifest.version,
        transaction_uuid=transaction.uuid,
        options=options,
    )
    return _finished(authored, transaction, target)


def _next_version(manifest: Manifest) -> Version:
    """Return the next version number; numbers from `DETACHED_BIT` on are detached versions."""
    after = manifest.version + 1
    if after >= DETACHED_BIT:
        raise InvalidRequestError(
            f"the table has no version numbers left: the newest is {manifest.version}",
            action="Write its rows to another table.",
        )
    return Version(after)


def _nothing(options: BuildOptions) -> TableState:
    stable = int(FeatureFlags.STABLE_ROW_IDS) if options.choices.enable_stable_row_ids else 0
    manifest = Manifest(
        schema=Schema(fields=()),
        fragments=(),
        version=Version(0),
        data_version=options.choices.data_version or DEFAULT_VERSION,
        reader_feature_flags=stable,
        writer_feature_flags=stable,
    )
    return TableState(manifest=manifest)


def _ordered(state: TableState) -> TableState:
    listed = state.fragments
    if any(t.may_have_tombstones for t in listed.traits()):
        listed = listed.mapped(without_dead_files)
    return replace(state, manifest=replace(state.manifest, fragments=listed.ordered()))


def _finished(
    state: TableState, transaction: Transaction, target: rules.VersionTarget
) -> TableState:
    options, manifest = target.options, state.manifest
    ids = list(state.fragments.ids)
    if manifest.max_fragment_id is not None:
        ids.append(FragmentId(manifest.max_fragment_id))
    file = _file_name(transaction) if options.has_transaction_file else ""
    stamped = replace(
        manifest,
        version=target.version,
        timestamp_ns=options.timestamp_ns,
        tag=transaction.tag,
        transaction_file=file,
        max_fragment_id=max(ids, default=None),
    )
    flagged = with_flags(stamped, has_transaction_file=options.has_transaction_file)
    return replace(state, manifest=flagged)


def _file_name(transaction: Transaction) -> str:
    return layout.transaction_file_name(transaction.read_version, transaction.uuid)
