"""Tables as no writer leaves them, to be read and changed by every face."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyroaring import BitMap

import lancelake.pylance as lance
from lancelake.proto import table_pb2
from tests.support.table_surgery import edit_manifest

HINT = "_versions/latest_version_hint.json"
OPTIONS = "s3+ddb://bucket/x?ddbTableName=t&endpoint=http://127.0.0.1:1&allow_http=true"


def built(root: Path) -> Path:
    """Return a table of five rows in its third version; one row is deleted."""
    table = lance.write_dataset(pa.table({"id": [1, 2, 3], "n": [1, 2, 3]}), str(root))
    table.insert(pa.table({"id": [4, 5, 6], "n": [4, 5, 6]}))
    table.delete("id = 6")
    return root


@dataclass(frozen=True, slots=True, kw_only=True)
class Tampering:
    """A change of a table's files, and the errors of a read and of a delete where id is 1.

    An error is a pattern; None if the action succeeds.
    """

    apply: Callable[[Path], object]
    read: str | None
    delete: str | None


def _base_with_options(root: Path) -> None:
    def change(message: table_pb2.Manifest) -> None:
        base = message.base_paths.add()
        base.id, base.path, base.is_dataset_root = 1, OPTIONS, True
        for fragment in message.fragments:
            for file in fragment.files:
                file.base_id = 1

    edit_manifest(root, change)


def _all_rows_deleted(root: Path) -> None:
    rows = BitMap()
    rows.add_range(0, 1 << 32)
    rows.run_optimize()
    (file,) = (root / "_deletions").iterdir()
    file.with_suffix(".bin").write_bytes(bytes(rows.serialize()))

    def change(message: table_pb2.Manifest) -> None:
        for fragment in message.fragments:
            if fragment.HasField("deletion_file"):
                fragment.deletion_file.file_type = 1

    edit_manifest(root, change)


def _same_names(root: Path) -> None:
    def change(message: table_pb2.Manifest) -> None:
        message.fields[1].name = message.fields[0].name

    edit_manifest(root, change)


def _below_its_name(root: Path) -> None:
    def change(message: table_pb2.Manifest) -> None:
        message.version = 1

    edit_manifest(root, change)


def _piped_hint(root: Path) -> None:
    (root / HINT).unlink(missing_ok=True)
    os.mkfifo(root / HINT)


def _deep_hint(root: Path) -> None:
    (root / HINT).write_text("[" * 100_000)


TAMPERINGS = {
    "a base path with options": Tampering(
        apply=_base_with_options, read="has a query", delete="has a query"
    ),
    "a deletion file of more rows than the fragment has": Tampering(
        apply=_all_rows_deleted, read="deletion file cannot", delete="deletion file cannot"
    ),
    "two columns of one name": Tampering(
        apply=_same_names,
        read="Duplicate column name: id",
        delete="several columns have the name id|ambiguous",
    ),
    "a version below its file's name": Tampering(
        apply=_below_its_name, read=None, delete="states version 1"
    ),
    "a pipe as the version hint": Tampering(apply=_piped_hint, read=None, delete=None),
    "a deeply nested version hint": Tampering(apply=_deep_hint, read=None, delete=None),
}
