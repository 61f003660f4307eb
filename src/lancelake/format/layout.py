"""Paths of a table's files, relative to its root."""

from __future__ import annotations

import uuid
from urllib.parse import quote, unquote

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
