"""Content of posting files is read back: packed blocks, posting lists, positions."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lancelake.errors import CorruptTableError
from lancelake.index.text import packing, postings
from lancelake.index.text.packing import BLOCK, pack, unpack, widths
from lancelake.index.text.postings import FIXED_TAIL, VARINT_TAIL, PostingLists, SharedCodec

LENGTHS = [1, 127, 128, 129, 300, 2, 512]


def lists(seed: int = 0) -> PostingLists:
    chance = np.random.default_rng(seed)
    parts = [np.sort(chance.choice(100_000, n, replace=False)) for n in LENGTHS]
    total = sum(LENGTHS)
    frequencies = chance.integers(1, 2000, total)
    return PostingLists(
        np.cumsum(LENGTHS), np.concatenate(parts).astype(np.uint32), frequencies.astype(np.uint32)
    )


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


@pytest.mark.parametrize("bits", range(33))
def test_a_block_of_any_width_is_unpacked(bits: int) -> None:
    chance = np.random.default_rng(bits)
    blocks = chance.integers(0, 1 << bits, (3, BLOCK), dtype=np.uint64).astype(np.uint32)
    blocks[:, 7] = (1 << bits) - 1
    assert widths(blocks).tolist() == [bits] * 3
    assert np.array_equal(unpack(pack(blocks, bits), bits), blocks)


def test_a_block_of_256_numbers_is_unpacked() -> None:
    blocks = np.random.default_rng(1).integers(0, 1 << 7, (2, 256)).astype(np.uint32)
    assert np.array_equal(unpack(pack(blocks, 7), 7, 256), blocks)


def test_a_posting_list_of_blocks_of_256_is_decoded() -> None:
    documents = np.arange(3, 603, 2, dtype=np.uint32)
    frequencies = np.ones(300, np.uint32)
    frequencies[200] = 1001
    deltas = np.diff(documents[:256], prepend=documents[:1]).reshape(1, -1)
    low = pack(frequencies[:256].reshape(1, -1) & 1, 1).tobytes()
    full = bytes([3, 0, 0, 0, 2]) + pack(deltas, 2).tobytes() + bytes([1, 1]) + low
    full += bytes([200]) + varint(500)
    last = varint(int(documents[256])) + bytes([2] * 43) + bytes([1] * 44)
    blocks = pa.array([[full, last]], postings.POSTING_TYPE)
    found = postings.decode(blocks, np.array([300]), VARINT_TAIL, "it", 256)
    assert np.array_equal(found.documents, documents)
    assert np.array_equal(found.frequencies, frequencies)
    with pytest.raises(CorruptTableError, match="damaged"):
        cut = pa.array([[full[:-1], last]], postings.POSTING_TYPE)
        postings.decode(cut, np.array([300]), VARINT_TAIL, "it", 256)


def test_posting_lists_are_read_back() -> None:
    before = lists()
    encoded, _ = postings.encode(before, np.ones(len(before.documents), np.float32))
    found = postings.decode(encoded, np.array(LENGTHS), FIXED_TAIL, "it")
    assert np.array_equal(found.documents, before.documents)
    assert np.array_equal(found.frequencies, before.frequencies)


def test_a_part_of_the_posting_lists_is_read_back() -> None:
    before = lists()
    encoded, _ = postings.encode(before, np.ones(len(before.documents), np.float32))
    found = postings.decode(encoded.slice(2, 3), np.array(LENGTHS[2:5]), FIXED_TAIL, "it")
    assert np.array_equal(found.documents, before.documents[before.ends[1] : before.ends[4]])


def test_a_block_starts_with_the_best_score_of_its_documents() -> None:
    before = lists()
    scores = np.random.default_rng(1).random(len(before.documents)).astype(np.float32)
    encoded, best = postings.encode(before, scores)
    stored = [np.frombuffer(block[:4], "<f4")[0] for part in encoded.to_pylist() for block in part]
    assert stored == best.tolist()
    assert stored[1] == scores[1:128].max()


def test_last_blocks_of_variable_length_are_read() -> None:
    documents, frequencies = [5, 300, 70_000], [1, 200, 3]
    block = b"\0\0\0\0" + b"".join(map(varint, [5, 295, 69_700, *frequencies]))
    encoded = pa.array([[block], [block]], postings.POSTING_TYPE)
    found = postings.decode(encoded, np.array([3, 3]), VARINT_TAIL, "it")
    assert found.documents.tolist() == documents * 2
    assert found.frequencies.tolist() == frequencies * 2


@pytest.mark.parametrize("change", ["short", "long", "fewer blocks"])
def test_damaged_posting_lists_are_reported(change: str) -> None:
    before = lists()
    encoded, _ = postings.encode(before, np.ones(len(before.documents), np.float32))
    content = encoded.to_pylist()
    if change == "fewer blocks":
        content[4].pop()
    else:
        content[2][0] = content[2][0][:40] if change == "short" else content[2][0]
        content[0][0] += b"\0" if change == "long" else b""
    damaged = pa.array(content, postings.POSTING_TYPE)
    with pytest.raises(CorruptTableError):
        postings.decode(damaged, np.array(LENGTHS), FIXED_TAIL, "it")


def test_a_number_that_does_not_end_is_reported() -> None:
    with pytest.raises(CorruptTableError):
        packing.decode(np.array([0x80], np.uint8), "it")


@pytest.mark.parametrize("most", [5, 400], ids=["few positions", "many positions"])
def test_positions_are_read_back(most: int) -> None:
    chance = np.random.default_rng(2)
    frequencies = chance.integers(1, most, 20).astype(np.uint32)
    each = [np.sort(chance.choice(5000, n, replace=False)) for n in frequencies]
    flat = np.concatenate(each).astype(np.uint32)
    encoded = postings.encode_positions(np.array([8, 20]), frequencies, flat)
    found = [
        postings.decode_positions(encoded.slice(0, 1), frequencies[:8], "it"),
        postings.decode_positions(encoded.slice(1, 1), frequencies[8:], "it"),
    ]
    assert np.array_equal(np.concatenate(found), flat)


@pytest.mark.parametrize("codec", SharedCodec)
def test_positions_of_shared_streams_are_read(codec: SharedCodec) -> None:
    chance = np.random.default_rng(3)
    frequencies = chance.integers(1, 4, 200).astype(np.uint32)
    each = [np.sort(chance.choice(900, n, replace=False)) for n in frequencies]
    stream, offsets = b"", []
    for start in range(0, 200, BLOCK):
        deltas = np.concatenate([np.diff(p, prepend=0) for p in each[start : start + BLOCK]])
        offsets.append(len(stream))
        whole = len(deltas) // BLOCK * BLOCK if codec is SharedCodec.PACKED else 0
        for block in deltas[:whole].reshape(-1, 1, BLOCK).astype(np.uint32):
            bits = int(widths(block)[0])
            stream += bytes([bits]) + pack(block, bits).tobytes()
        stream += b"".join(map(varint, deltas[whole:].tolist()))
    found = postings.decode_shared(stream, np.array(offsets), frequencies, codec, "it")
    assert np.array_equal(found, np.concatenate(each))
