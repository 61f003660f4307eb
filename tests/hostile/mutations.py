"""Mutations of messages: at random from a seed, and field by field."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

_INTEGERS = {
    FieldDescriptor.TYPE_INT32: (-(1 << 31), (1 << 31) - 1),
    FieldDescriptor.TYPE_INT64: (-(1 << 63), (1 << 63) - 1),
    FieldDescriptor.TYPE_UINT32: (0, (1 << 32) - 1),
    FieldDescriptor.TYPE_UINT64: (0, (1 << 64) - 1),
}
_TEXTS = ["", ".", "..", "\0", "a/../b", "x" * 3_000, "ü", "`", "struct", "list", "null", "%2e%2e"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """A value in a message: the message that holds it, its field, its place if it is repeated."""

    path: str
    owner: Any  # generated classes have their fields at run time only
    field: FieldDescriptor
    index: int | None

    def get(self) -> Any:
        value = getattr(self.owner, self.field.name)
        return value if self.index is None else value[self.index]

    def set(self, value: object) -> None:
        if self.index is None:
            setattr(self.owner, self.field.name, value)
        else:
            getattr(self.owner, self.field.name)[self.index] = value

    @property
    def bounds(self) -> tuple[int, int] | None:
        """The smallest and the largest number, if it is one."""
        return _INTEGERS.get(self.field.type)


def leaves(message: Any, path: str = "") -> Iterator[Leaf]:
    """Yield the values that are set in a message and in those below it."""
    for field, value in message.ListFields():
        here = f"{path}.{field.name}".lstrip(".")
        if _is_map(field):
            continue
        if field.message_type is not None:
            for number, child in enumerate(value if field.is_repeated else [value]):
                yield from leaves(child, f"{here}[{number}]" if field.is_repeated else here)
        elif field.is_repeated:
            for number in range(len(value)):
                leaf = f"{here}[{number}]"
                yield Leaf(path=leaf, owner=message, field=field, index=number)
        else:
            yield Leaf(path=here, owner=message, field=field, index=None)


def unset(message: Any, path: str = "") -> Iterator[Leaf]:
    """Yield the values that a message and those below it could have and do not."""
    for field in message.DESCRIPTOR.fields:
        here = f"{path}.{field.name}".lstrip(".")
        if _is_map(field):
            continue
        if field.message_type is not None:
            value = getattr(message, field.name)
            present = value if field.is_repeated else [value] * message.HasField(field.name)
            for number, child in enumerate(present):
                yield from unset(child, f"{here}[{number}]" if field.is_repeated else here)
        elif not field.is_repeated and (field, getattr(message, field.name)) not in (
            message.ListFields()
        ):
            yield Leaf(path=here, owner=message, field=field, index=None)


def mutate(message: Message, chance: random.Random) -> str:
    """Change one thing in a message; return what was done."""
    kind = chance.choice(("value", "value", "value", "clear", "repeat", "drop", "add"))
    if kind in ("value", "add"):
        found = list(leaves(message) if kind == "value" else unset(message))
        leaf = chance.choice(found)
        value = odd_value(leaf, chance)
        leaf.set(value)
        return f"{leaf.path} = {value!r:.60}"
    owner, field = chance.choice(list(_filled(message, is_repeated=kind != "clear")))
    if kind == "clear":
        owner.ClearField(field.name)
        return f"clear {field.full_name}"
    items = getattr(owner, field.name)
    number = chance.randrange(len(items))
    if kind == "repeat":
        items.append(items[number])
    else:
        del items[number]
    return f"{kind} {field.full_name}[{number}]"


def odd_value(leaf: Leaf, chance: random.Random) -> object:
    """Return a value of the right type that the field should not have."""
    if leaf.bounds is not None:
        low, high = leaf.bounds
        near = (leaf.get() or 0) + chance.choice((-1, 1, 2))
        odd = [low, high, high - 1, 0, 1, 2, 1 << 20, 1 << 31, 1 << 40, near]
        return chance.choice([number for number in odd if low <= number <= high])
    match leaf.field.type:
        case FieldDescriptor.TYPE_STRING:
            before = leaf.get()
            return chance.choice([*_TEXTS, before[:-1], before + "x", before.upper()])
        case FieldDescriptor.TYPE_BYTES:
            data = bytearray(leaf.get() or b"\x00")
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            return bytes(data[: chance.choice((len(data), len(data) // 2))])
        case FieldDescriptor.TYPE_BOOL:
            return not leaf.get()
        case FieldDescriptor.TYPE_ENUM:
            return chance.choice((0, 1, 2, 3, 77))
        case _:
            return chance.choice((0.0, -1.0, float("nan"), float("inf")))


def flip(data: bytes, chance: random.Random) -> bytes:
    """Change some bits, or cut bytes out."""
    changed = bytearray(data)
    if chance.random() < 0.2:
        start = chance.randrange(len(changed))
        del changed[start : start + chance.randrange(1, 9)]
        return bytes(changed)
    for _ in range(chance.randrange(1, 4)):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _filled(message: Any, *, is_repeated: bool) -> Iterator[tuple[Any, FieldDescriptor]]:
    for field, value in message.ListFields():
        if _is_map(field):
            continue
        if not is_repeated or field.is_repeated:
            yield message, field
        if field.message_type is not None:
            for child in value if field.is_repeated else [value]:
                yield from _filled(child, is_repeated=is_repeated)


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry
