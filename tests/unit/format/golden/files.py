"""Read access to recorded bytes of official releases."""

from __future__ import annotations

from pathlib import Path

from lancelake.format import manifest_codec, transaction
from lancelake.format.manifest_codec import ManifestFile
from lancelake.format.transaction import Transaction

HERE = Path(__file__).parent
RELEASES = ("4.0.2", "14.0.2")
STEPS = tuple(sorted(p.stem for p in (HERE / "4.0.2").glob("*.manifest")))


def read(release: str, name: str) -> bytes:
    """Return the bytes of one file."""
    return (HERE / release / name).read_bytes()


def manifest(release: str, step: str) -> ManifestFile:
    """Return the manifest that the step left."""
    return manifest_codec.decode(read(release, f"{step}.manifest"))


def committed(release: str, step: str) -> Transaction:
    """Return the transaction of the step."""
    return transaction.decode(read(release, f"{step}.txn"))
