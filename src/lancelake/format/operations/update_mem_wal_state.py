"""UpdateMemWalState: progress of MemWAL regions."""

from __future__ import annotations

from dataclasses import dataclass

from lancelake.format import merged_generation
from lancelake.format.frozen import restore_unknown, unknown_bytes
from lancelake.format.merged_generation import MergedGeneration
from lancelake.proto.transaction_pb2 import Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateMemWalState:
    """Generations that are merged into the table."""

    merged_generations: tuple[MergedGeneration, ...]
    unknown: bytes = b""


def decode(message: Transaction.UpdateMemWalState) -> UpdateMemWalState:
    """Read the operation."""
    marks = tuple(merged_generation.decode(g) for g in message.merged_generations)
    return UpdateMemWalState(merged_generations=marks, unknown=unknown_bytes(message))


def encode(op: UpdateMemWalState) -> Transaction.UpdateMemWalState:
    """Write the operation."""
    marks = [merged_generation.encode(g) for g in op.merged_generations]
    message = Transaction.UpdateMemWalState(merged_generations=marks)
    restore_unknown(message, op.unknown)
    return message
