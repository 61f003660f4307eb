"""Messages with single fields set to values that no writer writes."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from lancelake.proto.rowids_pb2 import RowDatasetVersionSequence, RowIdSequence, U64Segment

NUMBERS = (
    *(0, 1, 2, 3, 5, 63, 64, 100, 255, 256, 65535, 65536),
    *((1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1),
    *(-1, -2, -(1 << 31), -(1 << 63)),
)
TEXTS = (
    *("", "a", ".", "a.b", "\0", "x" * 300, "9.9", "2.0"),
    *("null", "int32", "struct", "list", "list.struct", "map", "json", "blob", "large_list"),
    *("fixed_size_list:struct:2", "fixed_size_list:float:2147483647", "fixed_size_binary:-1"),
    "fixed_size_list:fixed_size_list:fixed_size_list:double:2147483647:2147483647:2147483647",
    *("decimal:128:38:127", "decimal:256:76:-128", "decimal:256:76:2147483648"),
    *("dict:string:int8:true", "dict:dict:string:int8:false:int8:false", "dict:int8:double:false"),
    *("timestamp:us:", "timestamp:ns:\0", "timestamp:h:UTC", "duration:us"),
    *("arrow.uuid", "arrow.json", "lance.json", "arrow.fixed_shape_tensor", "lance.blob.v2"),
    *("/lance.index.pb.VectorIndexDetails", "/lance.index.pb.JsonIndexDetails"),
)
KEYS = ("k", "", "packed", "ARROW:extension:name", "ARROW:extension:metadata")
BYTES = (
    *(b"", b"\0", b"\xff", b"\xff" * 16, b"\0" * 16, b"true", b"\x08\x01", bytes(100)),
    *(b"arrow.uuid", b"arrow.json", b'{"shape":[-1]}', b'{"shape":[2]}', b":0\0\0\0\0\0\0"),
)
FLOATS = (0.0, float("nan"), float("inf"), 1e300, -1.0)


def below(root: Message) -> Iterator[Message]:
    """Yield a message and all below it, maps aside."""
    yield root
    for field, value in root.ListFields():
        if field.message_type is not None and not field.message_type.GetOptions().map_entry:
            for child in value if field.is_repeated else [value]:
                yield from below(child)


def set_one(root: Message, chance: random.Random) -> None:
    """Change one field somewhere in a message; a value of the wrong range changes nothing."""
    target = chance.choice(list(below(root)))
    if not target.DESCRIPTOR.fields:
        return
    field = chance.choice(list(target.DESCRIPTOR.fields))
    try:
        if field.message_type is not None:
            _set_message(target, field, chance)
        elif field.is_repeated:
            getattr(target, field.name).append(_scalar(field, chance))
        elif chance.random() < 0.2:
            target.ClearField(field.name)
        else:
            setattr(target, field.name, _scalar(field, chance))
    except ValueError:
        return


def _set_message(target: Message, field: FieldDescriptor, chance: random.Random) -> None:
    if field.message_type.GetOptions().map_entry:
        _set_entry(getattr(target, field.name), field, chance)
    elif field.is_repeated:
        items = getattr(target, field.name)
        if items and chance.random() < 0.5:
            del items[chance.randrange(len(items))]
        elif items:
            items.add().CopyFrom(chance.choice(items))
        else:
            items.add()
    elif chance.random() < 0.5:
        target.ClearField(field.name)
    else:
        getattr(target, field.name).SetInParent()


def _set_entry(entries: Any, field: FieldDescriptor, chance: random.Random) -> None:
    key, value = (field.message_type.fields_by_name[name] for name in ("key", "value"))
    is_text = key.type == FieldDescriptor.TYPE_STRING
    chosen = chance.choice(KEYS) if is_text else _scalar(key, chance)
    if value.message_type is None:
        entries[chosen] = _scalar(value, chance)
    else:
        entries[chosen].SetInParent()


def _scalar(field: FieldDescriptor, chance: random.Random) -> Any:
    match field.type:
        case FieldDescriptor.TYPE_STRING:
            return chance.choice(TEXTS)
        case FieldDescriptor.TYPE_BYTES if field.name.endswith("row_ids"):
            return RowIdSequence(segments=[_segment(chance)]).SerializeToString()
        case FieldDescriptor.TYPE_BYTES if field.name.endswith("versions"):
            sequence = RowDatasetVersionSequence()
            sequence.runs.add(version=3).span.CopyFrom(_segment(chance))
            return sequence.SerializeToString()
        case FieldDescriptor.TYPE_BYTES:
            return chance.choice(BYTES)
        case FieldDescriptor.TYPE_BOOL:
            return chance.random() < 0.5
        case FieldDescriptor.TYPE_DOUBLE:
            return chance.choice(FLOATS)
        case _:
            return chance.choice(NUMBERS)


def _segment(chance: random.Random) -> U64Segment:
    start, end = sorted(chance.choice(NUMBERS) % (1 << 64) for _ in range(2))
    made = U64Segment()
    match chance.randrange(5):
        case 0:
            made.range.start, made.range.end = start, end
        case 1:
            made.range_with_holes.start, made.range_with_holes.end = start, end
            made.range_with_holes.holes.u64_array.values = struct.pack("<QQ", start, end)
        case 2:
            made.range_with_bitmap.start, made.range_with_bitmap.end = start, end
            made.range_with_bitmap.bitmap = chance.choice(BYTES)
        case 3:
            made.array.u16_array.base = start
            made.array.u16_array.offsets = chance.choice(BYTES)
        case _:
            made.sorted_array.u32_array.base = start
            made.sorted_array.u32_array.offsets = chance.choice(BYTES)
    return made
