"""Fragments as bytes, sent from workers to the driver."""

from __future__ import annotations

from collections.abc import Iterable

from google.protobuf.message import DecodeError

from lancelake.errors import CorruptTableError
from lancelake.format import fragment
from lancelake.format.fragment import Fragment
from lancelake.proto.transaction_pb2 import Transaction

_FORMAT = b"\x01"


def to_bytes(fragments: Iterable[Fragment]) -> bytes:
    """Encode fragments; the first byte is the format."""
    message = Transaction.Append(fragments=[fragment.encode(f) for f in fragments])
    return _FORMAT + message.SerializeToString()


def from_bytes(data: bytes) -> tuple[Fragment, ...]:
    """Decode the output of `to_bytes`."""
    if data[:1] != _FORMAT:
        raise CorruptTableError("fragments of a worker have an unknown format")
    try:
        message = Transaction.Append.FromString(data[1:])
    except DecodeError as error:
        raise CorruptTableError("fragments of a worker cannot be decoded") from error
    return tuple(fragment.decode(f) for f in message.fragments)
