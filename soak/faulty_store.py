"""Store with injected delays, failures and lost replies, from a seed."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import lancelake.storage.location as opening
from lancelake.errors import LanceTableError, StorageUnavailableError
from lancelake.storage.store import ObjectStore
from soak.journal import Journal
from tests.support.failing_store import InterceptedStore

T = TypeVar("T")
_CREATES = ("create", "swap")


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """How often a call is slow, fails before it begins, or loses its reply."""

    slow: float = 0.0
    slow_s: float = 0.0
    fail: float = 0.0
    lost: float = 0.0
    lost_create: float = 0.0
    """Of calls that must not be made twice: how often the reply is lost."""


def install(faults: Faults, seed: str, journal: Journal) -> None:
    """Let every store that is opened from now on fail at random, and report each fault."""
    around = _Around(faults, random.Random(seed), journal)
    names: Any = opening  # the two ways to a store that `Stores` looks up when it opens one
    local, cloud = names.LocalStore, names.cloud_store
    names.LocalStore = lambda root: _faulty(local(root), around)
    names.cloud_store = lambda *place: _faulty(cloud(*place), around)


@contextmanager
def misbehaving(faults: Faults, seed: str, journal: Journal) -> Iterator[None]:
    """Let stores misbehave for a while."""
    names: Any = opening
    local, cloud = names.LocalStore, names.cloud_store
    install(faults, seed, journal)
    try:
        yield
    finally:
        names.LocalStore, names.cloud_store = local, cloud


def _faulty(inner: ObjectStore, around: _Around) -> ObjectStore:
    return InterceptedStore(inner, around)


class _Around:
    def __init__(self, faults: Faults, chance: random.Random, journal: Journal) -> None:
        self._faults = faults
        self._chance = chance
        self._journal = journal

    def __call__(self, call: str, path: str, carry_out: Callable[[], T]) -> T:
        faults, chance = self._faults, self._chance
        if chance.random() < faults.slow:
            self._journal.fault("slow", call, path)
            time.sleep(chance.random() * faults.slow_s)
        if chance.random() < faults.fail:
            self._journal.fault("failed", call, path)
            raise StorageUnavailableError(f"{call} of {path} was not carried out")
        is_lost = chance.random() < (faults.lost_create if call in _CREATES else faults.lost)
        if not is_lost:
            return carry_out()
        self._journal.fault("reply lost", call, path)
        try:
            carry_out()
        except LanceTableError:
            # What the call had to say is lost as well.
            raise StorageUnavailableError(f"no reply to {call} of {path}") from None
        raise StorageUnavailableError(f"no reply to {call} of {path}")
