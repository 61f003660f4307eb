"""DataReplacement: one column file replaced per fragment."""

from __future__ import annotations

from dataclasses import dataclass

from lancelake.format import fragment
from lancelake.format.fragment import DataFile
from lancelake.format.frozen import restore_unknown, unknown_bytes
from lancelake.format.ids import FragmentId
from lancelake.proto.transaction_pb2 import Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """The new file for its columns in one fragment."""

    fragment_id: FragmentId
    new_file: DataFile


@dataclass(frozen=True, slots=True, kw_only=True)
class DataReplacement:
    """Files that replace others."""

    replacements: tuple[Replacement, ...]
    unknown: bytes = b""


def decode(message: Transaction.DataReplacement) -> DataReplacement:
    """Read the operation."""
    replacements = (
        Replacement(
            fragment_id=FragmentId(r.fragment_id), new_file=fragment.decode_data_file(r.new_file)
        )
        for r in message.replacements
    )
    return DataReplacement(replacements=tuple(replacements), unknown=unknown_bytes(message))


def encode(op: DataReplacement) -> Transaction.DataReplacement:
    """Write the operation."""
    message = Transaction.DataReplacement()
    for each in op.replacements:
        message.replacements.add(
            fragment_id=each.fragment_id, new_file=fragment.encode_data_file(each.new_file)
        )
    restore_unknown(message, op.unknown)
    return message
