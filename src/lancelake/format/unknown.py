"""Fields of a newer writer: split off when decoding, put back when encoding."""

from __future__ import annotations

from google.protobuf.message import DecodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet

from lancelake.errors import CorruptTableError


def parse(message: Message, data: bytes, *, what: str) -> None:
    """Fill `message` from bytes, or say that `what` is damaged."""
    try:
        message.ParseFromString(data)
    except (DecodeError, RecursionError, ValueError) as error:
        msg = f"{what} cannot be decoded: {error}"
        raise CorruptTableError(msg, size_bytes=len(data)) from error


def unknown_bytes(message: Message) -> bytes:
    """Return the fields of `message` itself that this library has no name for."""
    if len(UnknownFieldSet(message)) == 0:
        return b""
    rest = type(message)()
    rest.CopyFrom(message)
    for descriptor, _ in rest.ListFields():
        rest.ClearField(descriptor.name)
    return rest.SerializeToString()


def restore_unknown(message: Message, data: bytes) -> None:
    """Put fields split off by `unknown_bytes` back into `message`."""
    if data:
        message.MergeFromString(data)
