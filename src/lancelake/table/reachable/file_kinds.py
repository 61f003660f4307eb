"""Kinds of files of a table, recognised by folder and name."""

from __future__ import annotations

import re
from enum import StrEnum

from lancelake.format import layout


class FileKind(StrEnum):
    """Purpose of a file."""

    MANIFEST = "manifest"
    TRANSACTION = "transaction"
    DATA = "data"
    BLOB = "blob"
    DELETION = "deletion"
    INDEX = "index"
    TEMPORARY = "temporary"
    UNKNOWN = "unknown"


FOLDERS = (layout.DATA, layout.DELETIONS, layout.INDICES, layout.TRANSACTIONS)
"""Folders of the files that versions refer to."""

_UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_BLOB = re.compile(r"([^/]+)/[01]{32}\.blob")
_DELETION = re.compile(r"\d+-(\d+-\d+)\.(?:arrow|bin)")
_INDEX = re.compile(rf"({_UUID})/.+", re.DOTALL)
_TRANSACTION = re.compile(r"\d+-[^/]+\.txn")
_UNFINISHED = ".tmp"
# The codec writes a local file under such a temporary name, and renames it when it is complete.
_UNFINISHED_DATA = re.compile(r"\.tmp[0-9A-Za-z]{6}")
_DATA_SUFFIX = ".lance"


def classify(path: str) -> tuple[FileKind, str]:
    """Return the kind of a file in one of the folders, and the name that versions refer to it by.

    Names that no writer generates have no known kind. A deletion file is identified by the numbers
    in its name except the fragment id, since they are random.
    """
    folder, _, name = path.partition("/")
    match folder:
        case layout.DATA:
            return _data(name)
        case layout.DELETIONS:
            return _matched(_DELETION, name, FileKind.DELETION)
        case layout.INDICES:
            return _matched(_INDEX, name, FileKind.INDEX)
        case layout.TRANSACTIONS if _TRANSACTION.fullmatch(name):
            return FileKind.TRANSACTION, name
        case layout.VERSIONS if name.startswith(_UNFINISHED) and "/" not in name:
            return FileKind.TEMPORARY, name
        case _:
            return FileKind.UNKNOWN, name


def _data(name: str) -> tuple[FileKind, str]:
    if "/" not in name and name.endswith(_DATA_SUFFIX):
        return FileKind.DATA, name
    if _UNFINISHED_DATA.fullmatch(name):
        return FileKind.TEMPORARY, name
    blob = _BLOB.fullmatch(name)
    if blob is None:
        return FileKind.UNKNOWN, name
    # The blobs of a data file are stored in a folder of the same name.
    return FileKind.BLOB, blob[1] + _DATA_SUFFIX


def _matched(pattern: re.Pattern[str], name: str, kind: FileKind) -> tuple[FileKind, str]:
    found = pattern.fullmatch(name)
    return (FileKind.UNKNOWN, name) if found is None else (kind, found[1])
