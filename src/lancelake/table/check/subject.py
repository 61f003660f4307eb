"""The version being checked, and what is known about its files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import LanceTableError
from lancelake.format.fragment import DataFile, Fragment
from lancelake.format.ids import BaseId, FragmentId
from lancelake.format.schema import Schema
from lancelake.storage.table_files import FileAt
from lancelake.table.check.file_sizes import FileSizes
from lancelake.table.check.finding import Finding, Severity

# Releases before this one wrote tables with known deviations that readers tolerate.
_FIRST_STRICT_RELEASE = (1, 0)


@dataclass(frozen=True)
class Subject:
    """A version to check."""

    snapshot: Snapshot
    sizes: FileSizes
    only: FragmentId | None = None
    """The fragment to check; None for all."""

    @cached_property
    def decoded(self) -> tuple[Fragment | LanceTableError, ...]:
        """Each fragment to check, or the error of decoding it."""
        every = tuple(self._fragment(i) for i in range(len(self.snapshot.manifest.fragments)))
        if self.only is None:
            return every
        return tuple(f for f in every if isinstance(f, Fragment) and f.id == self.only)

    @cached_property
    def fragments(self) -> tuple[Fragment, ...]:
        """The fragments that could be decoded."""
        return tuple(f for f in self.decoded if isinstance(f, Fragment))

    @cached_property
    def is_historic(self) -> bool:
        """Whether the writer is known for deviations that readers tolerate."""
        writer = self.snapshot.manifest.writer_version
        if writer is None:
            return True
        if writer.library != "lance" or not writer.release:
            return False
        return writer.release < _FIRST_STRICT_RELEASE

    @property
    def schema(self) -> Schema:
        """Schema of the version."""
        return self.snapshot.manifest.schema

    @property
    def strict(self) -> Severity:
        """Severity of violating a rule that historic writers violated."""
        return Severity.WARNING if self.is_historic else Severity.ERROR

    def has_base(self, base_id: BaseId | None) -> bool:
        """Whether a reference to this base can be resolved."""
        return base_id is None or self.snapshot.manifest.base_path(base_id) is not None

    def place(self, file: DataFile) -> FileAt | LanceTableError:
        """The location of a data file, or the error of resolving it."""
        try:
            return self.snapshot.files.data_file(file)
        except LanceTableError as error:
            return error

    def data_files(self) -> Iterator[tuple[Fragment, DataFile]]:
        """Yield each data file with its fragment."""
        for fragment in self.fragments:
            for file in fragment.files:
                yield fragment, file

    def error(
        self, code: str, message: str, *, path: str | None = None, hint: str | None = None
    ) -> Finding:
        """Return an error: something violates the format."""
        return self.finding(Severity.ERROR, code, message, path=path, hint=hint)

    def warning(
        self, code: str, message: str, *, path: str | None = None, hint: str | None = None
    ) -> Finding:
        """Return a warning: something needs attention."""
        return self.finding(Severity.WARNING, code, message, path=path, hint=hint)

    def info(
        self, code: str, message: str, *, path: str | None = None, hint: str | None = None
    ) -> Finding:
        """Return an info: something harmless."""
        return self.finding(Severity.INFO, code, message, path=path, hint=hint)

    def finding(
        self,
        severity: Severity,
        code: str,
        message: str,
        *,
        path: str | None = None,
        hint: str | None = None,
    ) -> Finding:
        """Return a finding about this version."""
        return Finding(
            severity=severity,
            code=code,
            message=message,
            version=self.snapshot.version,
            branch=self.snapshot.branch,
            path=path,
            hint=hint,
        )

    def _fragment(self, position: int) -> Fragment | LanceTableError:
        try:
            return self.snapshot.manifest.fragments[position]
        except LanceTableError as error:
            return error
