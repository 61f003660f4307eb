"""Task that writes new columns of one fragment to one additional data file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from lancelake.clock import SystemIds
from lancelake.data.column_file import ColumnFile
from lancelake.data.deletion_files import load_deletions
from lancelake.errors import LanceTableError
from lancelake.format.fragment import DataFile, Fragment
from lancelake.format.fragment_bytes import from_bytes, to_bytes
from lancelake.scan.count import physical_rows
from lancelake.scan.plan import ScanTask

_TASK_BYTES = 256 << 20


class Values(Protocol):
    """Source of values for a fragment's live rows; a frozen, picklable value."""

    @property
    def schema(self) -> pa.Schema:
        """Schema of all batches."""
        ...

    def batches(self, scan: ScanTask) -> Iterator[pa.RecordBatch]:
        """Yield the values in row order."""
        ...


class Keeper(Protocol):
    """Storage of results until they are committed."""

    def kept(self, scan: ScanTask) -> bytes | None:
        """Return the stored result of an earlier run over the same rows, if any."""
        ...

    def keep(self, scan: ScanTask, result: bytes) -> None:
        """Store the result of a run."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnTask:
    """One data file with new columns for the fragment of a scan."""

    scan: ScanTask
    values: Values
    file: ColumnFile
    keeper: Keeper | None = None

    @property
    def memory_bytes(self) -> int:
        """Estimated memory of a run."""
        return _TASK_BYTES

    def run(self) -> bytes:
        """Write the file and return its entry."""
        spec, fragment = self.scan.spec, self.scan.fragment
        kept = None if self.keeper is None else self.keeper.kept(self.scan)
        if kept is not None:
            return kept
        try:
            entry = self.file.write(
                self.values.batches(self.scan),
                self.values.schema,
                deleted=load_deletions(spec.files, fragment),
                physical_rows=physical_rows(spec.files, spec.manifest_at, fragment),
                ids=SystemIds(),
            )
        except LanceTableError as error:
            raise error.at(spec.files.root.uri, spec.version) from error.__cause__
        result = written(fragment, entry)
        if self.keeper is not None:
            self.keeper.keep(self.scan, result)
        return result


def written(fragment: Fragment, entry: DataFile | None) -> bytes:
    """Encode the file that was written for a fragment, if any."""
    return to_bytes([Fragment(id=fragment.id, files=() if entry is None else (entry,))])


def written_file(result: bytes) -> DataFile | None:
    """Decode the output of `written`."""
    (fragment,) = from_bytes(result)
    return fragment.files[0] if fragment.files else None
