"""Entries of indices in a manifest, and the details of each kind."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from google.protobuf import any_pb2
from google.protobuf.message import Message

from lancelake.errors import CorruptTableError
from lancelake.format.frozen import Codec, Conversion, parse
from lancelake.format.ids import BaseId, FieldId, Version
from lancelake.proto import index_pb2, table_pb2

if TYPE_CHECKING:
    from pyroaring import BitMap

FRAGMENT_REUSE = "__lance_frag_reuse"
MEM_WAL = "__lance_mem_wal"
_UUID_BYTES = 16
# More do not fit into a manifest that can be read; callers expand the bitmap.
_MAX_FRAGMENTS = 1 << 21


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexFile:
    """A file of an index segment, relative to the segment's folder."""

    path: str
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexDetails:
    """The kind of an index and its parameters, still encoded."""

    type_url: str
    value: bytes

    @property
    def kind(self) -> str:
        """Last part of the type URL, lower case: how releases compare kinds."""
        return self.type_url.rsplit("/", 1)[-1].rsplit(".", 1)[-1].lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexMetadata:
    """One segment of an index."""

    uuid: uuid.UUID
    name: str
    fields: tuple[FieldId, ...]
    dataset_version: Version
    fragment_bitmap: bytes = b""
    details: IndexDetails | None = None
    index_version: int | None = None
    created_at_ms: int | None = None
    base_id: BaseId | None = None
    files: tuple[IndexFile, ...] = ()
    unknown: bytes = b""

    @property
    def is_system(self) -> bool:
        """Whether the entry is a system index, which queries do not use."""
        return self.name in (FRAGMENT_REUSE, MEM_WAL)

    def fragments(self) -> BitMap | None:
        """Covered fragments; None when the entry does not state them."""
        if not self.fragment_bitmap:
            return None
        # Opening a version does not decode bitmaps, and the module is slow to load.
        from lancelake.format.deletion import decode_bitmap  # noqa: PLC0415

        what = f"fragment bitmap of index {self.name!r}"
        fragments = decode_bitmap(self.fragment_bitmap, what=what)
        if len(fragments) > _MAX_FRAGMENTS:
            raise CorruptTableError(f"{what} claims {len(fragments)} fragments")
        return fragments


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedGeneration:
    """The last generation of a MemWAL region that is merged into the table."""

    region_id: uuid.UUID
    generation: int


def decode_section(data: bytes) -> tuple[IndexMetadata, ...]:
    """Read the index section of a manifest file."""
    section = table_pb2.IndexSection()
    parse(section, data, what="index section")
    return tuple(ENTRY.decode(entry) for entry in section.indices)


def encode_section(indices: tuple[IndexMetadata, ...]) -> bytes:
    """Write the index section of a manifest file."""
    section = table_pb2.IndexSection(indices=[ENTRY.encode(i) for i in indices])
    return section.SerializeToString(deterministic=True)


def decode_uuid(message: table_pb2.UUID) -> uuid.UUID:
    """Read a uuid of sixteen bytes."""
    if len(message.uuid) != _UUID_BYTES:
        msg = f"a uuid has {len(message.uuid)} bytes"
        raise CorruptTableError(msg)
    return uuid.UUID(bytes=message.uuid)


def encode_uuid(value: uuid.UUID) -> table_pb2.UUID:
    """Write a uuid."""
    return table_pb2.UUID(uuid=value.bytes)


UUID = Conversion(decode_uuid, encode_uuid)
DETAILS: Codec[IndexDetails] = Codec(IndexDetails, any_pb2.Any)
FILE = Codec(IndexFile, table_pb2.IndexFile)
MERGED_GENERATION = Codec(MergedGeneration, table_pb2.MergedGeneration, region_id=UUID)
ENTRY = Codec(
    IndexMetadata,
    table_pb2.IndexMetadata,
    names={"details": "index_details", "created_at_ms": "created_at"},
    uuid=UUID,
    details=DETAILS,
    files=FILE,
)


Parameters = Mapping[str, Any]  # JSON values, as official releases show them

UNKNOWN = "Unknown"

_PLAIN_KINDS = {
    "btreeindexdetails": "BTree",
    "bitmapindexdetails": "Bitmap",
    "labellistindexdetails": "LabelList",
    "ngramindexdetails": "NGram",
    "zonemapindexdetails": "ZoneMap",
    "bloomfilterindexdetails": "BloomFilter",
    "rtreeindexdetails": "RTree",
    "fmindexdetails": "Fm",
    "fragmentreuseindexdetails": "FragmentReuse",
    "memwalindexdetails": "MemWal",
}
_METRICS = {
    index_pb2.L2: "L2",
    index_pb2.Cosine: "COSINE",
    index_pb2.Dot: "DOT",
    index_pb2.Hamming: "HAMMING",
}
_ROTATIONS = {
    index_pb2.VectorIndexDetails.RabitQuantization.FAST: "fast",
    index_pb2.VectorIndexDetails.RabitQuantization.MATRIX: "matrix",
}
_DEFAULT_BLOCK_SIZE = 128


def describe(details: IndexDetails | None) -> tuple[str | None, Parameters]:
    """Return the name of the kind, and the parameters.

    The name is None for a vector index whose kind is stored in its files only. An unknown kind
    is called `Unknown`, with the type URL among its parameters.
    """
    if details is None:
        return UNKNOWN, {}
    if details.kind in _PLAIN_KINDS:
        return _PLAIN_KINDS[details.kind], {}
    reader = _READERS.get(details.kind)
    if reader is None:
        return UNKNOWN, {"type_url": details.type_url}
    return reader(details.value)


def shown(details_type: str) -> str:
    """Return the name of a kind by the type of its details, for an entry that has none."""
    named = {**_PLAIN_KINDS, "invertedindexdetails": "Inverted", "vectorindexdetails": "Vector"}
    return named.get(details_type, UNKNOWN)


def _vector(value: bytes) -> tuple[str | None, Parameters]:
    message = index_pb2.VectorIndexDetails()
    _fill(message, value)
    compression = message.WhichOneof("compression")
    if compression is None:
        return None, {}
    shown: dict[str, Any] = {"metric_type": _METRICS.get(message.metric_type, "UNKNOWN")}
    if message.target_partition_size:
        shown["target_partition_size"] = message.target_partition_size
    has_graph = message.HasField("hnsw_index_config")
    if has_graph:
        graph = message.hnsw_index_config
        shown["hnsw"] = {
            "max_connections": graph.max_connections,
            "construction_ef": graph.construction_ef,
            "max_level": graph.max_level,
        }
    if compression != "flat":
        shown["compression"] = _compression(message, compression)
    if message.runtime_hints:
        shown["runtime_hints"] = dict(message.runtime_hints)
    return f"IVF_{'HNSW_' if has_graph else ''}{compression.upper()}", shown


def _compression(message: index_pb2.VectorIndexDetails, kind: str) -> dict[str, Any]:
    if kind == "pq":
        sizes = {"num_bits": message.pq.num_bits, "num_sub_vectors": message.pq.num_sub_vectors}
        return {"type": kind, **sizes}
    if kind == "sq":
        return {"type": kind, "num_bits": message.sq.num_bits}
    rotation = _ROTATIONS.get(message.rq.rotation_type, "unknown")
    return {"type": kind, "num_bits": message.rq.num_bits, "rotation_type": rotation}


def _inverted(value: bytes) -> tuple[str | None, Parameters]:
    message = index_pb2.InvertedIndexDetails()
    _fill(message, value)
    shown = _tokenizer(message)
    if shown is None:
        return "Inverted", {}
    by_element = index_pb2.InvertedIndexDetails.LIST_ELEMENT
    is_element = message.document_granularity == by_element
    return "Inverted", {**shown, "document_granularity": "list_element" if is_element else "row"}


def _json_path(value: bytes) -> tuple[str | None, Parameters]:
    message = index_pb2.JsonIndexDetails()
    _fill(message, value)
    encoded = message.target_details
    target = IndexDetails(type_url=encoded.type_url, value=encoded.value)
    # An index of one path cannot be the target of another.
    if not message.HasField("target_details") or target.kind == "jsonindexdetails":
        return "Json", {}
    return "Json", {"path": message.path, "target_details": describe(target)[1]}


def _min_hash(value: bytes) -> tuple[str | None, Parameters]:
    message = index_pb2.MinHashLshIndexDetails()
    _fill(message, value)
    tokenizer = _tokenizer(message.tokenizer) if message.HasField("tokenizer") else None
    if tokenizer is None:
        return "MinHashLsh", {}
    return "MinHashLsh", {
        "num_hashes": message.num_hashes,
        "num_bands": message.num_bands,
        "shingle_size": message.shingle_size,
        "tokenizer": tokenizer,
        "signature_version": message.signature_version,
    }


def _tokenizer(message: index_pb2.InvertedIndexDetails) -> dict[str, Any] | None:
    """Show the settings of a tokenizer; None when its language is not a JSON string."""
    if not message.HasField("base_tokenizer"):
        message = _default_tokenizer()
    language = _language(message.language)
    if language is None:
        return None
    has_limit = message.HasField("max_token_length")
    has_block_size = message.HasField("block_size")
    code = message.code_config
    return {
        "lance_tokenizer": None,
        "base_tokenizer": message.base_tokenizer,
        "language": language,
        "with_position": message.with_position,
        "max_token_length": message.max_token_length if has_limit else None,
        "lower_case": message.lower_case,
        "stem": message.stem,
        "remove_stop_words": message.remove_stop_words,
        "custom_stop_words": None,
        "ascii_folding": message.ascii_folding,
        "min_ngram_length": message.min_ngram_length,
        "max_ngram_length": message.max_ngram_length,
        "prefix_only": message.prefix_only,
        "block_size": message.block_size if has_block_size else _DEFAULT_BLOCK_SIZE,
        "split_identifiers": code.split_identifiers,
        "split_on_numerics": code.split_on_numerics,
        "preserve_original": code.preserve_original,
        "index_operators": code.index_operators,
    }


def _default_tokenizer() -> index_pb2.InvertedIndexDetails:
    return index_pb2.InvertedIndexDetails(
        base_tokenizer="simple",
        max_token_length=40,
        lower_case=True,
        stem=True,
        remove_stop_words=True,
        ascii_folding=True,
        min_ngram_length=3,
        max_ngram_length=3,
    )


def _language(text: str) -> str | None:
    if not text:
        return "English"
    try:
        language = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return language if isinstance(language, str) else None


def _fill(message: Message, value: bytes) -> None:
    parse(message, value, what="index details")


_READERS: dict[str, Callable[[bytes], tuple[str | None, Parameters]]] = {
    "vectorindexdetails": _vector,
    "invertedindexdetails": _inverted,
    "jsonindexdetails": _json_path,
    "minhashlshindexdetails": _min_hash,
}
