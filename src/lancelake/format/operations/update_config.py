"""UpdateConfig: config, table metadata, schema metadata and field metadata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lancelake.errors import CorruptTableError
from lancelake.format.frozen import FrozenMap, restore_unknown, unknown_bytes
from lancelake.format.ids import FieldId
from lancelake.proto.transaction_pb2 import Transaction

_NO_FIELDS: FrozenMap[FieldId, MapUpdate] = FrozenMap()
_OLD_FORM = frozenset({"upsert_values", "delete_keys", "schema_metadata", "field_metadata"})
_MAX_FIELD_ID = (1 << 31) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class MapUpdate:
    """Keys to set; a key whose value is None is removed. `replace` clears the map first."""

    entries: FrozenMap[str, str | None]
    replace: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateConfig:
    """Updates of each of the four maps; None keeps a map."""

    config: MapUpdate | None = None
    table_metadata: MapUpdate | None = None
    schema_metadata: MapUpdate | None = None
    field_metadata: FrozenMap[FieldId, MapUpdate] = _NO_FIELDS
    unknown: bytes = b""


def decode(message: Transaction.UpdateConfig) -> UpdateConfig:
    """Decode the operation; the form of old releases is converted to the current one."""
    forms = {name in _OLD_FORM for name in (field.name for field, _ in message.ListFields())}
    if len(forms) > 1:
        raise CorruptTableError("an UpdateConfig has both the old and the current form")
    if True in forms:
        return _decode_old_form(message)
    fields = {FieldId(k): _decode_map(v) for k, v in message.field_metadata_updates.items()}
    return UpdateConfig(
        config=_optional_map(message, "config_updates"),
        table_metadata=_optional_map(message, "table_metadata_updates"),
        schema_metadata=_optional_map(message, "schema_metadata_updates"),
        field_metadata=FrozenMap(fields),
        unknown=unknown_bytes(message),
    )


def encode(op: UpdateConfig) -> Transaction.UpdateConfig:
    """Write the operation."""
    message = Transaction.UpdateConfig()
    if op.config is not None:
        message.config_updates.CopyFrom(_encode_map(op.config))
    if op.table_metadata is not None:
        message.table_metadata_updates.CopyFrom(_encode_map(op.table_metadata))
    if op.schema_metadata is not None:
        message.schema_metadata_updates.CopyFrom(_encode_map(op.schema_metadata))
    for field_id, update in op.field_metadata.items():
        message.field_metadata_updates[field_id].CopyFrom(_encode_map(update))
    restore_unknown(message, op.unknown)
    return message


def _decode_old_form(message: Transaction.UpdateConfig) -> UpdateConfig:
    entries: dict[str, str | None] = dict(message.upsert_values)
    entries |= dict.fromkeys(message.delete_keys)
    fields = {FieldId(k): _replacing(v.metadata) for k, v in message.field_metadata.items()}
    if any(field_id > _MAX_FIELD_ID for field_id in fields):
        raise CorruptTableError("an UpdateConfig has a field id above 31 bits")
    has_schema = bool(message.schema_metadata)
    return UpdateConfig(
        config=MapUpdate(entries=FrozenMap(entries)) if entries else None,
        schema_metadata=_replacing(message.schema_metadata) if has_schema else None,
        field_metadata=FrozenMap(fields),
        unknown=unknown_bytes(message),
    )


def _replacing(values: Mapping[str, str]) -> MapUpdate:
    return MapUpdate(entries=FrozenMap(dict(values)), replace=True)


def _optional_map(message: Transaction.UpdateConfig, name: str) -> MapUpdate | None:
    if not message.HasField(name):
        return None
    return _decode_map(getattr(message, name))


def _decode_map(message: Transaction.UpdateMap) -> MapUpdate:
    entries = {e.key: e.value if e.HasField("value") else None for e in message.update_entries}
    return MapUpdate(entries=FrozenMap(entries), replace=message.replace)


def _encode_map(update: MapUpdate) -> Transaction.UpdateMap:
    message = Transaction.UpdateMap(replace=update.replace)
    for key, value in update.entries.items():
        message.update_entries.add(key=key, value=value)
    return message
