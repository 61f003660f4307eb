"""Files of a full text index, and the layouts in which releases write them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from lancelake.data.codec.index_file import IndexFileReader, SegmentFolder
from lancelake.errors import CorruptTableError, UnsupportedError
from lancelake.index.text.parameters import (
    BLOCK_DOCS,
    BLOCK_SIZES,
    FORMAT_VERSION,
    TextParameters,
)
from lancelake.index.text.positions import SharedCodec
from lancelake.index.text.postings import FIXED_TAIL

METADATA_FILE = "metadata.lance"
EARLY_POSTINGS_FILE = "invert.lance"
"""Of releases before 0.29, whose segments have no partitions; these are not read."""
DELETED_FRAGMENTS = "deleted_fragments"
ROW_ID, NUM_TOKENS = "_rowid", "_num_tokens"
TOKEN, TOKEN_ID, TOKEN_FST = "_token", "_token_id", "_token_fst_bytes"
POSTING, MAX_SCORE, LENGTH = "_posting", "_max_score", "_length"
POSITION = "_position"
SHARED_POSITIONS, POSITION_OFFSETS = "_compressed_position", "_position_block_offset"

PARTITIONS, PARAMS = "partitions", "params"
TOKEN_SET_FORMAT, TAIL_CODEC = "token_set_format", "posting_tail_codec"
ARROW_TOKENS, FST_TOKENS = "arrow", "fst"
_BLOCK_SIZE = "posting_block_size"
_POSITIONS_LAYOUT, _POSITIONS_CODEC = "positions_layout", "positions_codec"
_SHARED_LAYOUT = "shared_stream_v2"


def tokens_file(partition: int) -> str:
    """Return the name of the file with the terms of a partition."""
    return f"part_{partition}_tokens.lance"


def documents_file(partition: int) -> str:
    """Return the name of the file with the documents of a partition."""
    return f"part_{partition}_docs.lance"


def postings_file(partition: int) -> str:
    """Return the name of the file with the posting lists of a partition."""
    return f"part_{partition}_invert.lance"


def part_metadata_file(part: int) -> str:
    """Return the name of the metadata of a part that is not merged with others yet."""
    return f"part_{part}_metadata.lance"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextLayout:
    """What the metadata of an index states: its partitions, parameters and encodings."""

    partitions: tuple[int, ...]
    parameters: TextParameters
    token_format: str
    tail: str
    shared_positions: SharedCodec | None
    block_docs: int
    """Documents per block of a posting list."""

    @property
    def has_rounded_lengths(self) -> bool:
        """Whether scores round the lengths of documents: with blocks of other sizes than 128."""
        return self.block_docs != BLOCK_DOCS


def read_layout(folder: SegmentFolder, name: str = METADATA_FILE) -> TextLayout:
    """Read the metadata of an index, or of a part of one."""
    path = folder.file(name).path
    file: IndexFileReader = folder.open(name)
    found = file.metadata
    tokens = found.get(TOKEN_SET_FORMAT, ARROW_TOKENS)
    if tokens not in (ARROW_TOKENS, FST_TOKENS):
        raise UnsupportedError(
            f"text indices with the term format {tokens!r} are not supported", path=path
        )
    text, is_current = found.get(PARAMS, ""), FORMAT_VERSION in found
    return TextLayout(
        partitions=_partitions(found.get(PARTITIONS, ""), path),
        parameters=TextParameters.stored(text, is_current=is_current, path=path),
        token_format=tokens,
        tail=found.get(TAIL_CODEC, FIXED_TAIL),
        shared_positions=_shared_positions(found, path),
        block_docs=_block_docs(found, path),
    )


def postings_layout(layout: TextLayout, found: Mapping[str, str], path: str) -> TextLayout:
    """Return the layout of a posting file by its metadata.

    The partitions of an index differ if releases with other layouts added them.
    """
    if FORMAT_VERSION not in found:
        return layout
    return replace(
        layout,
        tail=found.get(TAIL_CODEC, FIXED_TAIL),
        shared_positions=_shared_positions(found, path),
        block_docs=_block_docs(found, path),
    )


def _block_docs(found: Mapping[str, str], path: str) -> int:
    size = found.get(_BLOCK_SIZE, str(BLOCK_DOCS))
    if size not in map(str, BLOCK_SIZES):
        raise UnsupportedError(
            f"text indices with posting blocks of {size} documents are not supported", path=path
        )
    return int(size)


def _shared_positions(found: Mapping[str, str], path: str) -> SharedCodec | None:
    """Return how the documents of a block share their positions; None if they do not."""
    layout = found.get(_POSITIONS_LAYOUT)
    if layout is None:
        return None
    if layout != _SHARED_LAYOUT:
        problem = f"text indices with the position layout {layout!r} are not supported"
        raise UnsupportedError(problem, path=path)
    return _codec(found.get(_POSITIONS_CODEC, ""), path)


def _codec(name: str, path: str) -> SharedCodec:
    try:
        return SharedCodec(name)
    except ValueError as error:
        problem = f"text indices are not supported with the position encoding {name!r}"
        raise UnsupportedError(problem, path=path) from error


def _partitions(text: str, path: str) -> tuple[int, ...]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    is_list = isinstance(found, list) and all(isinstance(each, int) and each >= 0 for each in found)
    if not is_list:
        raise CorruptTableError(f"index file {path} does not name its partitions", path=path)
    return tuple(found)
