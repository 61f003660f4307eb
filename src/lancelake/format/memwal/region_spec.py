"""Region specs: how rows are divided into regions."""

from __future__ import annotations

from dataclasses import dataclass

from lancelake.errors import CorruptTableError, InvalidRequestError, UnsupportedError
from lancelake.format.ids import FieldId
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


def encode(spec: RegionSpec) -> table_pb2.RegionSpec:
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


def decode(message: table_pb2.RegionSpec) -> RegionSpec:
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
