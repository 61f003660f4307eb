"""Tables with strings that are not UTF-8, which no writer makes; and such strings in memory."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa

TEXTS = (b"ok", b"\xff\x00", None, b"a\xc3", b"", "\u00fc\u20ac".encode(), b"x" * 40)
REPLACED = ("ok", "\ufffd\x00", None, "a\ufffd", "", "\u00fc\u20ac", "x" * 40)


def with_text(binary: Path, root: Path, *, types: bytes = b"binary") -> Path:
    """Copy a table, and let all its binary columns be strings, or those of one type."""
    shutil.copytree(binary, root)
    for path in root.rglob("*"):
        if path.suffix in (".lance", ".manifest", ".txn"):
            # The names of types are the same in data files, and manifests; and equally long.
            path.write_bytes(path.read_bytes().replace(types, types.replace(b"binary", b"string")))
    return root


def binaries(*values: bytes | None, dtype: pa.DataType | None = None) -> pa.Array:
    """Return values that become strings with the table."""
    return pa.array(values, dtype or pa.binary())


def strings(*values: bytes | None, dtype: pa.DataType | None = None) -> pa.Array:
    """Return values as strings, unchecked."""
    dtype = dtype or pa.string()
    binary = pa.array(values, pa.large_binary() if dtype == pa.large_string() else pa.binary())
    return pa.Array.from_buffers(dtype, len(binary), binary.buffers(), binary.null_count)
