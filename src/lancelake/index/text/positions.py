"""Positions of terms in documents, in the layouts of posting files.

The layout that is written stores the positions of each document on their own; the newer one stores
those of all documents of a block together.
"""

from __future__ import annotations

import struct
from enum import Enum

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelake.errors import CorruptTableError
from lancelake.index.text import varints
from lancelake.index.text.bit_packing import BLOCK, pack, packed_size, unpack, widths
from lancelake.index.text.segments_of_bytes import runs

U8 = npt.NDArray[np.uint8]
U32 = npt.NDArray[np.uint32]
I64 = npt.NDArray[np.int64]

POSITION_TYPE = pa.list_(pa.list_(pa.large_binary()))
# A document with few positions has their number, and the positions unpacked.
_PLAIN_VALUES = 2
_COUNT = struct.Struct("<I")
_BLOCK_HEAD = struct.Struct("<IB")


class SharedCodec(Enum):
    """Encoding of the positions of a block of documents."""

    PACKED = "packed_delta_v1"
    VARINT = "varint_doc_delta_v2"


def encode(ends: I64, frequencies: U32, positions: U32) -> pa.Array:
    """Encode the positions of posting lists, in the order of their documents.

    Each document has the number of its positions and the positions, as two values.
    """
    counts = frequencies.astype(np.int64)
    if len(counts) and int(counts.max()) >= BLOCK:
        return _encode_long(ends, counts, positions)
    words = np.empty(len(counts) + len(positions), "<u4")
    starts = np.cumsum(counts) - counts + np.arange(len(counts))
    words[starts] = counts
    words[runs(starts + 1, counts)] = positions
    offsets = np.empty(2 * len(counts) + 1, np.int64)
    offsets[0:-1:2] = starts * 4
    offsets[1::2] = starts * 4 + 4
    offsets[-1] = len(words) * 4
    data = pa.Array.from_buffers(
        pa.large_binary(), 2 * len(counts), [None, pa.py_buffer(offsets), pa.py_buffer(words)]
    )
    pairs = pa.array(np.arange(0, 2 * len(counts) + 1, 2, dtype=np.int32))
    bounds = np.concatenate([[0], ends]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(bounds), pa.ListArray.from_arrays(pairs, data))


def _encode_long(ends: I64, counts: I64, positions: U32) -> pa.Array:
    """Encode positions of which some documents have at least a block."""
    stops = np.cumsum(counts)
    documents = [
        _encoded(positions[stop - count : stop])
        for stop, count in zip(stops.tolist(), counts.tolist(), strict=True)
    ]
    starts = [0, *ends.tolist()[:-1]]
    lists = [documents[a:b] for a, b in zip(starts, ends.tolist(), strict=True)]
    return pa.array(lists, POSITION_TYPE)


def _encoded(positions: U32) -> list[bytes]:
    parts = [_COUNT.pack(len(positions))]
    for start in range(0, len(positions), BLOCK):
        part = positions[start : start + BLOCK]
        if len(part) < BLOCK:
            parts.append(part.astype("<u4").tobytes())
            continue
        deltas = np.diff(part, prepend=part[:1]).reshape(1, -1)
        bits = int(widths(deltas)[0])
        parts.append(_BLOCK_HEAD.pack(int(part[0]), bits) + pack(deltas, bits).tobytes())
    return parts


def decode(lists: pa.ListArray, frequencies: U32, what: str) -> U32:
    """Decode the positions of one posting list."""
    per_document = lists.flatten()
    values = per_document.flatten()
    counts = np.diff(np.asarray(per_document.offsets))
    if len(counts) != len(frequencies):
        raise CorruptTableError(f"{what} has positions of another number of documents")
    _, offset_buffer, data = values.buffers()
    offsets = np.frombuffer(offset_buffer, np.int64)[
        values.offset : values.offset + len(values) + 1
    ]
    buffer = np.frombuffer(data or b"", np.uint8)
    if bool(np.all(counts == _PLAIN_VALUES)) and (
        not len(frequencies) or int(frequencies.max()) < BLOCK
    ):
        starts, stops = offsets[1:-1:2], offsets[2::2]
        if not np.array_equal(stops - starts, frequencies.astype(np.int64) * 4):
            raise CorruptTableError(f"{what} has damaged positions")
        return buffer[runs(starts, stops - starts)].view("<u4").astype(np.uint32)
    found = [
        _decoded(document, count, what)
        for document, count in zip(per_document.to_pylist(), frequencies.tolist(), strict=True)
    ]
    return np.concatenate(found) if found else np.zeros(0, np.uint32)


def _decoded(parts: list[bytes], count: int, what: str) -> U32:
    found: list[U32] = []
    left = count
    for part in parts[1:]:
        if left >= BLOCK:
            first, bits = _BLOCK_HEAD.unpack_from(part)
            data = np.frombuffer(part, np.uint8, offset=_BLOCK_HEAD.size)
            if len(data) != packed_size(bits):
                raise CorruptTableError(f"{what} has damaged positions")
            deltas = unpack(data.reshape(1, -1), bits)[0]
            found.append(np.cumsum(deltas, dtype=np.uint32) + np.uint32(first))
        else:
            found.append(np.frombuffer(part, "<u4").astype(np.uint32))
        left -= len(found[-1])
    if left:
        raise CorruptTableError(f"{what} has damaged positions")
    return np.concatenate(found)


def decode_shared(
    stream: bytes,
    block_offsets: I64,
    frequencies: U32,
    codec: SharedCodec,
    what: str,
    block: int = BLOCK,
) -> U32:
    """Decode the positions of one posting list whose blocks of documents share a stream."""
    data = np.frombuffer(stream, np.uint8)
    bounds = np.append(block_offsets, len(data))
    starts = np.arange(0, len(frequencies), block)
    if len(starts) != len(block_offsets) or bool(np.any(np.diff(bounds) < 0)):
        raise CorruptTableError(f"{what} has damaged positions")
    totals = np.add.reduceat(frequencies, starts) if len(starts) else frequencies
    deltas = [
        _stream(data[bounds[i] : bounds[i + 1]], int(total), codec, what)
        for i, total in enumerate(totals.tolist())
    ]
    flat = np.concatenate(deltas).astype(np.int64) if deltas else np.zeros(0, np.int64)
    if not len(flat):
        return flat.astype(np.uint32)
    sums = np.cumsum(flat)
    firsts = np.cumsum(frequencies.astype(np.int64)) - frequencies
    before = sums[firsts] - flat[firsts]
    found: U32 = (sums - np.repeat(before, frequencies)).astype(np.uint32)
    return found


def _stream(data: U8, count: int, codec: SharedCodec, what: str) -> U32:
    found: list[U32] = []
    at = 0
    if codec is SharedCodec.PACKED:
        for _ in range(count // BLOCK):
            bits = int(data[at]) if at < len(data) else BLOCK
            stop = at + 1 + packed_size(bits)
            if stop > len(data):
                raise CorruptTableError(f"{what} has damaged positions")
            found.append(unpack(data[at + 1 : stop].reshape(1, -1), bits)[0])
            at = stop
    found.append(varints.decode(data[at:], what))
    whole = np.concatenate(found)
    if len(whole) != count:
        raise CorruptTableError(f"{what} has damaged positions")
    return whole
