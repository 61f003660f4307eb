"""Envelope of messages between processes: wire format, release, payload.

Pickles name classes of the release that wrote them, and results are encoded by its rules. A driver
and a worker of different releases therefore reject each other's messages before reading them.
The layout of the header, `loads` and `unseal` must not change between
releases: an older or newer process uses them to detect that the releases differ.
"""

from __future__ import annotations

import pickle
from typing import Any

from lancelake.errors import ReleaseMismatchError
from lancelake.version import __version__

_MAGIC = b"lancelake-wire\x00"
_FORMAT = 1
_END = b"\x00"
_LONGEST_HEADER = 256


def dumps(value: object) -> bytes:
    """Pickle a value for another process of the same release."""
    return seal(pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL))


def loads(data: bytes) -> Any:
    """Read a value that another process wrote with `dumps`, or pickled and sealed."""
    return pickle.loads(unseal(data))


def seal(payload: bytes) -> bytes:
    """Prepend the wire format and the release to a payload."""
    return b"".join((_MAGIC, f"{_FORMAT} {__version__}".encode(), _END, payload))


def unseal(data: bytes) -> bytes:
    """Return the payload; raise when another release wrote it."""
    start = len(_MAGIC)
    end = data.find(_END, start, start + _LONGEST_HEADER)
    if not data.startswith(_MAGIC) or end < 0:
        raise ReleaseMismatchError(
            f"a message between the driver and a worker has no header that lancelake {__version__} "
            "knows",
            here=__version__,
        )
    header = data[start:end].decode(errors="replace")
    if header != f"{_FORMAT} {__version__}":
        number, _, release = header.partition(" ")
        raise ReleaseMismatchError(
            f"a message was written by lancelake {release} (wire format {number}), and this "
            f"process runs lancelake {__version__} (wire format {_FORMAT})",
            here=__version__,
            there=release,
        )
    return data[end + len(_END) :]
