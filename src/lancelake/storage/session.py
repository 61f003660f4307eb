"""Session: what the tables of a program share."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lancelake.caches import MOST_BYTES, Caches
from lancelake.clock import Clock, Ids, SystemClock, SystemIds
from lancelake.errors import InvalidRequestError

if TYPE_CHECKING:
    from lancelake.engine.port import Engine
    from lancelake.events import CommitStep
    from lancelake.storage.options import RetryPolicy
    from lancelake.storage.store import ObjectStore, StorePlace

CACHE_BYTES = "LANCELAKE_CACHE_BYTES"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Session:
    """Clock, ids, engine, caches, limits of requests and steps after commits of its tables.

    The location of a table knows its session, and what runs on the table asks there. Programs that
    make no session use the default one. Tests replace what they need to decide.
    """

    clock: Clock = SystemClock()  # noqa: RUF009  # has no state
    ids: Ids = SystemIds()  # noqa: RUF009  # has no state

    caches: Caches = field(default_factory=Caches)
    """What was read of the tables; one bound for each kind of content, and one for all."""

    stores: Callable[[StorePlace], ObjectStore] | None = None
    """Opens the store of a place; by default by its scheme and storage options."""

    retry: RetryPolicy | None = None
    """How requests to stores are repeated, unless storage options say otherwise."""

    engine: Engine | None = None
    """Runs the tasks of operations; by default threads of this process."""

    after: tuple[CommitStep, ...] | None = None
    """Steps that follow each commit, instead of the installed ones."""

    @contextmanager
    def as_default(self) -> Iterator[Session]:
        """Let locations that are made without a session belong to this one, in all threads."""
        global _default  # noqa: PLW0603  # a process has one default
        before, _default = _default, self
        try:
            yield self
        finally:
            _default = before


def default_session() -> Session:
    """Return the session of programs that make none."""
    return _default


def bound_of_caches(environment: Mapping[str, str]) -> int:
    """Return the bound of all caches together that a process was started with."""
    text = environment.get(CACHE_BYTES)
    if text is None:
        return MOST_BYTES
    if not (text.isascii() and text.isdigit()):
        problem = f"{CACHE_BYTES} must be a number of bytes, not {text!r}"
        raise InvalidRequestError(problem)
    return int(text)


_default = Session(caches=Caches(most_bytes=bound_of_caches(os.environ)))
