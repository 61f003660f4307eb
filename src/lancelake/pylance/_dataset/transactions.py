"""Transactions and operations, translated from and to pylance's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

from lancelake.core.values.metadata import (
    FieldId,
    Fragment,
    FragmentId,
    FrozenMap,
    IndexDetails,
    MapUpdate,
    Replacement,
    RewriteGroup,
    RewrittenIndex,
    UpdateMode,
    Version,
    default_session,
    updated_offsets,
)
from lancelake.core.values.metadata import Transaction as Entry
from lancelake.core.values.metadata import operations as ops
from lancelake.errors import InvalidRequestError, UnsupportedError
from lancelake.pylance._dataset.arguments import from_base_path, to_base_path
from lancelake.pylance._dataset.index_values import from_index, to_index, to_uuid
from lancelake.pylance._dataset.lance_operation import LanceOperation
from lancelake.pylance._values.fragment_metadata import (
    FragmentMetadata,
    from_data_file,
    from_fragment,
    to_data_file,
    to_fragment,
)
from lancelake.pylance.schema import LanceSchema, to_schema

__all__ = ["LanceOperation", "from_operation", "to_operation"]


# Parts of an operation that official releases do not expose either.
_HIDDEN: dict[type[ops.Operation], tuple[str, ...]] = {
    ops.Overwrite: ("config_upsert_values",),
    ops.Update: ("merged_generations", "inserted_rows"),
}
_NO_DETAILS = IndexDetails(type_url="", value=b"")
_MODES = {mode.name.lower(): mode for mode in UpdateMode}


def from_operation(op: ops.Operation) -> LanceOperation.BaseOperation:
    """Convert an operation of the format; one without a class of its own to `BaseOperation`."""
    shown = _show(op)
    shown._source = op
    return shown


def to_operation(shown: LanceOperation.BaseOperation) -> ops.Operation:
    """Return the operation of the format, including fields without a public attribute."""
    made, source = _make(shown), shown._source
    if made is source or type(made) is not type(source):
        return made
    hidden = ("unknown", *_HIDDEN.get(type(made), ()))
    return replace(made, **{name: getattr(source, name) for name in hidden})


def _show(op: ops.Operation) -> LanceOperation.BaseOperation:  # noqa: C901  # one case per operation
    match op:
        case ops.Append():
            return LanceOperation.Append(_show_fragments(op.fragments))
        case ops.Overwrite():
            return _show_overwrite(op)
        case ops.Delete():
            return _show_delete(op)
        case ops.Update():
            return _show_update(op)
        case ops.Merge():
            return _show_merge(op)
        case ops.Project():
            return LanceOperation.Project(LanceSchema(op.schema), op.preserves_nullability)
        case ops.Restore():
            return LanceOperation.Restore(op.version)
        case ops.Clone():
            return _show_clone(op)
        case ops.Rewrite():
            return _show_rewrite(op)
        case ops.CreateIndex():
            return _show_create_index(op)
        case ops.DataReplacement():
            return _show_replacement(op)
        case ops.UpdateConfig():
            return _show_config(op)
        case ops.ReserveFragments() | ops.UpdateBases() | ops.UpdateMemWalState():
            return LanceOperation.BaseOperation()
        case ops.UnknownOperation():
            return LanceOperation.BaseOperation()
        case _:
            assert_never(op)


def _make(shown: LanceOperation.BaseOperation) -> ops.Operation:  # noqa: C901  # one case per class
    match shown:
        case LanceOperation.Append():
            return ops.Append(fragments=_make_fragments(shown.fragments))
        case LanceOperation.Overwrite():
            return _make_overwrite(shown)
        case LanceOperation.Delete():
            return _make_delete(shown)
        case LanceOperation.Update():
            return _make_update(shown)
        case LanceOperation.Merge():
            return _make_merge(shown)
        case LanceOperation.Project():
            schema, preserves = to_schema(shown.schema), shown.preserves_nullability
            return ops.Project(schema=schema, preserves_nullability=preserves)
        case LanceOperation.Restore():
            return ops.Restore(version=Version(shown.version))
        case LanceOperation.Clone():
            return _make_clone(shown)
        case LanceOperation.Rewrite():
            return _make_rewrite(shown)
        case LanceOperation.CreateIndex():
            return _make_create_index(shown)
        case LanceOperation.DataReplacement():
            return _make_replacement(shown)
        case LanceOperation.UpdateConfig():
            return _make_config(shown)
        case LanceOperation.DataOverlay():
            raise UnsupportedError("data overlays are not supported")
        case LanceOperation.BaseOperation(_source=source) if source is not None:
            return source
        case _:
            name = type(shown).__name__
            raise InvalidRequestError(f"Unsupported operation: {name}", found=name)


def _show_fragments(fragments: Sequence[Fragment]) -> list[FragmentMetadata]:
    return [from_fragment(fragment) for fragment in fragments]


def _make_fragments(fragments: Iterable[FragmentMetadata]) -> tuple[Fragment, ...]:
    return tuple(to_fragment(fragment) for fragment in fragments)


def _show_overwrite(op: ops.Overwrite) -> LanceOperation.Overwrite:
    bases = [from_base_path(base) for base in op.initial_bases]
    fragments = _show_fragments(op.fragments)
    return LanceOperation.Overwrite(LanceSchema(op.schema), fragments, bases or None)


def _make_overwrite(shown: LanceOperation.Overwrite) -> ops.Overwrite:
    return ops.Overwrite(
        fragments=_make_fragments(shown.fragments),
        schema=to_schema(shown.new_schema),
        initial_bases=tuple(to_base_path(base) for base in shown.initial_bases or ()),
    )


def _show_delete(op: ops.Delete) -> LanceOperation.Delete:
    fragments = _show_fragments(op.updated_fragments)
    return LanceOperation.Delete(fragments, list(op.deleted_fragment_ids), op.predicate)


def _make_delete(shown: LanceOperation.Delete) -> ops.Delete:
    return ops.Delete(
        updated_fragments=_make_fragments(shown.updated_fragments),
        deleted_fragment_ids=_fragment_ids(shown.deleted_fragment_ids),
        predicate=shown.predicate,
    )


def _show_update(op: ops.Update) -> LanceOperation.Update:
    return LanceOperation.Update(
        list(op.removed_fragment_ids),
        _show_fragments(op.updated_fragments),
        _show_fragments(op.new_fragments),
        list(op.fields_modified),
        list(op.fields_for_preserving_frag_bitmap),
        op.update_mode.name.lower(),
        _offsets(op),
    )


def _make_update(shown: LanceOperation.Update) -> ops.Update:
    source = shown._source
    recorded = _offsets(source) if isinstance(source, ops.Update) else None
    offsets = shown.updated_fragment_offsets or None
    if isinstance(source, ops.Update) and offsets != recorded:
        raise UnsupportedError("updated_fragment_offsets of a transaction cannot be changed")
    return ops.Update(
        unknown=updated_offsets.encode(
            {FragmentId(i): rows for i, rows in (offsets or {}).items()}
        ),
        removed_fragment_ids=_fragment_ids(shown.removed_fragment_ids),
        updated_fragments=_make_fragments(shown.updated_fragments),
        new_fragments=_make_fragments(shown.new_fragments),
        fields_modified=_field_ids(shown.fields_modified),
        fields_for_preserving_frag_bitmap=_field_ids(shown.fields_for_preserving_frag_bitmap),
        update_mode=_MODES.get(shown.update_mode, UpdateMode.REWRITE_ROWS),
    )


def _show_merge(op: ops.Merge) -> LanceOperation.Merge:
    fragments = _show_fragments(op.fragments)
    return LanceOperation.Merge(fragments, LanceSchema(op.schema), op.preserves_nullability)


def _make_merge(shown: LanceOperation.Merge) -> ops.Merge:
    return ops.Merge(
        fragments=_make_fragments(shown.fragments),
        schema=to_schema(shown.schema),
        preserves_nullability=shown.preserves_nullability,
    )


def _show_clone(op: ops.Clone) -> LanceOperation.Clone:
    return LanceOperation.Clone(
        op.is_shallow, op.ref_name, op.ref_version, op.ref_path, op.branch_name
    )


def _make_clone(shown: LanceOperation.Clone) -> ops.Clone:
    return ops.Clone(
        is_shallow=shown.is_shallow,
        ref_name=shown.ref_name,
        ref_version=Version(shown.ref_version),
        ref_path=shown.ref_path,
        branch_name=shown.branch_name,
    )


def _show_rewrite(op: ops.Rewrite) -> LanceOperation.Rewrite:
    groups = [
        LanceOperation.RewriteGroup(
            _show_fragments(group.old_fragments),
            _show_fragments(group.new_fragments),
            _unknown=group.unknown,
        )
        for group in op.groups
    ]
    return LanceOperation.Rewrite(groups, [_show_rewritten(i) for i in op.rewritten_indices])


def _make_rewrite(shown: LanceOperation.Rewrite) -> ops.Rewrite:
    groups = (
        RewriteGroup(
            old_fragments=_make_fragments(group.old_fragments),
            new_fragments=_make_fragments(group.new_fragments),
            unknown=group._unknown,
        )
        for group in shown.groups
    )
    indices = tuple(_make_rewritten(index) for index in shown.rewritten_indices)
    return ops.Rewrite(groups=tuple(groups), rewritten_indices=indices)


def _show_rewritten(index: RewrittenIndex) -> LanceOperation.RewrittenIndex:
    details = index.new_details or _NO_DETAILS
    return LanceOperation.RewrittenIndex(
        str(index.old_id),
        str(index.new_id),
        details.type_url,
        details.value,
        index.new_index_version,
        _source=index,
    )


def _make_rewritten(shown: LanceOperation.RewrittenIndex) -> RewrittenIndex:
    url, value = shown.new_details_type_url, shown.new_details_value
    details = IndexDetails(type_url=url, value=value)
    entry = RewrittenIndex(
        old_id=to_uuid(shown.old_id),
        new_id=to_uuid(shown.new_id),
        new_details=None if details == _NO_DETAILS else details,
        new_index_version=shown.new_index_version,
    )
    source = shown._source
    if source is None:
        return entry
    is_same = details == (source.new_details or _NO_DETAILS)
    return replace(
        entry,
        new_details=source.new_details if is_same else entry.new_details,
        new_index_files=source.new_index_files,
        unknown=source.unknown,
    )


def _show_create_index(op: ops.CreateIndex) -> LanceOperation.CreateIndex:
    new, removed = op.new_indices, op.removed_indices
    return LanceOperation.CreateIndex(
        [from_index(i) for i in new], [from_index(i) for i in removed]
    )


def _make_create_index(shown: LanceOperation.CreateIndex) -> ops.CreateIndex:
    return ops.CreateIndex(
        new_indices=tuple(to_index(index) for index in shown.new_indices),
        removed_indices=tuple(to_index(index) for index in shown.removed_indices),
    )


def _show_replacement(op: ops.DataReplacement) -> LanceOperation.DataReplacement:
    group = LanceOperation.DataReplacementGroup
    groups = [group(each.fragment_id, from_data_file(each.new_file)) for each in op.replacements]
    return LanceOperation.DataReplacement(groups)


def _make_replacement(shown: LanceOperation.DataReplacement) -> ops.DataReplacement:
    entries = (
        Replacement(
            fragment_id=FragmentId(group.fragment_id), new_file=to_data_file(group.new_file)
        )
        for group in shown.replacements
    )
    return ops.DataReplacement(replacements=tuple(entries))


def _show_config(op: ops.UpdateConfig) -> LanceOperation.UpdateConfig:
    fields = {int(i): _show_map(update) for i, update in op.field_metadata.items()}
    return LanceOperation.UpdateConfig(
        None if op.config is None else _show_map(op.config),
        None if op.table_metadata is None else _show_map(op.table_metadata),
        None if op.schema_metadata is None else _show_map(op.schema_metadata),
        fields or None,
    )


def _make_config(shown: LanceOperation.UpdateConfig) -> ops.UpdateConfig:
    fields = {
        FieldId(i): entry
        for i, update in (shown.field_metadata_updates or {}).items()
        if (entry := _make_map(update)) is not None
    }
    return ops.UpdateConfig(
        config=_make_map(shown.config_updates),
        table_metadata=_make_map(shown.table_metadata_updates),
        schema_metadata=_make_map(shown.schema_metadata_updates),
        field_metadata=FrozenMap(fields),
    )


def _show_map(update: MapUpdate) -> LanceOperation.UpdateMap:
    return LanceOperation.UpdateMap(dict(update.entries), update.replace)


def _make_map(shown: LanceOperation.UpdateMap | None) -> MapUpdate | None:
    if shown is None:
        return None
    return MapUpdate(entries=FrozenMap(shown.updates), replace=shown.replace)


def _offsets(op: ops.Update) -> dict[int, bytes] | None:
    return {int(i): rows for i, rows in updated_offsets.decode(op.unknown).items()} or None


def _fragment_ids(ids: Iterable[int]) -> tuple[FragmentId, ...]:
    return tuple(FragmentId(i) for i in ids)


def _field_ids(ids: Iterable[int]) -> tuple[FieldId, ...]:
    return tuple(FieldId(i) for i in ids)


def _fresh_uuid() -> str:
    return str(default_session().ids.uuid4())


@dataclass
class Transaction:
    """One change of a table: the version that was read, and the operation.

    Attributes:
        read_version: The version that the change is based on.
        operation: What the change does.
        uuid: Identifies the transaction; by default a new one.
        transaction_properties: Further properties, such as the commit message.

    Examples:
        >>> restore = lance.Transaction(ds.version, lance.LanceOperation.Restore(1))
        >>> lance.LanceDataset.commit(ds, restore).version
        2
    """

    read_version: int
    operation: LanceOperation.BaseOperation
    uuid: str = field(default_factory=_fresh_uuid)
    transaction_properties: dict[str, str] | None = field(default_factory=dict)
    _tag: str = field(default="", kw_only=True, repr=False, compare=False)
    _unknown: bytes = field(default=b"", kw_only=True, repr=False, compare=False)


def from_transaction(entry: Entry) -> Transaction:
    """Create it from a transaction of the format."""
    return Transaction(
        entry.read_version,
        from_operation(entry.operation),
        entry.uuid,
        dict(entry.properties),
        _tag=entry.tag,
        _unknown=entry.unknown,
    )


def to_transaction(transaction: Transaction) -> Entry:
    """Return the transaction of the format, including fields without a public attribute."""
    return Entry(
        read_version=Version(transaction.read_version),
        uuid=transaction.uuid,
        operation=to_operation(transaction.operation),
        tag=transaction._tag,
        properties=FrozenMap(transaction.transaction_properties or {}),
        unknown=transaction._unknown,
    )
