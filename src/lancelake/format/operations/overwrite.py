"""Overwrite: replaces the whole table, or creates it."""

from __future__ import annotations

from dataclasses import dataclass

from lancelake.format import bases, fragment, schema_codec
from lancelake.format.bases import BasePath
from lancelake.format.fragment import Fragment
from lancelake.format.frozen import FrozenMap, restore_unknown, unknown_bytes
from lancelake.format.schema import Schema
from lancelake.proto.transaction_pb2 import Transaction

_EMPTY: FrozenMap[str, str] = FrozenMap()


@dataclass(frozen=True, slots=True, kw_only=True)
class Overwrite:
    """The new fragments and schema."""

    fragments: tuple[Fragment, ...]
    schema: Schema
    config_upsert_values: FrozenMap[str, str] = _EMPTY
    initial_bases: tuple[BasePath, ...] = ()
    unknown: bytes = b""


def decode(message: Transaction.Overwrite) -> Overwrite:
    """Read the operation."""
    return Overwrite(
        fragments=tuple(fragment.decode(f) for f in message.fragments),
        schema=schema_codec.decode(message.schema, message.schema_metadata),
        config_upsert_values=FrozenMap(dict(message.config_upsert_values)),
        initial_bases=tuple(bases.decode(b) for b in message.initial_bases),
        unknown=unknown_bytes(message),
    )


def encode(op: Overwrite) -> Transaction.Overwrite:
    """Write the operation."""
    message = Transaction.Overwrite(
        fragments=[fragment.encode(f) for f in op.fragments],
        schema=schema_codec.encode(op.schema),
        schema_metadata=op.schema.metadata,
        config_upsert_values=op.config_upsert_values,
        initial_bases=[bases.encode(b) for b in op.initial_bases],
    )
    restore_unknown(message, op.unknown)
    return message
