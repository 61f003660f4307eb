"""Catching up with concurrent commits: conflict checks and rebase onto the newest version."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from lancelake.commit.history import Landed, commits_after
from lancelake.commit.request import CommitRequest
from lancelake.commit.services import CommitServices
from lancelake.commit.snapshot import Snapshot
from lancelake.commit.version_line import VersionLine
from lancelake.errors import (
    ConflictError,
    IncompatibleConflictError,
    InvalidRequestError,
    RetryableConflictError,
    TableNotFoundError,
    VersionNotFoundError,
)
from lancelake.format.ids import is_detached
from lancelake.format.names import ManifestName
from lancelake.format.transaction import Transaction
from lancelake.txn import registry
from lancelake.txn.rules import Compatible, Context, Incompatible, Retryable

_UNRECORDED = "unknown"
# Reading so few commits takes no longer than an attempt, which finds newer commits as well.
_FEW = 2


class CatchUp:
    """A change between the version it was made from and the newest one.

    Each commit of another writer is checked for conflicts once.
    """

    def __init__(
        self,
        line: VersionLine,
        request: CommitRequest,
        services: CommitServices,
        base: Snapshot | None = None,
    ) -> None:
        """Start from `base`, or load the version that was read."""
        self._line = line
        self._request = request
        self._services = services
        self._needs_rebase = False
        self._fitted: Transaction | None = request.transaction
        self.judged = 0
        self.rebases = 0
        self.base = base or self._load_base()
        self.head = self.base
        self.head_kind = _UNRECORDED

    def catch_up(self) -> Landed | None:
        """Check all commits since the base; return the transaction's own if it is among them.

        A strict request is not checked: any commit in between makes it fail. More commits may
        land while many are read; those are read as well, because an attempt would fail.
        """
        while True:
            seen = self.head.version
            mine = self._caught_up_once()
            if mine is not None or self.head.version - seen <= _FEW:
                return mine

    def _caught_up_once(self) -> Landed | None:
        conflict: ConflictError | None = None
        for landed in self._commits():
            theirs = landed.transaction
            if theirs is not None and theirs.uuid == self._request.transaction.uuid:
                return landed
            if conflict is None and not self._request.is_strict:
                # The own commit may follow, made by an attempt that was further along.
                conflict = self._judged(landed)
            self.head = landed.snapshot
            self._fitted = None if self._needs_rebase else self._request.transaction
        if conflict is not None:
            raise conflict
        return None

    def fitted(self) -> Transaction:
        """Return the change rebased onto the newest version; computed once per version."""
        if self._fitted is None:
            self._fitted = self._rebased()
        return self._fitted

    def _load_base(self) -> Snapshot:
        """Load the version that was read; 0 means the newest."""
        version = self._request.transaction.read_version
        if is_detached(version):
            problem = "a commit to the main line cannot be based on a detached version"
            raise InvalidRequestError(problem, table=self._line.location.uri, version=version)
        newest = self._line.load(self._newest())
        if version in (0, newest.version):
            return newest
        found = self._line.handler.find(version)
        if found is None:
            problem = f"version {version} was not found; the latest is {newest.version}"
            raise VersionNotFoundError(problem, table=self._line.location.uri, version=version)
        return self._line.load(found)

    def _newest(self) -> ManifestName:
        name = self._line.handler.latest()
        if name is None:
            uri = self._line.location.uri
            raise TableNotFoundError(f"Dataset at path {uri} was not found", table=uri)
        return name

    def _commits(self) -> Iterator[Landed]:
        try:
            yield from commits_after(self._line, self.head.name, self._newest())
        except VersionNotFoundError as error:
            version = error.version or 0
            raise self._unjudged(version, f"version {version} no longer exists") from error

    def _judged(self, landed: Landed) -> ConflictError | None:
        theirs, version = landed.transaction, landed.snapshot.version
        if theirs is None:
            reason = f"Dataset version {version} does not have a transaction file"
            return self._unjudged(version, reason)
        self.judged += 1
        self.head_kind = type(theirs.operation).__name__
        mine = self._request.transaction.operation
        verdict = registry.conflicts(mine, theirs.operation, self._context(landed.snapshot))
        match verdict:
            case Compatible(needs_rebase):
                self._needs_rebase = self._needs_rebase or needs_rebase
                return None
            case Retryable(reason):
                return self._conflict(RetryableConflictError, version, reason)
            case Incompatible(reason):
                return self._conflict(IncompatibleConflictError, version, reason)
            case _:
                assert_never(verdict)

    def _rebased(self) -> Transaction:
        self.rebases += 1
        fitted = registry.rebase(
            self._request.transaction,
            self.head.state,
            base=self.base.state,
            affected_rows=self._request.choices.affected_rows,
            port=self._services.port,
        )
        if isinstance(fitted, Retryable):
            raise self._conflict(RetryableConflictError, self.head.version, fitted.reason)
        return fitted

    def _context(self, after: Snapshot) -> Context:
        return Context(
            base=self.base.state,
            theirs_after=after.state,
            affected_rows=self._request.choices.affected_rows,
            fragment_reuse=self._request.choices.fragment_reuse,
            inserted_keys=self._request.choices.inserted_keys,
            key_port=self._services.keys,
        )

    def _unjudged(self, version: int, reason: str) -> ConflictError:
        self.head_kind = _UNRECORDED
        return self._conflict(RetryableConflictError, version, reason)

    def _conflict(self, kind: type[ConflictError], version: int, reason: str) -> ConflictError:
        error = kind.between(
            mine=self._request.kind, theirs=self.head_kind, version=version, reason=reason
        )
        error.at(self._line.location.uri, version)
        return error
