"""Base paths: locations outside the table's root where its files may be stored."""

from __future__ import annotations

from dataclasses import dataclass

from lancelake.format.frozen import restore_unknown, unknown_bytes
from lancelake.format.ids import BaseId
from lancelake.proto import table_pb2


@dataclass(frozen=True, slots=True, kw_only=True)
class BasePath:
    """A declared base path."""

    id: BaseId
    name: str | None = None
    is_dataset_root: bool
    path: str
    unknown: bytes = b""


def decode(message: table_pb2.BasePath) -> BasePath:
    """Read a base path."""
    return BasePath(
        id=BaseId(message.id),
        name=message.name if message.HasField("name") else None,
        is_dataset_root=message.is_dataset_root,
        path=message.path,
        unknown=unknown_bytes(message),
    )


def encode(base: BasePath) -> table_pb2.BasePath:
    """Write a base path."""
    message = table_pb2.BasePath(
        id=base.id, name=base.name, is_dataset_root=base.is_dataset_root, path=base.path
    )
    restore_unknown(message, base.unknown)
    return message
