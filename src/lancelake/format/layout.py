"""Places and names of a table's files."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from enum import Enum
from urllib.parse import quote, unquote

from lancelake.errors import InvalidNameError
from lancelake.format.ids import Version

VERSIONS = "_versions"
TRANSACTIONS = "_transactions"
DATA = "data"
DELETIONS = "_deletions"
INDICES = "_indices"
TAGS = "_refs/tags"
BRANCHES = "_refs/branches"
TREE = "tree"
DAMAGED = "_damaged"

VERSION_HINT = f"{VERSIONS}/latest_version_hint.json"


def manifest(name: str) -> str:
    """Path of a manifest file."""
    return f"{VERSIONS}/{name}"


def transaction(name: str) -> str:
    """Path of a transaction file."""
    return f"{TRANSACTIONS}/{name}"


def data_file(path: str) -> str:
    """Path of a data file."""
    return f"{DATA}/{path}"


def deletion_file(*, fragment_id: int, read_version: int, unique: int, suffix: str) -> str:
    """Path of a deletion file."""
    return f"{DELETIONS}/{fragment_id}-{read_version}-{unique}.{suffix}"


def index_dir(unique: uuid.UUID) -> str:
    """Folder of one index segment."""
    return f"{INDICES}/{unique}"


def tag(name: str) -> str:
    """Path of a tag document."""
    return f"{TAGS}/{quote(name, safe='')}.json"


def tag_name(file_name: str) -> str:
    """Inverse of `tag`, from the bare file name."""
    return unquote(file_name.removesuffix(".json"))


def branch(name: str) -> str:
    """Path of a branch document."""
    return f"{BRANCHES}/{quote(name, safe='')}.json"


def branch_name(file_name: str) -> str:
    """Inverse of `branch`, from the bare file name."""
    return unquote(file_name.removesuffix(".json"))


def branch_root(name: str) -> str:
    """Root of a branch, itself a complete table."""
    return f"{TREE}/{name}"


_MAX_U64 = (1 << 64) - 1
_MANIFEST_SUFFIX = ".manifest"
_V2_NAME_LENGTH = 29


class ManifestNaming(Enum):
    """The two generations of manifest file names."""

    V1 = "V1"
    V2 = "V2"


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestName:
    """A parsed manifest file name."""

    name: str
    version: Version
    naming: ManifestNaming


def manifest_name(version: int, naming: ManifestNaming) -> str:
    """Return the file name of a version under `_versions/`."""
    if is_detached(version):
        return f"d{version}{_MANIFEST_SUFFIX}"
    if naming is ManifestNaming.V2:
        return f"{_MAX_U64 - version:020d}{_MANIFEST_SUFFIX}"
    return f"{version}{_MANIFEST_SUFFIX}"


def parse_manifest_name(name: str) -> ManifestName | None:
    """Parse a file name; None when it is not a manifest."""
    if not name.endswith(_MANIFEST_SUFFIX):
        return None
    stem = name.removesuffix(_MANIFEST_SUFFIX)
    digits = stem.removeprefix("d")
    if not (digits.isascii() and digits.isdigit()):
        return None
    number = int(digits)
    if number > _MAX_U64:
        return None
    if stem.startswith("d"):
        if not is_detached(number):
            return None
        return ManifestName(name=name, version=Version(number), naming=ManifestNaming.V2)
    if len(name) == _V2_NAME_LENGTH:
        if is_detached(_MAX_U64 - number):
            return None
        return ManifestName(name=name, version=Version(_MAX_U64 - number), naming=ManifestNaming.V2)
    return ManifestName(name=name, version=Version(number), naming=ManifestNaming.V1)


def data_file_name(unique: uuid.UUID) -> str:
    """Return a data file name whose prefix spreads over object store partitions."""
    prefix = f"{int.from_bytes(unique.bytes[:3], 'big'):024b}"
    return f"{prefix}{unique.bytes[3:].hex()}.lance"


def transaction_file_name(read_version: int, unique: str) -> str:
    """Return the file name of a transaction under `_transactions/`."""
    return f"{read_version}-{unique}.txn"


def ensure_tag_name(name: str) -> None:
    """Raise unless `name` is a valid tag name."""
    if not name:
        _refuse(name, "a tag name must not be empty")
    _ensure_characters(name, "tag")
    if name.startswith(".") or name.endswith((".", ".lock")) or ".." in name:
        _refuse(name, "a tag name must not start or end with '.', contain '..' or end in '.lock'")


def ensure_branch_name(name: str) -> None:
    """Raise unless `name` is a valid branch name; segments are separated by slashes."""
    if not name or name == "main":
        _refuse(name, "a branch name must not be empty or 'main'")
    if name.startswith("/") or name.endswith("/") or "//" in name or "\\" in name:
        _refuse(name, "a branch name must not have empty segments or backslashes")
    for segment in name.split("/"):
        _ensure_characters(segment, "branch")
        if segment == ".":
            _refuse(name, "a branch name must not have the segment '.'")
    if ".." in name or name.endswith(".lock"):
        _refuse(name, "a branch name must not contain '..' or end in '.lock'")


def _ensure_characters(part: str, kind: str) -> None:
    if not all(ch.isalnum() or ch in ".-_" for ch in part):
        _refuse(part, f"a {kind} name takes letters, digits, '.', '-' and '_' only")


def _refuse(name: str, rule: str) -> None:
    msg = f"{name!r} is not a valid name: {rule}"
    raise InvalidNameError(msg, name=name)


DETACHED_BIT = 1 << 63


def is_detached(version: int) -> bool:
    """Whether a version is detached, that is, outside the main line."""
    return bool(version & DETACHED_BIT)
