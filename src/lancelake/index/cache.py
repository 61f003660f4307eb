"""What searches keep of index files, within one budget of bytes for the process.

Files of an index are never changed, so that what was read of one stays right.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TypeVar, cast

from lancelake.data.recently_used import RecentlyUsed

T = TypeVar("T")

_BUDGET_BYTES = 512 << 20
# What a value costs beside its bytes.
_OVERHEAD_BYTES = 512


@dataclass(frozen=True, slots=True)
class _Weighed:
    value: object
    size: int


_kept: RecentlyUsed[tuple[str, Hashable], _Weighed] = RecentlyUsed(
    _BUDGET_BYTES, weight=lambda item: item.size
)


def find(uri: str, part: Hashable) -> object | None:
    """Return a part of the file at a URI if it is kept."""
    item = _kept.find((uri, part))
    return None if item is None else item.value


def keep(uri: str, part: Hashable, value: object, size: int) -> None:
    """Keep a part of the file at a URI, which takes so many bytes."""
    _kept.put((uri, part), _Weighed(value, size + _OVERHEAD_BYTES))


def kept(uri: str, part: Hashable, make: Callable[[], T], size: Callable[[T], int]) -> T:
    """Return a part of the file at a URI, made if it is not kept."""
    item = find(uri, part)
    if item is not None:
        return cast(T, item)
    value = make()
    keep(uri, part, value, size(value))
    return value
