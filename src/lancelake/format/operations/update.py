"""Update: rows moved to new fragments, or columns rewritten in place."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from lancelake.errors import CorruptTableError, UnsupportedError
from lancelake.format import fragment, merged_generation, primary_key
from lancelake.format.fragment import Fragment
from lancelake.format.frozen import restore_unknown, unknown_bytes
from lancelake.format.ids import FieldId, FragmentId
from lancelake.format.merged_generation import MergedGeneration
from lancelake.format.primary_key import KeyExistenceFilter
from lancelake.proto.transaction_pb2 import Transaction


class UpdateMode(Enum):
    """How updated values were written."""

    REWRITE_ROWS = 0
    REWRITE_COLUMNS = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """Rows that were updated, inserted or deleted."""

    removed_fragment_ids: tuple[FragmentId, ...] = ()
    updated_fragments: tuple[Fragment, ...] = ()
    new_fragments: tuple[Fragment, ...] = ()
    fields_modified: tuple[FieldId, ...] = ()
    merged_generations: tuple[MergedGeneration, ...] = ()
    fields_for_preserving_frag_bitmap: tuple[FieldId, ...] = ()
    update_mode: UpdateMode = UpdateMode.REWRITE_ROWS
    inserted_rows: KeyExistenceFilter | None = None
    unknown: bytes = b""


def decode(message: Transaction.Update) -> Update:
    """Read the operation."""
    keys = message.inserted_rows if message.HasField("inserted_rows") else None
    preserved = (FieldId(f) for f in message.fields_for_preserving_frag_bitmap)
    return Update(
        removed_fragment_ids=tuple(FragmentId(i) for i in message.removed_fragment_ids),
        updated_fragments=tuple(fragment.decode(f) for f in message.updated_fragments),
        new_fragments=tuple(fragment.decode(f) for f in message.new_fragments),
        fields_modified=tuple(FieldId(f) for f in message.fields_modified),
        merged_generations=tuple(merged_generation.decode(g) for g in message.merged_generations),
        fields_for_preserving_frag_bitmap=tuple(preserved),
        update_mode=_decode_mode(message.update_mode),
        inserted_rows=None if keys is None else primary_key.decode(keys),
        unknown=unknown_bytes(message),
    )


def encode(op: Update) -> Transaction.Update:
    """Write the operation."""
    message = Transaction.Update(
        removed_fragment_ids=op.removed_fragment_ids,
        updated_fragments=[fragment.encode(f) for f in op.updated_fragments],
        new_fragments=[fragment.encode(f) for f in op.new_fragments],
        fields_modified=_unsigned(op.fields_modified),
        merged_generations=[merged_generation.encode(g) for g in op.merged_generations],
        fields_for_preserving_frag_bitmap=_unsigned(op.fields_for_preserving_frag_bitmap),
        update_mode=Transaction.UpdateMode.Name(op.update_mode.value),
    )
    if op.inserted_rows is not None:
        message.inserted_rows.CopyFrom(primary_key.encode(op.inserted_rows))
    restore_unknown(message, op.unknown)
    return message


def _unsigned(ids: tuple[FieldId, ...]) -> tuple[FieldId, ...]:
    """Refuse field ids that the message cannot encode."""
    negative = [i for i in ids if i < 0]
    if negative:
        problem = f"the schema has a field with id {negative[0]}, which a transaction cannot encode"
        raise CorruptTableError(problem, id=negative[0])
    return ids


def _decode_mode(value: int) -> UpdateMode:
    try:
        return UpdateMode(value)
    except ValueError as error:
        msg = f"unknown update mode {value}"
        raise UnsupportedError(msg, found=value) from error
