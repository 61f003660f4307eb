"""Read access to recorded bytes of official releases."""

from __future__ import annotations

from pathlib import Path

from lancelake.format.manifest import ManifestFile, decode_manifest
from lancelake.format.operations import Transaction, decode_transaction

HERE = Path(__file__).parent
RELEASES = ("4.0.2", "14.0.2")
STEPS = tuple(sorted(p.stem for p in (HERE / "4.0.2").glob("*.manifest")))


def read(release: str, name: str) -> bytes:
    """Return the bytes of one file."""
    return (HERE / release / name).read_bytes()


def manifest(release: str, step: str) -> ManifestFile:
    """Return the manifest that the step left."""
    return decode_manifest(read(release, f"{step}.manifest"))


def committed(release: str, step: str) -> Transaction:
    """Return the transaction of the step."""
    return decode_transaction(read(release, f"{step}.txn"))
