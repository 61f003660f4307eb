"""Every error raised on purpose: the class says what the caller must do next."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, ClassVar, Self

type_registry: dict[str, type[LanceTableError]] = {}


class LanceTableError(Exception):
    """Root of all errors of this library.

    The class and its `code` are stable; the sentence is not. The facts that make up the
    sentence are kept in `facts`, so that an error can travel as text and be rebuilt.
    """

    code: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 1
    action: ClassVar[str] = "See the cause above."

    def __init__(
        self,
        problem: str,
        *,
        table: str | None = None,
        version: int | None = None,
        action: str | None = None,
        **facts: object,
    ) -> None:
        """Say what happened (`problem`), where, and what to do about it."""
        self.problem = problem
        self.table = table
        self.version = version
        self.next_step = action or self.action
        self.facts = facts
        super().__init__(self._sentence())

    def __init_subclass__(cls) -> None:
        """Make the class known to `from_json`."""
        super().__init_subclass__()
        type_registry[cls.code] = cls

    def _sentence(self) -> str:
        where = f" [table {self.table}" if self.table else ""
        if where:
            where += f", version {self.version}]" if self.version is not None else "]"
        return f"{self.problem}{where}. {self.next_step}"

    def at(self, table: str, version: int | None = None) -> LanceTableError:
        """Return the same error with the place filled in where it was unknown."""
        self.table = self.table or table
        self.version = self.version if self.version is not None else version
        self.args = (self._sentence(),)
        return self

    def to_json(self) -> str:
        """Encode the error as text."""
        body = {
            "code": self.code,
            "problem": self.problem,
            "table": self.table,
            "version": self.version,
            "action": self.next_step,
            "facts": {k: _plain(v) for k, v in self.facts.items()},
        }
        return json.dumps(body)

    @staticmethod
    def from_json(text: str) -> LanceTableError:
        """Rebuild an error from `to_json` output."""
        body = json.loads(text)
        cls = type_registry.get(body["code"], LanceTableError)
        return cls(
            body["problem"],
            table=body["table"],
            version=body["version"],
            action=body["action"],
            **body["facts"],
        )

    def __reduce__(self) -> tuple[Callable[[str], LanceTableError], tuple[str]]:
        """Pickle through the text form."""
        return (LanceTableError.from_json, (self.to_json(),))


def _plain(value: object) -> object:
    return value if isinstance(value, str | int | float | bool | None) else str(value)


class InvalidRequestError(LanceTableError, ValueError, OSError):
    """The call itself is wrong. Official Lance raises either of the two built-in kinds for this."""

    code = "invalid_request"
    exit_code = 2
    action = "Fix the call."


class SchemaMismatchError(InvalidRequestError):
    """Data and table disagree about columns or types."""

    code = "schema_mismatch"
    action = "Make the data's columns match the table's."


class InvalidNameError(InvalidRequestError, RuntimeError):
    """A branch, tag or column name breaks the rules. Official Lance raises all three kinds."""

    code = "invalid_name"
    action = "Choose another name."


class InvalidExpressionError(InvalidRequestError):
    """A filter or expression cannot be understood."""

    code = "invalid_expression"
    action = "Fix the expression."


class OutOfRangeError(InvalidRequestError, IndexError):
    """A row was asked for that the table does not have."""

    code = "out_of_range"
    action = "Ask for rows below the row count."


class PlaceNotAllowedError(InvalidRequestError, PermissionError):
    """The content of a table leads to a place that the caller has not allowed."""

    code = "place_not_allowed"
    action = (
        "If you trust the table, allow that place or its root: confine_to in Python, --confine-to "
        "at the command line, confineTo in Spark."
    )


class NotFoundError(LanceTableError, LookupError):
    """Something that was named does not exist."""

    code = "not_found"
    exit_code = 3
    action = "Check the name."


class ObjectNotFoundError(NotFoundError, FileNotFoundError):
    """No object lies at this path of the store."""

    code = "object_not_found"
    action = "Check the path."


class TableNotFoundError(NotFoundError, ValueError, FileNotFoundError):
    """No table lies at this URI."""

    code = "table_not_found"
    action = "Check the URI, or create the table first."


class VersionNotFoundError(NotFoundError, ValueError, OSError):
    """The table has no such version, or no longer has it."""

    code = "version_not_found"
    action = "List the versions that exist, for example with `lancelake log`."


class RefNotFoundError(NotFoundError, ValueError, OSError):
    """The table has no such tag or branch."""

    code = "ref_not_found"
    action = "List the tags and branches that exist."


class IndexNotFoundError(NotFoundError, KeyError, OSError):
    """The table has no such index."""

    code = "index_not_found"
    action = "List the indices that exist."

    __str__ = Exception.__str__


class AlreadyExistsError(LanceTableError, FileExistsError, ValueError):
    """The name is taken."""

    code = "already_exists"
    exit_code = 4
    action = "Choose another name, or open what is there."


class UnsupportedError(LanceTableError, NotImplementedError, ValueError, OSError):
    """This table or call needs something that this library does not do."""

    code = "unsupported"
    exit_code = 5
    action = "Upgrade, or do without it."


class ReleaseMismatchError(UnsupportedError):
    """The driver and a worker run different releases of this library."""

    code = "release_mismatch"
    action = "Install the same release of lancelake for the driver and for every executor."


class FunctionError(LanceTableError, OSError, ValueError):
    """A function that the user brought failed; nothing was committed."""

    code = "function"
    action = "Fix the function and run it again; with a checkpoint it goes on where it was."


class CommitError(LanceTableError, OSError):
    """A commit did not succeed; nothing of it is visible, except where said."""

    code = "commit"
    exit_code = 8
    action = "See the cause above."


class ConflictError(CommitError):
    """Another commit stands in the way of this one."""

    code = "conflict"
    retryable: ClassVar[bool] = True

    def __init__(self, problem: str = "another writer's commit was faster", **where: Any) -> None:
        """Say what happened; a lock that is taken need not."""
        super().__init__(problem, **where)

    @classmethod
    def between(cls, *, mine: str, theirs: str, version: int, reason: str) -> Self:
        """Say that `mine` cannot follow `theirs`, which became `version`."""
        problem = cls._problem(mine, theirs, version)
        return cls(f"{problem} ({reason})", mine=mine, theirs=theirs, at=version, reason=reason)

    @staticmethod
    def _problem(mine: str, theirs: str, version: int) -> str:
        return f"This {mine} transaction conflicts with {theirs} at version {version}"


class RetryableConflictError(ConflictError):
    """The same work, done again on the newest version, can succeed."""

    code = "retryable_conflict"
    action = "Read the newest version, do the work again, commit again."

    @staticmethod
    def _problem(mine: str, theirs: str, version: int) -> str:
        return (
            f"Retryable commit conflict for version {version}: This {mine} transaction was "
            f"preempted by concurrent transaction {theirs} at version {version}. Please retry."
        )


class IncompatibleConflictError(ConflictError):
    """The two changes contradict each other."""

    code = "incompatible_conflict"
    retryable = False
    action = "Look at both changes and decide which one is meant."

    @staticmethod
    def _problem(mine: str, theirs: str, version: int) -> str:
        return (
            f"Incompatible transaction: This {mine} transaction is incompatible with "
            f"concurrent transaction {theirs} at version {version}."
        )


class ContentionError(ConflictError):
    """Every attempt lost the race against another writer."""

    code = "contention"
    action = "Try again when fewer writers are busy."


class UncertainCommitError(CommitError):
    """The commit may have landed, and the store does not say."""

    code = "uncertain_commit"
    action = "Look for the transaction's uuid among the newest versions before anything else."


class CorruptTableError(LanceTableError, OSError):
    """The bytes of a table contradict the format."""

    code = "corrupt_table"
    exit_code = 6
    action = "Do not retry; run `lancelake check` on the table."


class DamagedIndexError(CorruptTableError):
    """The files of an index are missing or damaged; the rows of the table are not concerned."""

    code = "damaged_index"
    action = (
        "Read without it (use_scalar_index=False in Python, useScalarIndex=false in Spark, "
        "--no-index at the command line), and drop the index or build it again."
    )


class StorageError(LanceTableError, OSError):
    """The store did not do what it was asked."""

    code = "storage"
    exit_code = 7
    action = "Look at the store's own message above."


class StorageUnavailableError(StorageError):
    """The store cannot be reached now."""

    code = "storage_unavailable"
    action = "The same call may work later."


class StorageDeniedError(StorageError, PermissionError):
    """The store refuses these credentials."""

    code = "storage_denied"
    action = "Fix the credentials or the permissions."


class InternalError(LanceTableError, RuntimeError):
    """A bug in this library."""

    code = "internal"
    exit_code = 70
    action = "Please report it with the steps that led here."
