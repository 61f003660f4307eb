"""Values that do not change, and unknown fields that they keep.

Python 3.11's `functools.cached_property` holds one lock for all objects of a class while it
computes, so that a slow file on one thread would block all other threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, TypeVar, overload

from google.protobuf.message import DecodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet

from lancelake.errors import CorruptTableError

K = TypeVar("K")
V = TypeVar("V")


class FrozenMap(Mapping[K, V]):
    """Immutable mapping that can be hashed and pickled."""

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


T = TypeVar("T")


class computed_once(Generic[T]):  # noqa: N801  # a decorator
    """A cached property; concurrent threads may both compute it."""

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self._name = ""
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> computed_once[T]: ...

    @overload
    def __get__(self, instance: object, owner: type) -> T: ...

    def __get__(self, instance: object | None, owner: type) -> T | computed_once[T]:
        if instance is None:
            return self
        # Python finds it here from now on, because this descriptor has no setter.
        value = self._compute(instance)
        vars(instance)[self._name] = value
        return value


def parse(message: Message, data: bytes, *, what: str) -> None:
    """Decode `message` from bytes, or raise that `what` cannot be decoded."""
    try:
        message.ParseFromString(data)
    except (DecodeError, RecursionError, ValueError) as error:
        msg = f"{what} cannot be decoded: {error}"
        raise CorruptTableError(msg, size_bytes=len(data)) from error


def unknown_bytes(message: Message) -> bytes:
    """Return the unknown fields of `message` itself."""
    if len(UnknownFieldSet(message)) == 0:
        return b""
    rest = type(message)()
    rest.CopyFrom(message)
    for descriptor, _ in rest.ListFields():
        rest.ClearField(descriptor.name)
    return rest.SerializeToString()


def restore_unknown(message: Message, data: bytes) -> None:
    """Add fields returned by `unknown_bytes` to `message`."""
    if data:
        message.MergeFromString(data)
