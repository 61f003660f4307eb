"""Layout of one page of a column (2.1 and later): its encoding and its nested levels."""

from __future__ import annotations

from functools import lru_cache

from google.protobuf import any_pb2
from google.protobuf.message import DecodeError

from lancelake.errors import CorruptTableError
from lancelake.proto import encodings21_pb2, file2_pb2

_ITEMS = (encodings21_pb2.REPDEF_ALL_VALID_ITEM, encodings21_pb2.REPDEF_NULLABLE_ITEM)


def page_layout(page: file2_pb2.ColumnMetadata.Page) -> encodings21_pb2.PageLayout:
    """Decode the layout of a page."""
    return _decoded(page.encoding.direct.encoding)


def levels_above_lists(page: file2_pb2.ColumnMetadata.Page) -> tuple[bool, ...]:
    """Return whether each level outside of the innermost list is a struct with nulls.

    The codec decodes the levels of all pages of a batch as those of the first page: it fails,
    or returns wrong values, where these differ.
    """
    return _levels(page.encoding.direct.encoding)


@lru_cache(maxsize=4096)
def _levels(encoding: bytes) -> tuple[bool, ...]:
    layers = _layers(_decoded(encoding))
    lists = [depth for depth, layer in enumerate(layers) if layer not in _ITEMS]
    outside = layers[lists[0] + 1 :] if lists else []
    return tuple(layer == encodings21_pb2.REPDEF_NULLABLE_ITEM for layer in outside)


def _decoded(encoding: bytes) -> encodings21_pb2.PageLayout:
    layout = encodings21_pb2.PageLayout()
    envelope = any_pb2.Any()
    try:
        envelope.ParseFromString(encoding)
        envelope.Unpack(layout)
    except DecodeError as cause:
        raise CorruptTableError("The encoding of a page cannot be decoded") from cause
    return layout


def _layers(layout: encodings21_pb2.PageLayout) -> list[encodings21_pb2.RepDefLayer]:
    """Levels of a page, from the values outwards."""
    if layout.HasField("blob_layout"):
        return _layers(layout.blob_layout.inner_layout)
    parts = (layout.mini_block_layout, layout.constant_layout, layout.full_zip_layout)
    return [layer for part in parts for layer in part.layers]
