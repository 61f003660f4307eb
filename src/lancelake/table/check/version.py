"""Check one version."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from uuid import UUID

from lancelake.engine.port import Engine
from lancelake.format.schema import Field
from lancelake.table.check.data_files import check_data_files
from lancelake.table.check.deletions import Deletions, check_deletions
from lancelake.table.check.features import check_bases, check_features
from lancelake.table.check.finding import Finding
from lancelake.table.check.footers import check_footers
from lancelake.table.check.fragments import check_fragments
from lancelake.table.check.guard import guarded
from lancelake.table.check.indices import check_indices
from lancelake.table.check.row_ids import check_row_ids
from lancelake.table.check.schema import check_schema
from lancelake.table.check.subject import Subject
from lancelake.table.check.transactions import check_transaction

Group = Callable[[], Iterator[Finding]]


class VersionChecks:
    """Checks of the versions of one line, which share most of their files."""

    def __init__(
        self, *, data: bool, deletions: Deletions | None = None, engine: Engine | None = None
    ) -> None:
        """With `data`, the engine reads every value; `deletions` are those already known."""
        self._data = data
        self._engine = engine
        self._deletions = deletions or Deletions()
        self._seen_columns: set[tuple[Field, tuple[str, ...]]] = set()
        self._seen_segments: set[UUID] = set()

    def __call__(self, subject: Subject) -> Iterator[Finding]:
        """Run all checks on a version."""
        yield from _run(subject, self._groups(subject))

    def of_fragments(self, subject: Subject) -> Iterator[Finding]:
        """Run the checks of fragments and their files."""
        yield from _run(subject, self._fragment_groups(subject))

    def _fragment_groups(self, subject: Subject) -> dict[str, Group]:
        return {
            "fragments": lambda: check_fragments(subject),
            "data files": lambda: check_data_files(subject),
            "deletion files": lambda: check_deletions(subject, self._deletions),
        }

    def _groups(self, subject: Subject) -> dict[str, Group]:
        groups: dict[str, Group] = {
            "feature flags": lambda: check_features(subject),
            "base paths": lambda: check_bases(subject),
            "the schema": lambda: check_schema(subject),
            **self._fragment_groups(subject),
            "row ids": lambda: check_row_ids(subject, self._deletions),
            "indices": lambda: check_indices(subject),
            "the transaction": lambda: check_transaction(subject),
        }
        if self._data:
            groups["data file footers"] = lambda: check_footers(subject, self._engine)
            groups["values"] = lambda: self._values(subject)
            groups["index files"] = lambda: self._index_files(subject)
        return groups

    def _index_files(self, subject: Subject) -> Iterator[Finding]:
        from lancelake.table.check.index_files import (  # noqa: PLC0415  # loads the codec and SQL
            check_index_files,
        )

        return check_index_files(subject, self._seen_segments)

    def _values(self, subject: Subject) -> Iterator[Finding]:
        from lancelake.table.check.rows import (  # noqa: PLC0415  # loads the codec and SQL
            check_rows,
        )

        return check_rows(subject, self._seen_columns, self._engine)


def _run(subject: Subject, groups: dict[str, Group]) -> Iterator[Finding]:
    version, branch = subject.snapshot.version, subject.snapshot.branch
    for what, group in groups.items():
        yield from guarded(what, group, version=version, branch=branch)
