"""Interfaces of datasets and fragments for other classes of the face."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import pyarrow as pa

from lancelake.commit.locked import CommitLock
from lancelake.commit.snapshot import Snapshot
from lancelake.format.fragment import Fragment
from lancelake.format.ids import FragmentId
from lancelake.table.publish import CommitChoices


class OpenedDataset(Protocol):
    """A table at a version: `LanceDataset`."""

    _snapshot: Snapshot
    _lock: CommitLock | None

    @property
    def uri(self) -> str:
        """The location of the table, as the user specified it."""
        ...

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema."""
        ...

    @property
    def _choices(self) -> CommitChoices: ...

    def _fragments(self) -> Mapping[FragmentId, Fragment]: ...


class OpenedFragment(Protocol):
    """A fragment of a version: `LanceFragment`."""

    @property
    def fragment_id(self) -> FragmentId:
        """The id of the fragment."""
        ...
