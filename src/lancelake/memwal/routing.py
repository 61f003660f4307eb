"""Routing: the region of each row, by the table's region spec."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lancelake.errors import CorruptTableError, InvalidRequestError
from lancelake.format.memwal import bucket_hash, key_bytes, names
from lancelake.format.memwal.region_manifest import RegionManifest
from lancelake.format.memwal.region_spec import (
    FIELD,
    SPEC_ID,
    Bucketed,
    ByValue,
    RegionSpec,
    Unsharded,
)
from lancelake.memwal.shape import RowShape


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """A region of a spec, and the value that its rows share as raw bytes."""

    id: uuid.UUID
    value: bytes

    def new_manifest(self) -> RegionManifest:
        """Return the state of the region before its first writer."""
        values = ((FIELD, self.value),)
        return RegionManifest(region_id=self.id, spec_id=SPEC_ID, field_values=values)


def region_of(spec: RegionSpec | None, region: uuid.UUID) -> RegionManifest:
    """Return the state before its first writer of a region that a caller named.

    The value of a region is recorded where its id reveals it.
    """
    match spec:
        case None:
            return RegionManifest(region_id=region)
        case Unsharded():
            known = {names.unsharded_region(): 0}
        case Bucketed():
            known = {names.bucket_region(n): n for n in range(spec.buckets)}
        case ByValue():
            known = {}
        case _:
            assert_never(spec)
    if region not in known:
        return RegionManifest(region_id=region, spec_id=SPEC_ID)
    return Region(id=region, value=known[region].to_bytes(4, "little")).new_manifest()


def routed(
    spec: RegionSpec | None, shape: RowShape, rows: pa.RecordBatch
) -> Iterator[tuple[Region, pa.RecordBatch]]:
    """Divide rows by region; rows of a region keep their order."""
    match spec:
        case None:
            raise InvalidRequestError("the MemWAL has no region spec: name the region of a writer")
        case Unsharded():
            value = (0).to_bytes(4, "little")
            yield Region(id=names.unsharded_region(), value=value), rows
        case Bucketed():
            numbers = bucket_hash.buckets(_source(spec, shape, rows), spec.buckets)
            for bucket in np.unique(numbers).tolist():
                region = Region(id=names.bucket_region(bucket), value=bucket.to_bytes(4, "little"))
                yield region, rows.filter(pa.array(numbers == bucket))
        case ByValue():
            source = _source(spec, shape, rows)
            for scalar in pc.unique(source):
                value = _raw(scalar)
                region = Region(id=names.identity_region(value), value=value)
                yield region, rows.filter(pc.equal(source, scalar))
        case _:
            assert_never(spec)


def _source(spec: Bucketed | ByValue, shape: RowShape, rows: pa.RecordBatch) -> pa.Array:
    field = next((f for f in shape.table.fields if f.id == spec.column), None)
    if field is None:
        raise CorruptTableError(
            f"the region spec refers to field {spec.column}, which does not exist"
        )
    if field.name not in shape.keys:
        # A row could then leave its region, and its earlier value would come back.
        msg = f"column {field.name} chooses the region of a row, but is not part of the key"
        raise InvalidRequestError(msg, column=field.name)
    return rows.column(field.name)


def _raw(scalar: pa.Scalar) -> bytes:
    kind, value = scalar.type, scalar.as_py()
    if key_bytes.is_text(kind):
        return bytes(value.encode())
    if pa.types.is_boolean(kind):
        return bytes([value])
    if pa.types.is_integer(kind):
        signed = bool(pa.types.is_signed_integer(kind))
        return int(value).to_bytes(kind.bit_width // 8, "little", signed=signed)
    raise InvalidRequestError(f"a column of type {kind} cannot choose a region")
