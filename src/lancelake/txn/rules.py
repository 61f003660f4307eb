"""What rules of operations see and say: states of a table, verdicts, rebases."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import pyarrow as pa
from pyroaring import BitMap

from lancelake.format import operations as ops
from lancelake.format.fragment import DeletionFile, Fragment
from lancelake.format.frozen import FrozenMap
from lancelake.format.ids import FieldId, FragmentId, Version
from lancelake.format.index_meta import IndexMetadata
from lancelake.txn.key_bloom import KeyHashes
from lancelake.txn.options import BuildOptions, TableState

RowOffsets = bytes | tuple[int, ...]
"""Offsets of rows in a fragment: a portable Roaring bitmap, or the numbers."""

AffectedRows = FrozenMap[FragmentId, RowOffsets]
"""The rows that a change deletes or moves, by fragment."""


@dataclass(frozen=True, slots=True)
class Compatible:
    """Both changes are kept; with `needs_rebase`, mine must be rebased onto theirs."""

    needs_rebase: bool = False


@dataclass(frozen=True, slots=True)
class Retryable:
    """Mine must be made again on a version that includes theirs."""

    reason: str


@dataclass(frozen=True, slots=True)
class Incompatible:
    """Mine cannot be applied after theirs."""

    reason: str


Verdict = Compatible | Retryable | Incompatible

Relevant = (
    ops.Append
    | ops.Clone
    | ops.CreateIndex
    | ops.DataReplacement
    | ops.Delete
    | ops.Merge
    | ops.Overwrite
    | ops.Project
    | ops.Restore
    | ops.Rewrite
    | ops.Update
    | ops.UpdateBases
    | ops.UpdateConfig
    | ops.UpdateMemWalState
)
"""Operations that may conflict with another that is committed after them."""

OK = Compatible()
REBASE = Compatible(needs_rebase=True)


class KeyPort(Protocol):
    """Access to the key columns of rows that another commit added."""

    def key_columns(
        self, fragments: Sequence[Fragment], field_ids: Sequence[FieldId], state: TableState
    ) -> Iterator[Sequence[pa.Array]]:
        """Yield the columns of these fields, batch by batch; `state` is after that commit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Context of a conflict check besides the two operations.

    `base` is the version mine is based on, `theirs_after` the version of their commit.
    `affected_rows` are the rows mine deletes or moves, None when unknown. `fragment_reuse` is
    the entry that my compaction adds. `inserted_keys` are the keys that mine inserts, None when
    only the recorded filter is known. Without a `key_port`, rows added by theirs cannot be read.
    """

    base: TableState
    theirs_after: TableState
    affected_rows: AffectedRows | None = None
    fragment_reuse: IndexMetadata | None = None
    inserted_keys: KeyHashes | None = None
    key_port: KeyPort | None = None


class RebasePort(Protocol):
    """Access to deletion files for a rebase."""

    def load_deletions(self, fragment: Fragment) -> BitMap:
        """Read the deleted rows of a fragment; none when it has no deletion file."""

    def store_deletions(
        self, fragment_id: FragmentId, rows: BitMap, read_version: Version
    ) -> DeletionFile:
        """Write all deleted rows of a fragment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebasing:
    """Versions between which mine is rebased, and access to deletion files."""

    base: TableState
    head: TableState
    affected_rows: AffectedRows | None
    port: RebasePort


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionTarget:
    """The next version before the operation is applied."""

    version: Version
    transaction_uuid: str
    options: BuildOptions
    restored: TableState | None = None


Op = TypeVar("Op")


def _made_again(op: Op, context: Context) -> Verdict:  # noqa: ARG001  # one shape for all
    """Require that an operation is made again: what it is based on may have changed."""
    return Retryable("its changes are not known")


def always_valid(op: Op, context: Context) -> Verdict:  # noqa: ARG001  # one shape for all
    """Keep an operation that does not depend on what was read."""
    return OK


def _unchanged(op: Op, rebasing: Rebasing) -> Op | Retryable:  # noqa: ARG001  # one shape for all
    """Rebase an operation without changes."""
    return op


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules(Generic[Op]):
    """How an operation is applied, checked for conflicts and rebased.

    `unseen` is the verdict when the commits in between are not known, because they were cleaned up:
    whether the operation would be the same if it were made on the version after them.
    """

    apply: Callable[[Op, TableState, VersionTarget], TableState]
    conflicts: Callable[[Op, Relevant, Context], Verdict]
    rebase: Callable[[Op, Rebasing], Op | Retryable] = _unchanged
    unseen: Callable[[Op, Context], Verdict] = _made_again
