"""Initialization of a MemWAL: its entry in the table's index section."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

import pyarrow as pa

from lancelake.commit.snapshot import Snapshot, names_table
from lancelake.errors import AlreadyExistsError, InvalidRequestError
from lancelake.format.arrow_schema import storage_field
from lancelake.format.frozen import FrozenMap
from lancelake.format.ids import Version
from lancelake.format.index_meta import MEM_WAL, IndexMetadata
from lancelake.format.memwal import bucket_hash, details, key_bytes, region_spec
from lancelake.format.memwal.details import MemWalDetails
from lancelake.format.memwal.region_spec import Bucketed, ByValue, RegionSpec, Unsharded
from lancelake.format.operations import CreateIndex
from lancelake.format.schema import Field
from lancelake.memwal.carry import carried
from lancelake.memwal.shape import RowShape
from lancelake.table.publish import DEFAULT_CHOICES, CommitChoices, new_transaction, publish

_NS_PER_MS = 1_000_000


def bucketed(base: Snapshot, column: str, buckets: int) -> Bucketed:
    """Return the spec of rows by the hash of a key column."""
    field = _key_column(base, column)
    bucket_hash.hashes(pa.array([], storage_field(field).type))
    return Bucketed(column=field.id, buckets=buckets)


def by_value(base: Snapshot, column: str) -> ByValue:
    """Return the spec of rows by the value of a key column."""
    field = _key_column(base, column)
    kind = storage_field(field).type
    if key_bytes.is_binary(kind):
        raise InvalidRequestError(f"column {column} of type {kind} cannot choose a region")
    return ByValue(column=field.id, result_type=_arrow_name(kind))


@names_table
def initialize(
    base: Snapshot,
    spec: RegionSpec | None,
    choices: CommitChoices = DEFAULT_CHOICES,
    *,
    writer_defaults: Mapping[str, str] | None = None,
    maintain_all_indexes: bool = False,
) -> Snapshot:
    """Add a MemWAL to a table; without a spec, writers choose regions themselves.

    `maintain_all_indexes` asks writers of official releases to index the rows of generations.
    """
    if any(index.name == MEM_WAL for index in base.indices):
        raise AlreadyExistsError("the table already has a MemWAL")
    RowShape.of(base)
    merged = carried(base)
    around = choices.surroundings
    entry = IndexMetadata(
        uuid=around.ids.uuid4(),
        name=MEM_WAL,
        fields=(),
        dataset_version=Version(base.version),
        details=details.encode(
            replace(
                _details(spec),
                merged=merged,
                maintain_all_indexes=maintain_all_indexes,
                writer_defaults=FrozenMap(dict(writer_defaults or {})),
            )
        ),
        index_version=0,
        created_at_ms=around.clock.now_ns() // _NS_PER_MS,
    )
    operation = CreateIndex(new_indices=(entry,))
    return publish(base, new_transaction(operation, base.version, choices), choices)


def details_of(base: Snapshot) -> MemWalDetails:
    """Return the MemWAL details of a version; raise for a table without a MemWAL."""
    entry = next((i for i in base.indices if i.name == MEM_WAL), None)
    if entry is None:
        raise InvalidRequestError(
            "the table has no MemWAL", table=base.location.uri, version=base.version
        )
    return details.of_entry(entry)


def _details(spec: RegionSpec | None) -> MemWalDetails:
    match spec:
        case None:
            return MemWalDetails()
        case Unsharded():
            regions = 1
        case Bucketed():
            regions = spec.buckets
        case ByValue():
            regions = 0
        case _:
            assert_never(spec)
    return MemWalDetails(num_regions=regions, specs=(region_spec.encode(spec),))


def _key_column(base: Snapshot, column: str) -> Field:
    """Find a column that chooses the region; rows of one key must be in one region."""
    found = next((f for f in base.manifest.schema.primary_key() if f.name == column), None)
    if found is None:
        raise InvalidRequestError(
            f"column {column} cannot choose the region of a row: it is not part of the primary key",
            table=base.location.uri,
            column=column,
        )
    return found


def _arrow_name(kind: pa.DataType) -> str:
    return {"string": "utf8", "large_string": "large_utf8", "bool": "boolean"}.get(
        str(kind), str(kind)
    )
