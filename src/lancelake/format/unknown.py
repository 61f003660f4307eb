"""Unknown protobuf fields of newer writers, preserved by decoding and encoding."""

from __future__ import annotations

from google.protobuf.message import DecodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet

from lancelake.errors import CorruptTableError


def parse(message: Message, data: bytes, *, what: str) -> None:
    """Decode `message` from bytes, or raise that `what` cannot be decoded."""
    try:
        message.ParseFromString(data)
    except (DecodeError, RecursionError, ValueError) as error:
        msg = f"{what} cannot be decoded: {error}"
        raise CorruptTableError(msg, size_bytes=len(data)) from error


def unknown_bytes(message: Message) -> bytes:
    """Return the unknown fields of `message` itself."""
    if len(UnknownFieldSet(message)) == 0:
        return b""
    rest = type(message)()
    rest.CopyFrom(message)
    for descriptor, _ in rest.ListFields():
        rest.ClearField(descriptor.name)
    return rest.SerializeToString()


def restore_unknown(message: Message, data: bytes) -> None:
    """Add fields returned by `unknown_bytes` to `message`."""
    if data:
        message.MergeFromString(data)
