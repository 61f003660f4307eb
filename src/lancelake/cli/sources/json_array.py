"""A JSON array of objects as a stream of lines, one object each."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from lancelake.errors import InvalidRequestError

_CHUNK = 1 << 20
_SPACE = " \t\r\n"
_BETWEEN = re.compile(r"[\s,]*")


def starts_array(head: bytes) -> bool:
    """Whether the first bytes of a file open an array."""
    return head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"[")


class ArrayLines(io.RawIOBase):
    """Reads an array of objects as lines; only one object and a chunk are in memory."""

    def __init__(self, file: BinaryIO) -> None:
        """Read from a file that is positioned at its begin."""
        super().__init__()
        self._text = io.TextIOWrapper(file, encoding="utf-8-sig")
        self._lines = (json.dumps(item).encode() + b"\n" for item in _items(self._text))
        self._left = b""

    def readable(self) -> bool:
        """Whether this is readable: it is."""
        return True

    def readinto(self, buffer: Any) -> int:  # any writable buffer
        """Read the next bytes."""
        if not self._left:
            self._left = next(self._lines, b"")
        length = min(len(buffer), len(self._left))
        buffer[:length] = self._left[:length]
        self._left = self._left[length:]
        return length


def _items(text: io.TextIOWrapper) -> Iterator[object]:
    decoder = json.JSONDecoder()
    pending = text.read(_CHUNK).lstrip(_SPACE)
    at = 1
    while True:
        at = _BETWEEN.match(pending, at).end()  # type: ignore[union-attr]  # it matches anywhere
        if pending.startswith("]", at):
            return
        try:
            item, at = decoder.raw_decode(pending, at)
        except json.JSONDecodeError as error:
            more = text.read(max(_CHUNK, len(pending) - at))
            if not more:
                raise InvalidRequestError(f"the JSON array is not valid: {error}") from error
            pending, at = pending[at:] + more, 0
            continue
        yield item
