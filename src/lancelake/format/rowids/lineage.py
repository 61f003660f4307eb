"""Row versions: the version each row of a fragment was created or last updated in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lancelake.errors import CorruptTableError
from lancelake.format.rowids import codec
from lancelake.format.rowids.segment import U64Array

UNKNOWN_VERSION = 1


@dataclass(frozen=True, slots=True)
class VersionSequence:
    """Runs of row count and version, in row order."""

    runs: tuple[tuple[int, int], ...]

    @staticmethod
    def decode(data: bytes, *, physical_rows: int) -> VersionSequence:
        """Decode a sequence; rows after its end have the version of the last run."""
        runs = codec.decode_versions(data)
        covered = sum(count for count, _ in runs)
        if covered > physical_rows:
            msg = f"row versions for {covered} rows in a fragment of {physical_rows}"
            raise CorruptTableError(msg, found=covered, expected=physical_rows)
        if covered < physical_rows:
            last = runs[-1][1] if runs else UNKNOWN_VERSION
            runs = (*runs, (physical_rows - covered, last))
        return VersionSequence(runs)

    @staticmethod
    def constant(version: int, *, rows: int) -> VersionSequence:
        """The same version for all rows."""
        return VersionSequence(((rows, version),))

    def encode(self) -> bytes:
        """Write the sequence."""
        return codec.encode_versions(self.runs)

    def __len__(self) -> int:
        return sum(count for count, _ in self.runs)

    def values(self) -> U64Array:
        """The version of each row."""
        counts = [count for count, _ in self.runs]
        versions = np.array([version for _, version in self.runs], dtype=np.uint64)
        return np.repeat(versions, counts)
