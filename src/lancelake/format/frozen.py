"""Immutable containers: a map, and a sequence that decodes its items when asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar, overload

K = TypeVar("K")
V = TypeVar("V")
M = TypeVar("M")
T = TypeVar("T")


class FrozenMap(Mapping[K, V]):
    """A mapping that cannot change, can be hashed and can be pickled."""

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[K, V] | None = None) -> None:
        self._items: dict[K, V] = dict(items or {})

    def __getitem__(self, key: K) -> V:
        return self._items[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

    def __eq__(self, other: object) -> bool:
        return dict(self) == dict(other) if isinstance(other, Mapping) else NotImplemented

    def __repr__(self) -> str:
        return f"FrozenMap({self._items!r})"

    def __reduce__(self) -> tuple[type[FrozenMap[K, V]], tuple[dict[K, V]]]:
        return (FrozenMap, (self._items,))


EMPTY_MAP: FrozenMap[str, bytes] = FrozenMap()


class LazyTuple(Sequence[T], Generic[M, T]):
    """Behaves as the tuple of all decoded items, decoding each on first use.

    A manifest may list 100,000 fragments of which a query needs a few.
    """

    __slots__ = ("_decode", "_raw", "_values")

    def __init__(
        self,
        raw: Sequence[M],
        decode: Callable[[M], T],
        values: list[T | None] | None = None,
    ) -> None:
        """Take items as they came; `values` are those decoded before."""
        self._raw = list(raw)
        self._decode = decode
        self._values: list[T | None] = [None] * len(self._raw) if values is None else values

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...
    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        if isinstance(index, slice):
            return tuple(self._item(i) for i in range(*index.indices(len(self))))
        return self._item(range(len(self))[index])

    def _item(self, position: int) -> T:
        value = self._values[position]
        if value is None:
            value = self._decode(self._raw[position])
            self._values[position] = value
        return value

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[T]:
        return (self._item(i) for i in range(len(self)))

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, Sequence) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))

    def __reduce__(self) -> tuple[type[tuple[T, ...]], tuple[tuple[T, ...]]]:
        return (tuple, (tuple(self),))
