"""Values that do not change, and their conversion to protobuf messages.

Python 3.11's `functools.cached_property` holds one lock for all objects of a class while it
computes, so that a slow file on one thread would block all other threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, Generic, Protocol, TypeVar, overload

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


class Converter(Protocol):
    """Conversion of one element of a field; a module with both functions is one too."""

    @property
    def decode(self) -> Callable[[Any], Any]:
        """Convert from the message."""

    @property
    def encode(self) -> Callable[[Any], Any]:
        """Convert to the message."""


@dataclass(frozen=True, slots=True)
class Conversion:
    """A converter of two functions."""

    decode: Callable[[Any], Any]
    encode: Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class FromMessage:
    """A field that is read from, and written into, the whole message."""

    decode: Callable[[Any], Any]
    encode: Callable[[Any, Any], None]


class _Field:
    """A field of a value: how its annotation says that it is stored."""

    def __init__(self, annotation: str, name: str, part: Converter | None) -> None:
        self.name = name
        self.is_many = annotation.startswith("tuple[")
        self.is_map = annotation.startswith("FrozenMap[")
        self.is_optional = annotation.endswith("| None")
        self.part = part

    def decode(self, message: Any) -> Any:
        if self.is_optional and not message.HasField(self.name):
            return None
        stored, part = getattr(message, self.name), self.part
        if self.is_map:
            return FrozenMap({k: part.decode(v) if part else v for k, v in stored.items()})
        if self.is_many:
            return tuple(map(part.decode, stored)) if part else tuple(stored)
        return part.decode(stored) if part else stored

    def encode(self, value: Any, message: Any) -> None:
        part = self.part
        if self.is_map and part:
            for key, each in value.items():
                getattr(message, self.name)[key].CopyFrom(part.encode(each))
        elif self.is_map:
            getattr(message, self.name).update(value)
        elif self.is_many:
            getattr(message, self.name).extend(map(part.encode, value) if part else value)
        elif value is not None:
            stored = part.encode(value) if part else value
            if isinstance(stored, Message):
                getattr(message, self.name).CopyFrom(stored)
            else:
                setattr(message, self.name, stored)


class Codec(Generic[V]):
    """Conversion of a dataclass and a message.

    A tuple is a repeated field, a FrozenMap a map, `| None` a field that may be absent. `parts`
    convert the elements of a field; `names` are the fields with another name in the message. A
    field `unknown` holds the fields of the message that this release does not know.
    """

    def __init__(
        self,
        kind: type[V],
        message: Callable[[], Any],
        *,
        names: Mapping[str, str] | None = None,
        **parts: Converter | FromMessage,
    ) -> None:
        self.kind, self._message = kind, message
        self._fields: dict[str, _Field | FromMessage] = {}
        annotations = {f.name: str(f.type) for f in fields(kind)}  # type: ignore[arg-type]
        self._keeps_unknown = annotations.pop("unknown", None) is not None
        for name, annotation in annotations.items():
            part = parts.get(name)
            stored = (names or {}).get(name, name)
            self._fields[name] = (
                part if isinstance(part, FromMessage) else _Field(annotation, stored, part)
            )

    def decode(self, message: Any) -> V:
        """Read a value."""
        values = {name: field.decode(message) for name, field in self._fields.items()}
        if self._keeps_unknown:
            values["unknown"] = unknown_bytes(message)
        return self.kind(**values)

    def encode(self, value: V) -> Any:
        """Write a value."""
        message = self._message()
        for name, field in self._fields.items():
            field.encode(getattr(value, name), message)
        if self._keeps_unknown:
            restore_unknown(message, value.unknown)  # type: ignore[attr-defined]
        return message
