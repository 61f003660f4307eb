"""Operations, the closed union `Operation`, and the transactions that carry them."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from google.protobuf.unknown_fields import UnknownFieldSet

from lancelake.errors import CorruptTableError, UnsupportedError
from lancelake.format import fragment, index_meta
from lancelake.format.fragment import BasePath, DataFile, Fragment
from lancelake.format.frozen import (
    Codec,
    Conversion,
    FromMessage,
    FrozenMap,
    parse,
    restore_unknown,
    unknown_bytes,
)
from lancelake.format.ids import FieldId, FragmentId, Version
from lancelake.format.index_meta import IndexDetails, IndexFile, IndexMetadata, MergedGeneration
from lancelake.format.schema import Schema, decode_schema, encode_schema
from lancelake.proto.transaction_pb2 import Transaction as Encoded

FIRST_OPERATION_TAG = 100
_EMPTY: FrozenMap[str, str] = FrozenMap()
_NO_FIELDS: FrozenMap[FieldId, MapUpdate] = FrozenMap()
_OLD_FORM = frozenset({"upsert_values", "delete_keys", "schema_metadata", "field_metadata"})
_MAX_FIELD_ID = (1 << 31) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Append:
    """New rows; ids of their fragments are assigned at commit."""

    fragments: tuple[Fragment, ...]
    unknown: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clone:
    """A shallow or deep copy of another table's version."""

    is_shallow: bool
    ref_name: str | None
    ref_version: Version
    ref_path: str
    branch_name: str | None = None
    unknown: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateIndex:
    """Index segments that are added and removed."""

    new_indices: tuple[IndexMetadata, ...]
    removed_indices: tuple[IndexMetadata, ...] = ()
    unknown: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """The new file for its columns in one fragment."""

    fragment_id: FragmentId
    new_file: DataFile


@dataclass(frozen=True, slots=True, kw_only=True)
class DataReplacement:
    """Files that replace others: one column file per fragment."""

    replacements: tuple[Replacement, ...]
    unknown: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """Fragments with a new deletion file, and removed fragments."""

    updated_fragments: tuple[Fragment, ...]
    deleted_fragment_ids: tuple[FragmentId, ...]
    predicate: str
    unknown: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """Columns added or rewritten: the whole fragment list, and the next schema."""

    fragments: tuple[Fragment, ...]
    schema: Schema
    preserves_nullability: bool = False
    unknown: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overwrite:
    """The fragments and schema that replace the whole table, or create it."""

    fragments: tuple[Fragment, ...]
    schema: Schema
    config_upsert_values: FrozenMap[str, str] = _EMPTY
    initial_bases: tuple[BasePath, ...] = ()
    unknown: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """The next schema: columns dropped, renamed or reordered; no data is touched."""

    schema: Schema
    preserves_nullability: bool = False
    unknown: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReserveFragments:
    """Number of fragment ids to reserve for a later commit."""

    num_fragments: int
    unknown: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore:
    """The version to restore."""

    version: Version
    unknown: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteGroup:
    """Fragments that were read together, and those written from them."""

    old_fragments: tuple[Fragment, ...]
    new_fragments: tuple[Fragment, ...]
    unknown: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class RewrittenIndex:
    """An index segment whose row addresses were remapped."""

    old_id: uuid.UUID
    new_id: uuid.UUID
    new_details: IndexDetails | None = None
    new_index_version: int = 0
    new_index_files: tuple[IndexFile, ...] = ()
    unknown: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """The same rows in new files (compaction)."""

    groups: tuple[RewriteGroup, ...]
    rewritten_indices: tuple[RewrittenIndex, ...] = ()
    unknown: bytes = b""


DEFAULT_ITEMS = 8192


DEFAULT_PROBABILITY = 0.00057


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactKeys:
    """Hashes of all keys."""

    key_hashes: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BloomKeys:
    """A split-block bloom filter over the keys."""

    bitmap: bytes
    num_bits: int
    number_of_items: int = DEFAULT_ITEMS
    probability: float = DEFAULT_PROBABILITY


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyExistenceFilter:
    """Fields of the key, and a filter of the inserted keys."""

    field_ids: tuple[FieldId, ...]
    keys: ExactKeys | BloomKeys


class UpdateMode(Enum):
    """How updated values were written."""

    REWRITE_ROWS = 0
    REWRITE_COLUMNS = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """Rows that were moved to new fragments, inserted, deleted or rewritten in place."""

    removed_fragment_ids: tuple[FragmentId, ...] = ()
    updated_fragments: tuple[Fragment, ...] = ()
    new_fragments: tuple[Fragment, ...] = ()
    fields_modified: tuple[FieldId, ...] = ()
    merged_generations: tuple[MergedGeneration, ...] = ()
    fields_for_preserving_frag_bitmap: tuple[FieldId, ...] = ()
    update_mode: UpdateMode = UpdateMode.REWRITE_ROWS
    inserted_rows: KeyExistenceFilter | None = None
    unknown: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateBases:
    """Bases to add; id 0 means the next free one."""

    new_bases: tuple[BasePath, ...]
    unknown: bytes = b""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateMemWalState:
    """Generations that are merged into the table."""

    merged_generations: tuple[MergedGeneration, ...]
    unknown: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownOperation:
    """Its field number in `Transaction` (0 when there was none) and its encoded field."""

    tag: int
    data: bytes


Operation = (
    Append
    | Clone
    | CreateIndex
    | DataReplacement
    | Delete
    | Merge
    | Overwrite
    | Project
    | ReserveFragments
    | Restore
    | Rewrite
    | Update
    | UpdateBases
    | UpdateConfig
    | UpdateMemWalState
    | UnknownOperation
)


class _RewriteCodec(Codec[Rewrite]):
    """Codec of a rewrite; the ungrouped form of old releases becomes one group."""

    def decode(self, message: Any) -> Rewrite:
        if not message.groups and (message.old_fragments or message.new_fragments):
            group = Encoded.Rewrite.RewriteGroup(
                old_fragments=message.old_fragments, new_fragments=message.new_fragments
            )
            message.groups.append(group)
        return super().decode(message)


class _ConfigCodec(Codec[UpdateConfig]):
    """Codec of settings; the form of old releases is converted to the current one."""

    def decode(self, message: Any) -> UpdateConfig:
        forms = {field.name in _OLD_FORM for field, _ in message.ListFields()}
        if len(forms) > 1:
            raise CorruptTableError("an UpdateConfig has both the old and the current form")
        return _decode_old_form(message) if True in forms else super().decode(message)


def _decode_old_form(message: Encoded.UpdateConfig) -> UpdateConfig:
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


def _encode_entries(entries: Mapping[str, str | None], message: Encoded.UpdateMap) -> None:
    for key, value in entries.items():
        message.update_entries.add(key=key, value=value)


def _encode_field_id(field_id: FieldId) -> FieldId:
    if field_id < 0:
        problem = f"the schema has a field with id {field_id}, which a transaction cannot encode"
        raise CorruptTableError(problem, id=field_id)
    return field_id


def _decode_mode(value: int) -> UpdateMode:
    try:
        return UpdateMode(value)
    except ValueError as error:
        msg = f"unknown update mode {value}"
        raise UnsupportedError(msg, found=value) from error


def _encode_schema(schema: Schema, message: Any) -> None:
    message.schema.extend(encode_schema(schema))


def _encode_with_metadata(schema: Schema, message: Any) -> None:
    _encode_schema(schema, message)
    message.schema_metadata.update(schema.metadata)


_KEY_SETS: dict[str, Codec[Any]] = {
    "exact": Codec(ExactKeys, Encoded.ExactKeySetFilter),
    "bloom": Codec(
        BloomKeys,
        Encoded.BloomFilter,
        number_of_items=Conversion(lambda n: n or DEFAULT_ITEMS, int),
        probability=Conversion(lambda p: p or DEFAULT_PROBABILITY, float),
    ),
}


def decode_keys(message: Encoded.KeyExistenceFilter) -> KeyExistenceFilter:
    """Read a filter."""
    case = message.WhichOneof("data")
    if case is None:
        raise CorruptTableError("a key filter has no keys")
    keys = _KEY_SETS[case].decode(getattr(message, case))
    return KeyExistenceFilter(field_ids=tuple(map(FieldId, message.field_ids)), keys=keys)


def encode_keys(value: KeyExistenceFilter) -> Encoded.KeyExistenceFilter:
    """Write a filter."""
    case = "exact" if isinstance(value.keys, ExactKeys) else "bloom"
    keys = {case: _KEY_SETS[case].encode(value.keys)}
    return Encoded.KeyExistenceFilter(field_ids=value.field_ids, **keys)


_KEYS = Conversion(decode_keys, encode_keys)
_FIELD_ID = Conversion(FieldId, _encode_field_id)
_MODE = Conversion(_decode_mode, lambda mode: mode.value)
_DATA_FILE = Conversion(fragment.decode_data_file, fragment.encode_data_file)
_SCHEMA = FromMessage(lambda m: decode_schema(m.schema, {}), _encode_schema)
_SCHEMA_AND_METADATA = FromMessage(
    lambda m: decode_schema(m.schema, m.schema_metadata), _encode_with_metadata
)
_ENTRIES = FromMessage(
    lambda m: FrozenMap(
        {e.key: e.value if e.HasField("value") else None for e in m.update_entries}
    ),
    _encode_entries,
)
_MAP_UPDATE = Codec(MapUpdate, Encoded.UpdateMap, entries=_ENTRIES)
_GROUP = Codec(
    RewriteGroup, Encoded.Rewrite.RewriteGroup, old_fragments=fragment, new_fragments=fragment
)
_REWRITTEN_INDEX = Codec(
    RewrittenIndex,
    Encoded.Rewrite.RewrittenIndex,
    names={"new_details": "new_index_details"},
    old_id=index_meta.UUID,
    new_id=index_meta.UUID,
    new_details=index_meta.DETAILS,
    new_index_files=index_meta.FILE,
)
CODECS: dict[str, Codec[Any]] = {  # by the name of the field in a transaction
    "append": Codec(Append, Encoded.Append, fragments=fragment),
    "delete": Codec(Delete, Encoded.Delete, updated_fragments=fragment),
    "overwrite": Codec(
        Overwrite,
        Encoded.Overwrite,
        fragments=fragment,
        schema=_SCHEMA_AND_METADATA,
        initial_bases=fragment.BASE,
    ),
    "create_index": Codec(
        CreateIndex,
        Encoded.CreateIndex,
        new_indices=index_meta.ENTRY,
        removed_indices=index_meta.ENTRY,
    ),
    "rewrite": _RewriteCodec(
        Rewrite, Encoded.Rewrite, groups=_GROUP, rewritten_indices=_REWRITTEN_INDEX
    ),
    "merge": Codec(Merge, Encoded.Merge, fragments=fragment, schema=_SCHEMA_AND_METADATA),
    "restore": Codec(Restore, Encoded.Restore),
    "reserve_fragments": Codec(ReserveFragments, Encoded.ReserveFragments),
    "update": Codec(
        Update,
        Encoded.Update,
        updated_fragments=fragment,
        new_fragments=fragment,
        fields_modified=_FIELD_ID,
        merged_generations=index_meta.MERGED_GENERATION,
        fields_for_preserving_frag_bitmap=_FIELD_ID,
        update_mode=_MODE,
        inserted_rows=_KEYS,
    ),
    "project": Codec(Project, Encoded.Project, schema=_SCHEMA),
    "update_config": _ConfigCodec(
        UpdateConfig,
        Encoded.UpdateConfig,
        names={
            name: f"{name}_updates"
            for name in ("config", "table_metadata", "schema_metadata", "field_metadata")
        },
        config=_MAP_UPDATE,
        table_metadata=_MAP_UPDATE,
        schema_metadata=_MAP_UPDATE,
        field_metadata=_MAP_UPDATE,
    ),
    "data_replacement": Codec(
        DataReplacement,
        Encoded.DataReplacement,
        replacements=Codec(Replacement, Encoded.DataReplacementGroup, new_file=_DATA_FILE),
    ),
    "update_mem_wal_state": Codec(
        UpdateMemWalState,
        Encoded.UpdateMemWalState,
        merged_generations=index_meta.MERGED_GENERATION,
    ),
    "clone": Codec(Clone, Encoded.Clone),
    "update_bases": Codec(UpdateBases, Encoded.UpdateBases, new_bases=fragment.BASE),
}
_CASES = {codec.kind: case for case, codec in CODECS.items()}


def decode(message: Encoded) -> Operation:
    """Decode the operation of a transaction; an unknown one is kept as bytes."""
    case = message.WhichOneof("operation")
    if case is not None:
        operation: Operation = CODECS[case].decode(getattr(message, case))
        return operation
    strangers = UnknownFieldSet(message)
    tags = [strangers[i].field_number for i in range(len(strangers))]
    tag = next((t for t in tags if t >= FIRST_OPERATION_TAG), 0)
    return UnknownOperation(tag=tag, data=unknown_bytes(message))


def encode_into(message: Encoded, operation: Operation) -> None:
    """Encode an operation into a transaction."""
    if isinstance(operation, UnknownOperation):
        message.MergeFromString(operation.data)
    else:
        case = _CASES[type(operation)]
        getattr(message, case).CopyFrom(CODECS[case].encode(operation))


COMMIT_MESSAGE = "__lance_commit_message"


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """One change of a table."""

    read_version: Version
    uuid: str
    operation: Operation
    tag: str = ""
    properties: FrozenMap[str, str] = _EMPTY
    unknown: bytes = b""

    @property
    def message(self) -> str | None:
        """The commit message."""
        return self.properties.get(COMMIT_MESSAGE)


def decode_transaction(data: bytes) -> Transaction:
    """Read a transaction."""
    message = Encoded()
    parse(message, data, what="transaction")
    operation = decode(message)
    rest = b"" if isinstance(operation, UnknownOperation) else unknown_bytes(message)
    return Transaction(
        read_version=Version(message.read_version),
        uuid=message.uuid,
        operation=operation,
        tag=message.tag,
        properties=FrozenMap(dict(message.transaction_properties)),
        unknown=rest,
    )


def encode_transaction(transaction: Transaction) -> bytes:
    """Write a transaction."""
    message = Encoded(
        read_version=transaction.read_version,
        uuid=transaction.uuid,
        tag=transaction.tag,
        transaction_properties=transaction.properties,
    )
    encode_into(message, transaction.operation)
    restore_unknown(message, transaction.unknown)
    return message.SerializeToString(deterministic=True)
