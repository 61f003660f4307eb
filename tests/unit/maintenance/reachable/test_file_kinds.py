"""Files of a table are distinguished from unrelated files."""

from __future__ import annotations

import pytest

from lancelake.maintenance.reachable import FileKind, classify

INDEX = "0fadd253-a13b-43bb-ab48-10afbdc9fdf2"
BLOB = "10" * 16


@pytest.mark.parametrize(
    ("path", "kind", "known_as"),
    [
        ("data/a.lance", FileKind.DATA, "a.lance"),
        (f"data/a/{BLOB}.blob", FileKind.BLOB, "a.lance"),
        ("_deletions/3-7-99.arrow", FileKind.DELETION, "7-99"),
        ("_deletions/3-7-99.bin", FileKind.DELETION, "7-99"),
        (f"_indices/{INDEX}/part/page.lance", FileKind.INDEX, INDEX),
        (f"_transactions/3-{INDEX}.txn", FileKind.TRANSACTION, f"3-{INDEX}.txn"),
        ("_versions/.tmp_x", FileKind.TEMPORARY, ".tmp_x"),
        ("data/.tmpyXrnb7", FileKind.TEMPORARY, ".tmpyXrnb7"),
    ],
)
def test_files_are_known(path: str, kind: FileKind, known_as: str) -> None:
    assert classify(path) == (kind, known_as)


@pytest.mark.parametrize(
    "path",
    [
        "data/a.txt",
        "data/below/a.lance",
        "data/a/b.blob",
        f"data/data/a/{BLOB}.blob",
        "data/_versions/1.manifest",
        "_deletions/a.arrow",
        "_deletions/3-7-99.txt",
        "_indices/a/page.lance",
        f"_indices/{INDEX}",
        "_transactions/a.txn",
        "_transactions/3-a",
        "_versions/1.manifest",
        "_versions/x/.tmp",
        "tree/b/data/a.lance",
        "a.lance",
        "data/line\nbreak",
        "data/.tmp",
        "data/.tmp_notes",
    ],
)
def test_strangers_are_not(path: str) -> None:
    assert classify(path)[0] is FileKind.UNKNOWN
