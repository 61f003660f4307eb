"""Errors of invalid requests as pylance raises them: named by dataset, some of them as OSError."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import (
    InvalidExpressionError,
    InvalidExpressionOSError,
    InvalidRequestError,
    InvalidRequestOSError,
    naming,
)

Args = ParamSpec("Args")
Result = TypeVar("Result")

_OS_ERRORS: dict[type[Any], type[InvalidRequestOSError]] = {
    InvalidRequestError: InvalidRequestOSError,
    InvalidExpressionError: InvalidExpressionOSError,
}


@contextmanager
def os_errors() -> Iterator[None]:
    """Raise an invalid request as OSError too, where the counterpart in pylance does so."""
    try:
        yield
    except InvalidRequestError as error:
        kind = _OS_ERRORS.get(type(error))
        if kind is None:
            raise
        raised = kind(
            error.problem,
            table=error.table,
            version=error.version,
            action=error.next_step,
            **error.facts,
        )
        raise raised.with_traceback(error.__traceback__) from error.__cause__


def names_dataset(method: Callable[Args, Result]) -> Callable[Args, Result]:
    """Make the errors of a dataset's method name its table and version."""

    @functools.wraps(method)
    def named(*args: Args.args, **kwargs: Args.kwargs) -> Result:
        dataset: Any = args[0]
        snapshot: Snapshot = dataset._snapshot
        with naming(snapshot.location.uri, snapshot.version):
            return method(*args, **kwargs)

    return named
