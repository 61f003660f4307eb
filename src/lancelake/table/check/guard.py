"""Isolation of checks: a failing check does not stop the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lancelake.errors import LanceTableError, StorageUnavailableError
from lancelake.table.check.finding import Finding, Severity


def guarded(
    what: str,
    findings: Callable[[], Iterator[Finding]],
    *,
    version: int | None = None,
    branch: str | None = None,
) -> Iterator[Finding]:
    """Yield findings; an exception becomes a finding, unless the store is unreachable."""
    try:
        yield from findings()
    except StorageUnavailableError:
        raise
    except LanceTableError as error:
        message = f"{what} could not be checked: {error.problem}"
        # The advice of a class is to run this check.
        hint = None if error.next_step == error.action else error.next_step
        yield _failed("unchecked", message, hint, version, branch)
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # noqa: BLE001  # damage may surface as anything, even a panic
        message = f"the check of {what} failed: {type(error).__name__}: {error}"
        hint = "The table is damaged in an unexpected way; please report it."
        yield _failed("check-failed", message, hint, version, branch)


def _failed(
    code: str, message: str, hint: str | None, version: int | None, branch: str | None
) -> Finding:
    return Finding(
        severity=Severity.ERROR,
        code=code,
        message=message,
        version=version,
        branch=branch,
        hint=hint,
    )
