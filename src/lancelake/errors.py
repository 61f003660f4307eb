"""Error classes of the library, each with a stable code."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, NamedTuple, Self

from lancelake.interrupts import pass_on_handled

_MIN_SIMILARITY = 0.6
_MOST_LISTED = 20


def suggestion(name: str, known: Iterable[str], what: str) -> str | None:
    """Return advice for an unknown name; `what` describes the known names, in the plural.

    Without a close name, known names are listed if they are few; otherwise there is no advice.
    """
    names = list(known)
    by_folded = {each.casefold(): each for each in names}
    near = difflib.get_close_matches(name.casefold(), by_folded, n=1, cutoff=_MIN_SIMILARITY)
    if near:
        return f"Did you mean {by_folded[near[0]]}?"
    if len(names) > _MOST_LISTED:
        return None
    return f"Known {what}: {', '.join(names) or 'none'}."


type_registry: dict[str, type[LanceTableError]] = {}


class LanceTableError(Exception):
    """Base class of all errors of this library.

    The class and its `code` are stable; the message is not. The values that the message is made
    of are kept as attributes, so that an error can be sent as text and rebuilt.
    """

    code: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 1
    action: ClassVar[str | None] = None
    """Advice that applies to every error of a class; most classes have none."""

    def __init__(
        self,
        problem: str,
        *,
        table: str | None = None,
        version: int | None = None,
        action: str | None = None,
        **facts: object,
    ) -> None:
        """Create an error from what is wrong, its table and version, and advice if there is any."""
        pass_on_handled()
        self.problem = problem
        self.table = table
        self.version = version
        self.next_step = action or self.action
        self.facts = facts
        super().__init__(self._message())

    def __init_subclass__(cls) -> None:
        """Register the class for `from_json`; classes of this module have a code by their name.

        Other classes without a code of their own are sent as their base.
        """
        super().__init_subclass__()
        if cls.__module__ == __name__:
            words = re.sub("(?<=[a-z])(?=[A-Z])", "_", cls.__name__.removesuffix("Error"))
            cls.code = words.lower()
        type_registry.setdefault(cls.code, cls)

    def _message(self) -> str:
        text = self.problem.rstrip(". ")
        if place := self.place():
            text += f" [{place}]"
        if not self.next_step:
            return text + ("." if self.problem.rstrip().endswith(".") else "")
        return f"{text} {self.next_step}" if text[-1:] in "?!" else f"{text}. {self.next_step}"

    def place(self) -> str:
        """Return the table and version, without those that the problem names."""
        names = [f"table {self.table}"] if self.table else []
        if self.table and self.version is not None:
            names.append(f"version {self.version}")
        return ", ".join(n for n in names if not _mentions(self.problem, n.removeprefix("table ")))

    def at(self, table: str, version: int | None = None) -> Self:
        """Add the table and version where they are unknown, and return this error."""
        if self.table in (None, table):
            self.table = table
            self.version = version if self.version is None else self.version
        self.args = (self._message(),)
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
        given = {name: body[name] for name in ("table", "version", "action")}
        return cls(body["problem"], **given, **body["facts"])

    def __reduce__(self) -> tuple[Callable[[str], LanceTableError], tuple[str]]:
        """Pickle through the text form."""
        return (LanceTableError.from_json, (self.to_json(),))


class naming(NamedTuple):  # noqa: N801  # used like a function; a generator costs more
    """Adds a table and its version to the errors of a block that do not name a table yet."""

    table: str
    version: int | None = None

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, LanceTableError):
            error.at(self.table, self.version)


def _plain(value: object) -> object:
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def _mentions(text: str, name: str) -> bool:
    """Whether a text has this name in it, and not a longer one that starts with it."""
    return re.search(rf"{re.escape(name)}(?![\w/-]|\.\w)", text) is not None


class InvalidRequestError(LanceTableError, ValueError):
    """An argument or a combination of arguments is not valid."""

    exit_code = 2


class TooFewRowsError(InvalidRequestError):
    """There are too few rows to train an index; a refresh tries again when there are more."""


class InvalidRequestOSError(InvalidRequestError, OSError):
    """A request that is not valid, raised by a call for which pylance raises OSError."""


class SchemaMismatchError(InvalidRequestError, OSError):
    """Columns or types of the data and the table differ. Pylance raises OSError for this."""


class ColumnNotFoundError(InvalidRequestError, KeyError):
    """The table has no such column."""

    __str__ = Exception.__str__


class ColumnTypeError(InvalidRequestError, TypeError):
    """The type of a column does not support the request."""


class InvalidNameError(InvalidRequestError, OSError, RuntimeError):
    """The name of a branch, tag or column is not allowed. Pylance raises all three kinds."""


class InvalidExpressionError(InvalidRequestError):
    """A filter or an expression cannot be parsed, bound or evaluated."""


class InvalidExpressionOSError(InvalidExpressionError, InvalidRequestOSError):
    """An expression that is not valid, in a call for which pylance raises OSError."""


class UnknownDataError(InvalidRequestError, TypeError):
    """An object cannot be read as rows. Pylance raises TypeError for this."""


class OutOfRangeError(InvalidRequestError, IndexError, OSError):
    """A row number is past the last row. Pylance raises OSError for this."""


class PlaceNotAllowedError(InvalidRequestError, PermissionError):
    """A table refers to a location outside of the ones that the caller allows."""

    action = (
        "If you trust the table, allow that location or its root: confine_to in Python, "
        "--confine-to at the command line, confineTo in Spark."
    )


class NotFoundError(LanceTableError, LookupError):
    """A name refers to nothing."""

    exit_code = 3


class ObjectNotFoundError(NotFoundError, FileNotFoundError):
    """The store has no object at this path."""


class TableNotFoundError(NotFoundError, ValueError, FileNotFoundError):
    """There is no table at this URI."""


class VersionNotFoundError(NotFoundError, ValueError, OSError):
    """The table does not have this version, or it was cleaned up."""


class RefNotFoundError(NotFoundError, ValueError, OSError):
    """The table has no tag or branch of this name."""


class IndexNotFoundError(NotFoundError, KeyError, OSError, RuntimeError):
    """The table has no index of this name."""

    __str__ = Exception.__str__


class AlreadyExistsError(LanceTableError, FileExistsError, ValueError):
    """A table, a ref or an object of this name exists already."""

    exit_code = 4


class IndexExistsError(AlreadyExistsError, RuntimeError):
    """An index of this name exists already; official releases raise RuntimeError."""


class UnsupportedError(LanceTableError, NotImplementedError, ValueError, OSError):
    """The table or the call needs a feature that this library does not support."""

    exit_code = 5


class MissingPackageError(LanceTableError, ModuleNotFoundError):
    """The call needs a package that is not installed; the error names the command that does."""

    exit_code = 5


class ReleaseMismatchError(UnsupportedError):
    """The driver and a worker run different releases of this library."""

    action = "Install the same release of lancelake for the driver and for every executor."


class FunctionError(LanceTableError, OSError, ValueError):
    """A user-defined function failed; nothing was committed."""

    action = "With a checkpoint file, the next run resumes where this one stopped."


class CommitError(LanceTableError, OSError):
    """A commit failed; unless the error says otherwise, nothing of it is visible."""

    exit_code = 8


class ConflictError(CommitError):
    """A concurrent commit conflicts with this one."""

    retryable: ClassVar[bool] = True

    def __init__(self, problem: str = "another writer committed first", **where: Any) -> None:
        """Create the error; a commit lock may raise it without a text."""
        super().__init__(problem, **where)

    @classmethod
    def between(cls, *, mine: str, theirs: str, version: int, reason: str) -> Self:
        """Create the error of a change `mine` that conflicts with `theirs`, made as `version`."""
        problem = cls._problem(mine, theirs, version)
        return cls(f"{problem} ({reason})", mine=mine, theirs=theirs, at=version, reason=reason)

    @staticmethod
    def _problem(mine: str, theirs: str, version: int) -> str:
        return f"This {mine} transaction conflicts with {theirs} at version {version}"


class RetryableConflictError(ConflictError):
    """The same change can succeed when it is made again on the newest version."""

    action = "Please retry: read the newest version, make the change again and commit it."

    @staticmethod
    def _problem(mine: str, theirs: str, version: int) -> str:
        return (
            f"Retryable commit conflict for version {version}: This {mine} transaction was "
            f"preempted by concurrent transaction {theirs} at version {version}"
        )


class IncompatibleConflictError(ConflictError):
    """Two concurrent changes exclude each other."""

    retryable = False

    @staticmethod
    def _problem(mine: str, theirs: str, version: int) -> str:
        return (
            f"Incompatible transaction: This {mine} transaction is incompatible with "
            f"concurrent transaction {theirs} at version {version}"
        )


class ContentionError(ConflictError):
    """Every attempt to commit lost against another writer."""


class UncertainCommitError(CommitError):
    """The store did not report whether a commit succeeded."""

    action = "Before a retry, look for the transaction's uuid in the newest versions."


class WriterFencedError(LanceTableError, OSError):
    """Another writer has claimed the MemWAL region; this one must not write any more."""

    exit_code = 8


class CorruptTableError(LanceTableError, OSError):
    """Files of a table violate the format."""

    exit_code = 6
    action = "`lancelake check --data` reports all damage of the table."


class DamagedIndexError(CorruptTableError):
    """The files of an index are missing or damaged; the rows of the table are not affected."""

    action = (
        "Read without it (use_scalar_index=False in Python, useScalarIndex=false in Spark, "
        "--no-index at the command line), and drop the index or build it again."
    )


class StorageError(LanceTableError, OSError):
    """A request to the store failed."""

    exit_code = 7


class StorageUnavailableError(StorageError):
    """The store cannot be reached; a retry may succeed."""


class RequestConflictError(StorageUnavailableError):
    """The store refused a request because of another one at the same time; nothing was done."""


class StorageDeniedError(StorageError, PermissionError):
    """The store denied access."""


class InternalError(LanceTableError, RuntimeError):
    """A bug in this library."""

    exit_code = 70
    action = "Please report it with the steps that lead to it."
