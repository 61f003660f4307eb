"""Names and paths of MemWAL files, relative to the root of the table."""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Callable

from lancelake.errors import CorruptTableError

ROOT = "_mem_wal"
BLOOM_FILE = "bloom_filter.bin"
KEY_INDEX = "_pk_index"

ParseName = Callable[[str], int | None]
"""Returns the number in a file's name; None for other files."""

_GENERATION_DIR = re.compile(r"[0-9a-f]{8}_gen_(\d{1,19})")
_BITS = 64
_MANIFEST_SUFFIX = ".binpb"
_WAL_SUFFIX = ".arrow"
# LanceDB derives region ids from the names of their values in this namespace.
_NAMESPACE = uuid.UUID(bytes=b"LSMWRITE_SHARD01")


def region_dir(region: uuid.UUID) -> str:
    """Folder of a region."""
    return f"{ROOT}/{region}"


def parse_region_dir(name: str) -> uuid.UUID | None:
    """Return the region of a folder below `_mem_wal`; None when it is not one of a region."""
    try:
        found = uuid.UUID(name)
    except ValueError:
        return None
    return found if str(found) == name else None


def manifest_dir(region: uuid.UUID) -> str:
    """Folder of the manifests of a region."""
    return f"{region_dir(region)}/manifest"


def manifest(region: uuid.UUID, version: int) -> str:
    """Path of a manifest."""
    return f"{manifest_dir(region)}/{_reversed(version)}{_MANIFEST_SUFFIX}"


def version_hint(region: uuid.UUID) -> str:
    """Path of the hint at the newest manifest."""
    return f"{manifest_dir(region)}/version_hint.json"


def wal_dir(region: uuid.UUID) -> str:
    """Folder of the WAL entries of a region."""
    return f"{region_dir(region)}/wal"


def wal_entry(region: uuid.UUID, position: int) -> str:
    """Path of a WAL entry."""
    return f"{wal_dir(region)}/{_reversed(position)}{_WAL_SUFFIX}"


def parse_manifest(name: str) -> int | None:
    """Return the version of a manifest's file name; None for other files."""
    return _parsed(name, _MANIFEST_SUFFIX)


def parse_wal_entry(name: str) -> int | None:
    """Return the position of a WAL entry's file name; None for other files."""
    return _parsed(name, _WAL_SUFFIX)


def new_generation_dir(unique: int, generation: int) -> str:
    """Return the name of a generation's folder; `unique` is a random number."""
    return f"{unique & 0xFFFFFFFF:08x}_gen_{generation}"


def parse_generation_dir(name: str) -> int | None:
    """Return the generation of a folder's name; None for other folders."""
    found = _GENERATION_DIR.fullmatch(name)
    return None if found is None else int(found[1])


def generation_dir(region: uuid.UUID, path: str) -> str:
    """Folder of a generation, whose path a manifest has."""
    if not path or path in (".", "..") or "/" in path or "\\" in path or "\0" in path:
        msg = f"the manifest of region {region} has the invalid generation path {path!r}"
        raise CorruptTableError(msg, path=path)
    return f"{region_dir(region)}/{path}"


def bucket_region(bucket: int) -> uuid.UUID:
    """Return the region of a bucket."""
    return _named(f"bucket-{bucket}".encode())


def identity_region(value: bytes) -> uuid.UUID:
    """Return the region of a value, given as little-endian or UTF-8 bytes."""
    return _named(b"identity-" + value)


def unsharded_region() -> uuid.UUID:
    """Return the only region of a table that is not sharded."""
    return _named(b"unsharded")


def _named(name: bytes) -> uuid.UUID:
    # uuid5 takes text, and values may be any bytes.
    digest = hashlib.sha1(_NAMESPACE.bytes + name, usedforsecurity=False).digest()
    return uuid.UUID(bytes=digest[:16], version=5)


def _reversed(number: int) -> str:
    return format(number, f"0{_BITS}b")[::-1]


def _parsed(name: str, suffix: str) -> int | None:
    stem = name.removesuffix(suffix)
    if stem == name or len(stem) != _BITS or set(stem) - {"0", "1"}:
        return None
    return int(stem[::-1], 2)
