"""Transactions and operations, translated from and to pylance's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from lancelake.core.values.metadata import (
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
    row_address,
)
from lancelake.core.values.metadata import Transaction as Entry
from lancelake.core.values.metadata import operations as ops
from lancelake.errors import InvalidRequestError, UnsupportedError
from lancelake.pylance._dataset.arguments import from_base_path, to_base_path
from lancelake.pylance._dataset.index_values import from_index, to_index, to_uuid
from lancelake.pylance._dataset.lance_operation import LanceOperation
from lancelake.pylance._values.fragment_metadata import (
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


@dataclass(frozen=True, slots=True)
class _Form:
    """How values of the format are shown, and made of what is shown."""

    show: Callable[[Any], Any] = lambda value: value
    make: Callable[[Any], Any] = lambda shown: shown


def _each(form: _Form) -> _Form:
    """Return the form of a sequence."""
    return _Form(
        lambda values: [form.show(value) for value in values],
        lambda shown: tuple(form.make(value) for value in shown or ()),
    )


def _optional(form: _Form) -> _Form:
    """Return the form of a value that may be None."""
    return _Form(
        lambda value: None if value is None else form.show(value),
        lambda shown: None if shown is None else form.make(shown),
    )


def _record(shown: Any, stored: Any, *fields: tuple[str, str, _Form]) -> _Form:
    """Return the form of a dataclass: what each field is called when shown, and in the format."""
    return _Form(
        lambda value: shown(**{name: form.show(getattr(value, own)) for name, own, form in fields}),
        lambda value: stored(
            **{own: form.make(getattr(value, name)) for name, own, form in fields}
        ),
    )


def _same(names: str, form: _Form = _Form()) -> list[tuple[str, str, _Form]]:  # noqa: B008  # immutable
    """Return fields that have the same names when they are shown."""
    return [(name, name, form) for name in names.split()]


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


_IDS = _each(_Form())
_FRAGMENTS = _each(_Form(from_fragment, to_fragment))
_SCHEMA = _Form(LanceSchema, to_schema)
_INDICES = _each(_Form(from_index, to_index))
_MODE = _Form(
    lambda mode: mode.name.lower(), lambda name: _MODES.get(name, UpdateMode.REWRITE_ROWS)
)
_MAP = _record(
    LanceOperation.UpdateMap,
    MapUpdate,
    ("updates", "entries", _Form(dict, FrozenMap)),
    *_same("replace"),
)
_MAPS_BY_FIELD = _Form(
    lambda maps: {int(i): _MAP.show(update) for i, update in maps.items()} or None,
    lambda shown: FrozenMap({i: _MAP.make(u) for i, u in (shown or {}).items() if u is not None}),
)
_GROUP = _record(
    LanceOperation.RewriteGroup,
    RewriteGroup,
    *_same("old_fragments new_fragments", _FRAGMENTS),
    ("_unknown", "unknown", _Form()),
)
_REPLACEMENT = _record(
    LanceOperation.DataReplacementGroup,
    Replacement,
    *_same("fragment_id"),
    *_same("new_file", _Form(from_data_file, to_data_file)),
)
_FIELDS: dict[type[Any], tuple[type[Any], list[tuple[str, str, _Form]]]] = {
    LanceOperation.Append: (ops.Append, _same("fragments", _FRAGMENTS)),
    LanceOperation.Overwrite: (
        ops.Overwrite,
        [
            *_same("fragments", _FRAGMENTS),
            ("new_schema", "schema", _SCHEMA),
            *_same("initial_bases", _each(_Form(from_base_path, to_base_path))),
        ],
    ),
    LanceOperation.Delete: (
        ops.Delete,
        [
            *_same("updated_fragments", _FRAGMENTS),
            *_same("deleted_fragment_ids", _IDS),
            *_same("predicate"),
        ],
    ),
    LanceOperation.Update: (
        ops.Update,
        [
            *_same("updated_fragments new_fragments", _FRAGMENTS),
            *_same("removed_fragment_ids fields_modified fields_for_preserving_frag_bitmap", _IDS),
            *_same("update_mode", _MODE),
        ],
    ),
    LanceOperation.Merge: (
        ops.Merge,
        [
            *_same("fragments", _FRAGMENTS),
            *_same("schema", _SCHEMA),
            *_same("preserves_nullability"),
        ],
    ),
    LanceOperation.Project: (
        ops.Project,
        [*_same("schema", _SCHEMA), *_same("preserves_nullability")],
    ),
    LanceOperation.Restore: (ops.Restore, _same("version")),
    LanceOperation.Clone: (
        ops.Clone,
        _same("is_shallow ref_name ref_version ref_path branch_name"),
    ),
    LanceOperation.Rewrite: (
        ops.Rewrite,
        [
            *_same("groups", _each(_GROUP)),
            *_same("rewritten_indices", _each(_Form(_show_rewritten, _make_rewritten))),
        ],
    ),
    LanceOperation.CreateIndex: (ops.CreateIndex, _same("new_indices removed_indices", _INDICES)),
    LanceOperation.DataReplacement: (
        ops.DataReplacement,
        _same("replacements", _each(_REPLACEMENT)),
    ),
    LanceOperation.UpdateConfig: (
        ops.UpdateConfig,
        [
            ("config_updates", "config", _optional(_MAP)),
            ("table_metadata_updates", "table_metadata", _optional(_MAP)),
            ("schema_metadata_updates", "schema_metadata", _optional(_MAP)),
            ("field_metadata_updates", "field_metadata", _MAPS_BY_FIELD),
        ],
    ),
}
_FORMS = {shown: _record(shown, stored, *fields) for shown, (stored, fields) in _FIELDS.items()}
_SHOWN = {stored: _FORMS[shown] for shown, (stored, _) in _FIELDS.items()}


def _show(op: ops.Operation) -> LanceOperation.BaseOperation:
    form = _SHOWN.get(type(op))
    shown: LanceOperation.BaseOperation
    shown = LanceOperation.BaseOperation() if form is None else form.show(op)
    if isinstance(shown, LanceOperation.Update) and isinstance(op, ops.Update):
        shown.updated_fragment_offsets = _offsets(op)
    if isinstance(shown, LanceOperation.Overwrite):
        shown.initial_bases = shown.initial_bases or None
    return shown


def _make(shown: LanceOperation.BaseOperation) -> ops.Operation:
    if isinstance(shown, LanceOperation.DataOverlay):
        raise UnsupportedError("data overlays are not supported")
    form = next((_FORMS[kind] for kind in type(shown).__mro__ if kind in _FORMS), None)
    if form is not None:
        made: ops.Operation = form.make(shown)
        if isinstance(shown, LanceOperation.Update) and isinstance(made, ops.Update):
            return replace(made, unknown=_encode_offsets(shown))
        return made
    if shown._source is None:
        name = type(shown).__name__
        raise InvalidRequestError(f"Unsupported operation: {name}", found=name)
    return shown._source


def _encode_offsets(shown: LanceOperation.Update) -> bytes:
    """Return the offsets of updated rows, which stay those of a transaction that was read."""
    source = shown._source
    offsets = shown.updated_fragment_offsets or None
    if isinstance(source, ops.Update) and offsets != _offsets(source):
        raise UnsupportedError("updated_fragment_offsets of a transaction cannot be changed")
    return row_address.encode_offsets({FragmentId(i): rows for i, rows in (offsets or {}).items()})


def _offsets(op: ops.Update) -> dict[int, bytes] | None:
    return {int(i): rows for i, rows in row_address.decode_offsets(op.unknown).items()} or None


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
