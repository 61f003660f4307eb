"""Detect access to files and ports that a table must not reach."""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

# IN_ACCESS, IN_MODIFY, IN_ATTRIB, IN_OPEN, IN_CREATE, IN_DELETE, IN_MOVED_FROM, IN_MOVED_TO
_EVENTS = 0x1 | 0x2 | 0x4 | 0x20 | 0x100 | 0x200 | 0x40 | 0x80
_EVENT = struct.Struct("iIII")
_libc = ctypes.CDLL(None, use_errno=True)


class WatchedFolder:
    """A folder whose every access is seen, whichever process and language it comes from."""

    def __init__(self, folder: Path) -> None:
        self._fd = _libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if _libc.inotify_add_watch(self._fd, os.fsencode(folder), _EVENTS) < 0:
            raise OSError(ctypes.get_errno(), "inotify_add_watch")

    def seen(self) -> list[str]:
        """Return the names that were touched since the last call."""
        names = []
        with contextlib.suppress(BlockingIOError):
            while data := os.read(self._fd, 1 << 16):
                while data:
                    _, mask, _, length = _EVENT.unpack_from(data)
                    name = data[_EVENT.size : _EVENT.size + length].rstrip(b"\0").decode()
                    names.append(f"{name} ({mask:#x})")
                    data = data[_EVENT.size + length :]
        return names

    def close(self) -> None:
        os.close(self._fd)


class Listener:
    """A port on loopback that counts who connects, and hangs up."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.callers = 0
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                caller, _ = self._socket.accept()
                self.callers += 1
                caller.close()

    def close(self) -> None:
        self._socket.close()


@contextlib.contextmanager
def watched(folder: Path) -> Iterator[tuple[WatchedFolder, Listener]]:
    """Watch a folder, and listen, as long as the block runs."""
    seen, listener = WatchedFolder(folder), Listener()
    try:
        yield seen, listener
    finally:
        seen.close()
        listener.close()
