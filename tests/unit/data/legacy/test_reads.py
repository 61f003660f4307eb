"""Reads of legacy files: few, and only of the requested bytes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancelake.data.legacy.legacy_layout import (
    MAX_GAP_BYTES,
    Chunk,
    Decoding,
    LegacyReads,
    Spans,
    merged,
    together,
)
from lancelake.errors import CorruptTableError
from tests.support.legacy_tables import MemorySource

SIZE = 64 * MAX_GAP_BYTES
DATA = np.arange(SIZE // 4, dtype=np.uint32).tobytes()
GAPS = st.one_of(st.just(0), st.integers(1, 200), st.integers(1, 3 * MAX_GAP_BYTES))


def spans(*pieces: tuple[int, int]) -> Spans:
    starts, lengths = zip(*pieces, strict=True)
    return Spans(np.array(starts, np.int64), np.array(lengths, np.int64))


def asking(*rounds: list[Spans]) -> Decoding[list[bytes]]:
    answers: list[bytes] = []
    for asked in rounds:
        answers += yield asked
    return answers


def reads(source: MemorySource, *known: Chunk) -> LegacyReads:
    return LegacyReads(source, size_bytes=source.size_bytes(), known=known)


@st.composite
def questions(draw: st.DrawFn) -> list[tuple[int, int]]:
    pieces = []
    position = 0
    for gap, length in draw(st.lists(st.tuples(GAPS, st.integers(0, 300)), max_size=20)):
        position += gap
        pieces.append((position, length))
        position += draw(st.sampled_from([0, length]))
    return draw(st.permutations([(start, n) for start, n in pieces if start + n <= SIZE]))


@given(st.lists(st.lists(questions(), max_size=3), max_size=3))
def test_every_answer_is_the_bytes_asked_for(rounds: list[list[list[tuple[int, int]]]]) -> None:
    wanted = [[spans(*pieces) for pieces in each if pieces] for each in rounds]
    answers = reads(MemorySource(DATA)).run(asking(*wanted))
    asked = [pieces for each in rounds for pieces in each if pieces]
    assert answers == [b"".join(DATA[s : s + n] for s, n in pieces) for pieces in asked]


@given(questions(), st.integers(0, MAX_GAP_BYTES))
def test_reads_fetch_little_that_was_not_requested(
    pieces: list[tuple[int, int]], waste_bytes: int
) -> None:
    starts = np.array([start for start, length in pieces if length], np.int64)
    lengths = np.array([length for _, length in pieces if length], np.int64)
    wanted = len({byte for start, length in pieces for byte in range(start, start + length)})
    brought = sum(b - a for a, b in merged(starts, starts + lengths, waste_bytes=waste_bytes))
    assert wanted <= brought <= 2 * wanted + waste_bytes


def test_neighbours_share_a_read() -> None:
    source = MemorySource(DATA)
    reads(source).run(asking([spans((1000, 10), (0, 10)), spans((500, 10))]))
    assert source.reads == [(0, 1010)]


def test_pieces_far_apart_are_read_one_by_one() -> None:
    source = MemorySource(DATA)
    far = MAX_GAP_BYTES + 20
    reads(source).run(asking([spans((0, 10), (far, 10))]))
    assert source.reads == [(0, 10), (far, 10)]


def test_bytes_at_hand_are_not_read_again() -> None:
    source = MemorySource(DATA)
    reads(source, Chunk(0, DATA[:100])).run(asking([spans((200, 10))], [spans((5, 10), (204, 2))]))
    assert source.reads == [(200, 10)]


def test_a_long_chunk_is_found_behind_a_short_one() -> None:
    source = MemorySource(DATA)
    known = (Chunk(0, DATA[:1000]), Chunk(100, DATA[100:110]))
    assert reads(source, *known).run(asking([spans((105, 50))])) == [DATA[105:155]]
    assert source.reads == []


def test_nothing_is_read_for_empty_pieces() -> None:
    source = MemorySource(DATA)
    assert reads(source).run(asking([spans((7, 0), (SIZE, 0))])) == [b""]
    assert source.reads == []


@pytest.mark.parametrize(
    "piece", [(-1, 2), (SIZE - 1, 2), (SIZE + 1, 0), (0, -1), (2**62, 2**62), (2**63 - 1, 1)]
)
def test_bytes_outside_the_file_are_damage(piece: tuple[int, int]) -> None:
    with pytest.raises(CorruptTableError):
        reads(MemorySource(DATA)).run(asking([spans(piece)]))


def test_a_position_beyond_all_files_is_damage() -> None:
    with pytest.raises(CorruptTableError):
        Spans.one(2**64 - 1, 8)


def test_small_gaps_are_bridged_before_large_ones() -> None:
    starts = np.array([0, 100, 103, 200], np.int64)
    assert merged(starts, starts + 1, waste_bytes=0) == [(0, 1), (100, 104), (200, 201)]


def test_decodings_done_together_ask_in_the_same_round() -> None:
    first, second = spans((0, 1)), spans((1, 1))
    work = together([asking([first], [first]), asking(), asking([second])])
    assert next(work) == [first, second]
    assert work.send([b"a", b"b"]) == [first]
    with pytest.raises(StopIteration) as end:
        work.send([b"c"])
    assert end.value.value == [[b"a", b"c"], [], [b"b"]]
