"""MemWAL details: configuration and merge progress in the table's index section."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field

from lancelake.errors import CorruptTableError, InvalidRequestError, UnsupportedError
from lancelake.format.frozen import Codec, FrozenMap, parse
from lancelake.format.ids import FieldId
from lancelake.format.index_meta import (
    MERGED_GENERATION,
    IndexDetails,
    IndexMetadata,
    MergedGeneration,
)
from lancelake.proto import table_pb2

SPEC_ID = 1
FIELD = "bucket"
_NUM_BUCKETS = "num_buckets"
_MOST_BUCKETS = 1024
_BUCKET_TYPE = "int32"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsharded:
    """All rows in one region."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucketed:
    """Rows by the hash of a column."""

    column: FieldId
    buckets: int

    def __post_init__(self) -> None:
        """Refuse a number of buckets that no release takes."""
        if not 1 <= self.buckets <= _MOST_BUCKETS:
            msg = f"the number of buckets must be between 1 and {_MOST_BUCKETS}, not {self.buckets}"
            raise InvalidRequestError(msg, buckets=self.buckets)


@dataclass(frozen=True, slots=True, kw_only=True)
class ByValue:
    """Rows by the value of a column, whose Arrow type is named `result_type`."""

    column: FieldId
    result_type: str


RegionSpec = Unsharded | Bucketed | ByValue


def encode_spec(spec: RegionSpec) -> table_pb2.RegionSpec:
    """Write a spec as official releases do: one field, always called `bucket`."""
    field = table_pb2.RegionField(field_id=FIELD, result_type=_BUCKET_TYPE)
    match spec:
        case Unsharded():
            field.transform = "unsharded"
        case Bucketed():
            field.transform = "bucket"
            field.source_ids.append(spec.column)
            field.parameters[_NUM_BUCKETS] = str(spec.buckets)
        case ByValue():
            field.transform = "identity"
            field.source_ids.append(spec.column)
            field.result_type = spec.result_type
    return table_pb2.RegionSpec(spec_id=SPEC_ID, fields=[field])


def decode_spec(message: table_pb2.RegionSpec) -> RegionSpec:
    """Read a spec; raise UnsupportedError for one that no release evaluates."""
    if len(message.fields) != 1:
        msg = f"region spec {message.spec_id} has {len(message.fields)} fields; one is supported"
        raise UnsupportedError(msg, spec=message.spec_id)
    (field,) = message.fields
    match field.transform:
        case "unsharded":
            return Unsharded()
        case "bucket":
            text = field.parameters.get(_NUM_BUCKETS, "")
            if not text.isdecimal() or not int(text):
                msg = f"region spec {message.spec_id} has {text!r} buckets"
                raise CorruptTableError(msg, spec=message.spec_id)
            return Bucketed(column=_source(message, field), buckets=int(text))
        case "identity":
            return ByValue(column=_source(message, field), result_type=field.result_type)
        case _:
            shown = field.transform or field.expression
            msg = f"region spec {message.spec_id} has the transform {shown!r}"
            action = "Supported transforms are unsharded, bucket and identity."
            raise UnsupportedError(msg, spec=message.spec_id, action=action)


def _source(message: table_pb2.RegionSpec, field: table_pb2.RegionField) -> FieldId:
    if len(field.source_ids) != 1:
        msg = f"region spec {message.spec_id} has {len(field.source_ids)} columns instead of one"
        raise CorruptTableError(msg, spec=message.spec_id)
    return FieldId(field.source_ids[0])


TYPE_URL = "/lance.table.MemWalIndexDetails"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexCatchup:
    """The generations whose rows an index of the table covers."""

    index_name: str
    generations: tuple[MergedGeneration, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemWalDetails:
    """Configuration, merged generations and index coverage."""

    num_regions: int = 0
    specs: tuple[table_pb2.RegionSpec, ...] = ()
    """Region specs as they are stored; `spec` reads one."""
    maintained_indexes: tuple[str, ...] = ()
    merged: tuple[MergedGeneration, ...] = ()
    index_catchup: tuple[IndexCatchup, ...] = ()
    writer_defaults: FrozenMap[str, str] = field(default_factory=FrozenMap)
    maintain_all_indexes: bool | None = None
    snapshot_ts_millis: int = 0
    inline_snapshots: bytes | None = None
    unknown: bytes = b""

    def spec(self) -> RegionSpec | None:
        """Return the region spec; None when regions are chosen by their writers."""
        if len(self.specs) > 1:
            raise CorruptTableError(f"the MemWAL has {len(self.specs)} region specs")
        return decode_spec(self.specs[0]) if self.specs else None

    def progress(self) -> dict[uuid.UUID, int]:
        """Return the last merged generation of each region."""
        return {mark.region_id: mark.generation for mark in self.merged}


def of_entry(entry: IndexMetadata) -> MemWalDetails:
    """Read the details of a MemWAL entry."""
    if entry.details is None:
        raise CorruptTableError("the MemWAL entry has no details")
    return decode(entry.details.value)


_CATCHUP = Codec(
    IndexCatchup,
    table_pb2.IndexCatchupProgress,
    names={"generations": "caught_up_generations"},
    generations=MERGED_GENERATION,
)
_DETAILS = Codec(
    MemWalDetails,
    table_pb2.MemWalIndexDetails,
    names={
        "specs": "region_specs",
        "merged": "merged_generations",
        "writer_defaults": "writer_config_defaults",
    },
    merged=MERGED_GENERATION,
    index_catchup=_CATCHUP,
)


def decode(data: bytes) -> MemWalDetails:
    """Read the details."""
    message = table_pb2.MemWalIndexDetails()
    parse(message, data, what="MemWAL details")
    return _DETAILS.decode(message)


def encode(details: MemWalDetails) -> IndexDetails:
    """Write the details."""
    value = _DETAILS.encode(details).SerializeToString(deterministic=True)
    return IndexDetails(type_url=TYPE_URL, value=value)
