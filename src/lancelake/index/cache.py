"""Cache of index file content, with a byte limit for the process.

Index files never change, so cached content stays valid.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar, cast

from lancelake.data.recently_used import RecentlyUsed
from lancelake.storage.io_account import current_account

T = TypeVar("T")

_BUDGET_BYTES = 512 << 20
# Overhead of a cached value.
_OVERHEAD_BYTES = 512


@dataclass(frozen=True, slots=True)
class _Weighed:
    value: object
    size: int


_kept: RecentlyUsed[tuple[str, Hashable], _Weighed] = RecentlyUsed(
    _BUDGET_BYTES, weight=lambda item: item.size
)


def find(uri: str, part: Hashable) -> object | None:
    """Return a cached part of the file at a URI."""
    item = _kept.find((uri, part))
    _account((item,))
    return None if item is None else item.value


def find_all(uri: str, parts: Sequence[Hashable]) -> list[object | None]:
    """Return cached parts of the file at a URI; None for those that are not cached."""
    items = _kept.find_all([(uri, part) for part in parts])
    _account(items)
    return [None if item is None else item.value for item in items]


def _account(found: Sequence[_Weighed | None]) -> None:
    account = current_account()
    if account is not None:
        misses = sum(item is None for item in found)
        account.count("index_cache_misses", misses)
        account.count("index_cache_hits", len(found) - misses)


def keep(uri: str, part: Hashable, value: object, size: int) -> None:
    """Cache a part of the file at a URI with its size in bytes."""
    _kept.put((uri, part), _Weighed(value, size + _OVERHEAD_BYTES))


def kept(uri: str, part: Hashable, make: Callable[[], T], size: Callable[[T], int]) -> T:
    """Return a part of the file at a URI; create it if it is not cached."""
    item = find(uri, part)
    if item is not None:
        return cast(T, item)
    value = make()
    keep(uri, part, value, size(value))
    return value


def size_below(roots: Iterable[str]) -> int:
    """Return the bytes of the cached files below any of some URIs."""
    prefixes = tuple(f"{root.rstrip('/')}/" for root in roots)
    return _kept.weight_of(lambda key: key[0].startswith(prefixes))
